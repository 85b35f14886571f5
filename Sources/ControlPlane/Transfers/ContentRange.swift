import HTTPTypes

/// The part of some content that a request asks for (RFC 9110 §14.2): one range, or all of it.
package struct ContentRange: Sendable, Equatable {
    package let start: Int64
    /// Behind the last byte.
    package let end: Int64
    private let length: Int64
    private let isPart: Bool

    /// - Parameter field: the value of `Range`; one of several ranges, or of another unit, is passed over.
    /// - Throws: `ControlProblem` 416 for a range that holds nothing.
    package init(_ field: String?, length: Int64) throws(ControlProblem) {
        self.length = length
        guard let (first, last) = Self.parse(field) else {
            (self.start, self.end, self.isPart) = (0, length, false)
            return
        }
        switch (first, last) {
        case (let first?, let last): (self.start, self.end) = (first, min(length, (last ?? length - 1) &+ 1))
        case (nil, let count): (self.start, self.end) = (max(0, length - (count ?? 0)), length)
        }
        self.isPart = true
        guard self.start < self.end else {
            var problem = ControlProblem(416, "range-not-satisfiable", "The content has \(length) bytes.")
            problem.contentLength = length
            throw problem
        }
    }

    private static func parse(_ field: String?) -> (Int64?, Int64?)? {
        guard let field, field.lowercased().hasPrefix("bytes=") else { return nil }
        let parts = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, parts != ["", ""] else { return nil }
        func number(_ text: String) -> Int64? {
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
        }
        let (first, last) = (number(parts[0]), number(parts[1]))
        // What is written must be a number, and the last not before the first.
        guard parts[0].isEmpty || first != nil, parts[1].isEmpty || last != nil else { return nil }
        if let first, let last, last < first { return nil }
        if last == .max { return nil }
        return (first, last)
    }

    package var status: HTTPResponse.Status { self.isPart ? .partialContent : .ok }

    package var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "application/octet-stream", .cacheControl: "no-store", .acceptRanges: "bytes",
            .contentDisposition: "attachment", .xContentTypeOptions: "nosniff",
        ]
        if self.isPart { headers[.contentRange] = "bytes \(self.start)-\(self.end - 1)/\(self.length)" }
        return headers
    }
}
