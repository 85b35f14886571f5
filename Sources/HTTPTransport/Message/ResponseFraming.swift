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
        guard !self.hasNoContent(head, method) else { return .none }
        let coding = head.fields.single("Transfer-Encoding")
        let length = head.fields.single("Content-Length")
        if let name = coding.first {
            guard length.first == nil else { throw .twoFramings }
            guard head.version > .http10, coding.occursOnce, name.matchesIgnoringCase("chunked") else {
                throw .transferCoding
            }
            return .chunked
        }
        guard let first = length.first else { return .untilClose }
        if !length.isRepeated, let length = first.decimal { return .length(length) }
        // Proxies join repeated lines to a list of equal numbers.
        let lengths = head.fields.list("Content-Length")
        guard let first = lengths.first, let length = first.decimal else { throw .contentLength }
        guard lengths.allSatisfy({ $0 == first }) else { throw .twoFramings }
        return .length(length)
    }

    private static func hasNoContent(_ head: ResponseHead, _ method: String) -> Bool {
        method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304
    }
}

/// The rule that a server's bytes broke. The exchange fails and its connection is closed.
package enum ResponseViolation: Error, Sendable, Hashable {
    /// The received bytes do not begin with a status line of HTTP/1.0 or HTTP/1.1.
    case statusLine(HeadViolation)
    /// A malformed or too large head, or trailers.
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
    /// In HTTP/2, a malformed message (RFC 9113 §8.1.1): its fields, or the length of its content.
    case message
    /// Bytes without a request.
    case unsolicited
    /// More informational heads than `MessageLimits.informationalHeads`.
    case tooManyInformationalHeads
    /// More consecutive bytes of chunk framing than `MessageLimits.framingBytes`.
    case framingWithoutContent

    init(_ violation: ChunkViolation) {
        self =
            switch violation {
            // Content has no limit here.
            case .chunk, .contentTooLong: .chunk
            case .bareLineBreak: .bareLineBreak
            case .framingWithoutContent: .framingWithoutContent
            }
    }

    /// One sentence for a human, or two.
    package var explanation: String {
        switch self {
        case .statusLine(.malformedStartLine): "The response does not begin with a status line of HTTP/1.1."
        case .statusLine(let violation):
            "The response does not begin with a status line of HTTP/1.1. \(violation.explanation)"
        case .head(let violation): violation.explanation
        case .contentLength: "Content-Length is not a number, or too large."
        case .twoFramings: "There are two different lengths, or Content-Length with Transfer-Encoding."
        case .transferCoding: "Transfer-Encoding is not chunked alone, or is used in HTTP/1.0."
        case .chunk: "The size of a chunk is malformed, or the line end after its content is missing."
        case .bareLineBreak: "There is a carriage return or a line feed alone between two chunks."
        case .upgrade: "Status 101 does not answer a request to upgrade, or has no Upgrade field."
        case .message:
            "The response's fields, or the length of its content, are not as HTTP/2 allows (RFC 9113 §8.1.1)."
        case .unsolicited: "There are bytes that no request asked for."
        case .tooManyInformationalHeads: "There are too many informational responses before the final one."
        case .framingWithoutContent: "There are too many bytes of chunk sizes, extensions or trailers."
        }
    }
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
