import HTTPTypes

/// Going on with a download that broke off: a part is asked for, and what comes is judged (RFC 9110 §14).
package struct RangeResumption: Equatable, Sendable {
    package enum Outcome: Equatable, Sendable {
        /// The content follows what was had; `total` is that of the whole, where it is known.
        case append(total: Int64?)
        /// The content is the whole, from its first byte: what was had is of no use.
        case restart
        /// All was there already.
        case complete
        /// Ask again without a range: the server gave a part that does not fit, or none.
        case requestWhole
        /// Another result than the content: an error, or a redirect.
        case otherResponse
    }

    /// Bytes that were had, at least 1.
    package let offset: Int64
    package let validator: ResumeValidator

    /// - Returns: `nil` where there is nothing to go on from.
    package init?(offset: Int64, validator: ResumeValidator) {
        guard offset > 0 else { return nil }
        self.offset = offset
        self.validator = validator
    }

    /// Whether a download that gave this response can be resumed by what it gave: it is the answer to a GET, as it is
    /// (a coded content has no offsets that mean anything after decoding), and the server takes ranges.
    package static func isPossible(
        method: HTTPRequest.Method, status: Int, fields: HTTPFields, now: HTTPDate
    ) -> Bool {
        guard method == .get, status == 200 || status == 206, ContentCoding.list(fields)?.isEmpty == true else {
            return false
        }
        let units = FieldList.elements(fields[values: .acceptRanges])
        let takesRanges = units.isEmpty ? status == 206 : units.contains { $0.matchesIgnoringCase("bytes") }
        return takesRanges && ResumeValidator(fields, now: now) != nil
    }

    /// What is put on the request.
    package var requestFields: HTTPFields {
        // A coding that begins in the middle cannot be undone.
        [.range: "bytes=\(self.offset)-", .ifRange: self.validator.fieldValue, .acceptEncoding: "identity"]
    }

    package func evaluate(status: Int, fields: HTTPFields) -> Outcome {
        switch status {
        case 206: return self.judgePart(fields)
        case 200...299: return .restart
        case 416: return self.judgeUnsatisfiable(fields)
        default: return .otherResponse
        }
    }

    private func judgePart(_ fields: HTTPFields) -> Outcome {
        let lines = fields[values: .contentRange]
        guard lines.count == 1, let line = lines.first, let range = ContentRange(line), let bytes = range.bytes,
            bytes.lowerBound == self.offset, self.validator.isCompatible(with: fields),
            ContentCoding.list(fields)?.isEmpty == true
        else { return .requestWhole }
        return .append(total: range.total)
    }

    private func judgeUnsatisfiable(_ fields: HTTPFields) -> Outcome {
        let range = fields[values: .contentRange].first.flatMap { ContentRange($0) }
        // The end of the whole is where we are: there was nothing left to give.
        guard range?.total == self.offset, self.validator.isCompatible(with: fields) else { return .requestWhole }
        return .complete
    }
}

/// By what a server tells whether the rest of a content still belongs to what was had before (RFC 9110 §13.1.5).
package enum ResumeValidator: Equatable, Sendable {
    case entityTag(String)
    case lastModified(String)

    /// The best that a response offers. Weak tags tell nothing about bytes, and so does a date less than a second
    /// before the response was made (RFC 9110 §8.8.2.2).
    package init?(_ fields: HTTPFields, now: HTTPDate) {
        if let tag = fields[values: .eTag].first.flatMap({ EntityTag($0) }), !tag.isWeak {
            self = .entityTag(tag.fieldValue)
            return
        }
        guard let line = fields[values: .lastModified].first, let modified = HTTPDate(line, now: now) else {
            return nil
        }
        let date = fields[values: .date].first.flatMap { HTTPDate($0, now: now) } ?? now
        guard modified < date else { return nil }
        self = .lastModified(line.trimmingBlanks)
    }

    /// The value of `If-Range`.
    package var fieldValue: String {
        switch self {
        case .entityTag(let value), .lastModified(let value): value
        }
    }

    /// Whether what a response says does not speak against this; a response need not repeat it.
    func isCompatible(with fields: HTTPFields) -> Bool {
        switch self {
        case .entityTag(let value):
            guard let told = fields[values: .eTag].first.flatMap({ EntityTag($0) }) else { return true }
            return told.fieldValue == value
        case .lastModified(let value):
            guard let told = fields[values: .lastModified].first else { return true }
            return told.trimmingBlanks == value
        }
    }
}

/// `Content-Range` in bytes (RFC 9110 §14.4).
package struct ContentRange: Equatable, Sendable {
    /// The bytes that the content holds; `nil` for a 416, where it holds none.
    package let bytes: ClosedRange<Int64>?
    /// Of the whole; `nil` where the server does not know it.
    package let total: Int64?

    package init?(_ text: String) {
        guard text.utf8.count <= 128 else { return nil }
        var scanner = FieldScanner(text)
        scanner.skipBlanks()
        guard let unit = scanner.token(), unit.matchesIgnoringCase("bytes") else { return nil }
        scanner.skipBlanks()
        let range = scanner.rawText(to: UInt8(ascii: "/")).trimmingBlanks
        guard scanner.skip(UInt8(ascii: "/")) else { return nil }
        let total = scanner.text { _ in true }.trimmingBlanks
        self.total = Self.number(total)
        guard self.total != nil || total == "*" else { return nil }
        if range == "*" {
            guard self.total != nil else { return nil }
            self.bytes = nil
            return
        }
        let ends = range.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            self.total.map({ last < $0 }) ?? true
        else { return nil }
        self.bytes = first...last
    }

    private static func number(_ digits: some StringProtocol) -> Int64? {
        digits.utf8.count <= 18 ? digits.clampedDecimal(limit: .max) : nil
    }
}
