import WireText

/// How the end of a response's content is determined (RFC 9112 §6.3).
package enum ResponseFraming: Sendable, Hashable {
    /// No content, whatever the fields announce.
    case none
    case length(Int64)
    case chunked
    case untilClose

    /// - Parameter method: of the request.
    /// - Throws: if the framing is ambiguous.
    package static func of(_ head: ResponseHead, method: String) throws(ResponseViolation) -> ResponseFraming {
        let coding = head.fields.single("Transfer-Encoding")
        let length = head.fields.single("Content-Length")
        if let name = coding.first {
            guard length.first == nil else { throw .twoFramings }
            guard head.version > .http10, coding.occursOnce, name.matchesIgnoringCase("chunked") else {
                throw .transferCoding
            }
            return self.hasNoContent(head, method) ? .none : .chunked
        }
        guard let first = length.first else { return self.hasNoContent(head, method) ? .none : .untilClose }
        if length.isRepeated, head.fields.values("Content-Length").contains(where: { $0 != first }) {
            throw .twoFramings
        }
        guard let length = first.decimal else { throw .contentLength }
        return self.hasNoContent(head, method) ? .none : .length(length)
    }

    private static func hasNoContent(_ head: ResponseHead, _ method: String) -> Bool {
        method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304
    }
}

/// The rule that a server's bytes broke. The exchange fails and its connection is closed.
package enum ResponseViolation: Error, Sendable, Hashable {
    /// A malformed or too large head, or trailers; also a head of another version than HTTP/1.0 and HTTP/1.1.
    case head(HeadViolation)
    /// Content-Length is not a number, or too large (RFC 9112 §6.3).
    case contentLength
    /// Different lengths, or Transfer-Encoding together with Content-Length (RFC 9112 §6.1, §6.3).
    case twoFramings
    /// A transfer coding other than chunked alone, or one in HTTP/1.0.
    case transferCoding
    /// A malformed chunk size or a missing line end (RFC 9112 §7.1).
    case chunk
    /// In chunk framing, a CR without LF, or an LF without CR.
    case bareLineBreak
    /// 101 without a request to upgrade, or without the Upgrade field (RFC 9110 §15.2.2).
    case upgrade
    /// Bytes without a request.
    case unsolicited
    /// More informational heads than `MessageLimits.informationalHeads`.
    case tooManyInformationalHeads
    /// More consecutive bytes of chunk framing than `MessageLimits.framingBytes`.
    case framingWithoutContent
}

/// Limits on what a server may send besides content.
package struct MessageLimits: Sendable, Hashable {
    /// Largest head, and largest trailers, in bytes.
    package var headBytes = 256 << 10
    /// Most fields of one message, trailers included.
    package var fieldCount = 512
    /// Most informational heads before the final one.
    package var informationalHeads = 32
    /// Most consecutive bytes of chunk sizes, extensions and trailers.
    package var framingBytes = 512 << 10

    package init() {}

    var ofHead: HeadLimits { HeadLimits(byteCount: self.headBytes, fieldCount: self.fieldCount) }
}
