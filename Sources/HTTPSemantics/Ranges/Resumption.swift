import HTTPTypes

/// Going on with a download that broke off: a part is asked for, and what comes is judged (RFC 9110 §14).
package struct Resumption: Equatable, Sendable {
    package enum Outcome: Equatable, Sendable {
        /// The content follows what was had; `total` is that of the whole, where it is known.
        case goOn(total: Int64?)
        /// The content is the whole, from its first byte: what was had is of no use.
        case startAgain
        /// All was there already.
        case complete
        /// Ask again without a range: the server gave a part that does not fit, or none.
        case askAnew
        /// Another result than the content: an error, or a redirect.
        case notTheContent
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

    package func judge(status: Int, fields: HTTPFields) -> Outcome {
        switch status {
        case 206: return self.judgePart(fields)
        case 200...299: return .startAgain
        case 416: return self.judgeUnsatisfiable(fields)
        default: return .notTheContent
        }
    }

    private func judgePart(_ fields: HTTPFields) -> Outcome {
        let lines = fields[values: .contentRange]
        guard lines.count == 1, let line = lines.first, let range = ContentRange(line), let bytes = range.bytes,
            bytes.lowerBound == self.offset, self.validator.isCompatible(with: fields),
            ContentCoding.list(fields)?.isEmpty == true
        else { return .askAnew }
        return .goOn(total: range.total)
    }

    private func judgeUnsatisfiable(_ fields: HTTPFields) -> Outcome {
        let range = fields[values: .contentRange].first.flatMap { ContentRange($0) }
        // The end of the whole is where we are: there was nothing left to give.
        guard range?.total == self.offset, self.validator.isCompatible(with: fields) else { return .askAnew }
        return .complete
    }
}
