import HTTPTypes
import WireText

/// Resumes an interrupted download with a range request (RFC 9110 §14).
package struct RangeResumption: Equatable, Sendable {
    package enum Outcome: Equatable, Sendable {
        /// The content continues at `offset`; `total` is the complete length, if known.
        case append(total: Int64?)
        /// The content is complete from its first byte: discard the bytes received before.
        case restart
        /// The download was complete already.
        case complete
        /// Repeat the request without a range: the server's part does not match, or there is none.
        case requestWhole
        /// An error or a redirect instead of the content.
        case otherResponse
    }

    /// Number of bytes received before, at least 1.
    package let offset: Int64
    package let validator: ResumeValidator

    /// - Returns: `nil` if nothing was received before.
    package init?(offset: Int64, validator: ResumeValidator) {
        guard offset > 0 else { return nil }
        self.offset = offset
        self.validator = validator
    }

    /// Whether a download with this response can be resumed: a response to GET without content coding (offsets in coded
    /// content are meaningless after decoding) from a server that supports ranges and sent a validator.
    package static func isPossible(method: HTTPRequest.Method, status: Int, fields: HTTPFields, now: HTTPDate) -> Bool {
        guard method == .get, status == 200 || status == 206, ContentCoding.list(fields)?.isEmpty == true else {
            return false
        }
        let units = FieldList.elements(fields[values: .acceptRanges])
        let takesRanges = units.isEmpty ? status == 206 : units.contains { $0.matchesIgnoringCase("bytes") }
        return takesRanges && ResumeValidator(fields, now: now) != nil
    }

    package var requestFields: HTTPFields {
        // A part of coded content cannot be decoded.
        [.range: "bytes=\(self.offset)-", .ifRange: self.validator.fieldValue, .acceptEncoding: "identity"]
    }

    package func evaluate(status: Int, fields: HTTPFields) -> Outcome {
        switch status {
        case 206: return self.evaluatePart(fields)
        case 200...299: return .restart
        case 416: return self.evaluateUnsatisfiable(fields)
        default: return .otherResponse
        }
    }

    private func evaluatePart(_ fields: HTTPFields) -> Outcome {
        let lines = fields[values: .contentRange]
        guard lines.count == 1, let line = lines.first, let range = ContentRange(line), let bytes = range.bytes,
            bytes.lowerBound == self.offset, Self.agrees(fields, with: bytes),
            self.validator.isCompatible(with: fields),
            ContentCoding.list(fields)?.isEmpty == true
        else { return .requestWhole }
        return .append(total: range.total)
    }

    /// Whether the response has as many bytes as it says, or does not say how many.
    private static func agrees(_ fields: HTTPFields, with bytes: ClosedRange<Int64>) -> Bool {
        let count = bytes.upperBound - bytes.lowerBound + 1
        return FieldList.elements(fields[values: .contentLength]).allSatisfy { Int64($0) == count }
    }

    private func evaluateUnsatisfiable(_ fields: HTTPFields) -> Outcome {
        let range = fields[values: .contentRange].first.flatMap { ContentRange($0) }
        // The complete length equals our offset: no bytes are missing.
        guard range?.total == self.offset, self.validator.isCompatible(with: fields) else { return .requestWhole }
        return .complete
    }
}

/// The validator for `If-Range` (RFC 9110 §13.1.5).
package enum ResumeValidator: Equatable, Sendable {
    case entityTag(String)
    case lastModified(String)

    /// The strongest validator of a response. Weak tags do not identify bytes, and neither does a modification date
    /// less than a second before the response's Date (RFC 9110 §8.8.2.2).
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

    package var fieldValue: String {
        switch self {
        case .entityTag(let value), .lastModified(let value): value
        }
    }

    /// Whether the response has the same validator, or none.
    fileprivate func isCompatible(with fields: HTTPFields) -> Bool {
        switch self {
        case .entityTag(let value):
            guard let received = fields[values: .eTag].first.flatMap({ EntityTag($0) }) else { return true }
            return received.fieldValue == value
        case .lastModified(let value):
            guard let received = fields[values: .lastModified].first else { return true }
            return received.trimmingBlanks.utf8.elementsEqual(value.utf8)
        }
    }
}

/// `Content-Range` in bytes (RFC 9110 §14.4).
package struct ContentRange: Equatable, Sendable {
    /// The range of the content; `nil` in a 416.
    package let bytes: ClosedRange<Int64>?
    /// The complete length; `nil` if the server does not know it.
    package let total: Int64?

    package init?(_ text: String) {
        guard text.utf8.count <= 128 else { return nil }
        var scanner = FieldValueScanner(text)
        scanner.skipWhitespace()
        guard let unit = scanner.token(), unit.matchesIgnoringCase("bytes") else { return nil }
        scanner.skipWhitespace()
        let range = scanner.rawText(to: "/").trimmingBlanks
        guard scanner.skip("/") else { return nil }
        let total = scanner.text { _ in true }.trimmingBlanks
        self.total = Self.number(total)
        guard self.total != nil || total == "*" else { return nil }
        if range == "*" {
            guard self.total != nil else { return nil }
            self.bytes = nil
            return
        }
        let bounds = range.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = Self.number(bounds[0]), let last = Self.number(bounds[1]), first <= last,
            self.total.map({ last < $0 }) ?? true
        else { return nil }
        self.bytes = first...last
    }

    private static func number(_ digits: some StringProtocol) -> Int64? {
        digits.utf8.count <= 18 ? digits.clampedDecimal(limit: .max) : nil
    }
}
