import ByteKernels
import WebSocketProtocol
import WireText

/// How the end of a request's body is known (RFC 9112 §6.3).
package enum RequestBodyFraming: Hashable, Sendable {
    /// No bytes, or no body at all.
    case empty
    case length(Int64)
    case chunked

    /// - Throws: 400 where lengths contradict each other or a proxy could read the body differently, and 501 for an unknown
    ///   transfer coding.
    package init(_ head: RequestHead) throws(HandshakeRefusal) {
        let lengths = head.fields.list("Content-Length")
        guard head.fields["Transfer-Encoding"] == nil else {
            guard lengths.isEmpty, head.version >= .http11 else {
                throw .malformed("Transfer-Encoding is not allowed here; leave out Content-Length, and use HTTP/1.1.")
            }
            let codings = head.fields.list("Transfer-Encoding")
            guard codings.count == 1, codings[0].matchesIgnoringCase("chunked") else {
                throw HandshakeRefusal(status: 501, explanation: "Only the transfer coding chunked is supported.")
            }
            self = .chunked
            return
        }
        guard head.fields["Content-Length"] != nil else {
            self = .empty
            return
        }
        guard let length = lengths.first?.decimal, lengths.allSatisfy({ $0.utf8.elementsEqual(lengths[0].utf8) }) else {
            throw .malformed("Content-Length is not one number of bytes.")
        }
        self = length == 0 ? .empty : .length(length)
    }
}

/// Takes the body of one request off the connection, without its transfer coding.
package struct RequestBodyDecoder: Sendable {
    /// A malformed or too large body.
    package enum Violation: Error, Hashable, Sendable {
        case tooLong(limit: Int)
        /// A chunk without a size, without its line end, or with too many extensions (RFC 9112 §7.1).
        case malformedChunk
        case malformedTrailer

        package var refusal: HandshakeRefusal {
            switch self {
            case .tooLong(let limit):
                HandshakeRefusal(status: 413, explanation: "The body is longer than \(limit) bytes; send less.")
            case .malformedChunk: .malformed("The body is not in chunks as of RFC 9112.")
            case .malformedTrailer: .malformed("The fields after the body are malformed or too long.")
            }
        }
    }

    private enum State: Hashable {
        case fixed(left: Int)
        /// Digits of a chunk's size, so many so far.
        case size(Int, digits: Int)
        /// Blanks after the size, which an extension must follow.
        case extensionStart
        /// The rest of the line with the size.
        case extensions
        case sizeLineFeed(Int)
        case data(left: Int)
        case dataCarriageReturn
        case dataLineFeed
        case trailers
        case complete
    }

    /// Bytes of all chunk extensions.
    private static let extensionLimit = 16 << 10

    private let limit: Int
    private var state: State
    private var pendingSize = 0
    private var count = 0
    private var extensionBytes = 0
    private var trailerParser = TrailerParser(limits: HeadLimits())

    /// - Parameter limit: most bytes of the body.
    /// - Throws: `tooLong` if the length is known to be above it.
    package init(_ framing: RequestBodyFraming, limit: Int) throws(Violation) {
        self.limit = limit
        switch framing {
        case .empty: self.state = .complete
        case .length(let length):
            guard length <= limit else { throw .tooLong(limit: limit) }
            self.state = .fixed(left: Int(length))
        case .chunked: self.state = .size(0, digits: 0)
        }
    }

    package var isComplete: Bool { self.state == .complete }

    /// Decodes from offset `consumed` on and advances it, at most to the end of the body.
    /// - Parameter keeps: whether the bytes are appended to `body`, and not dropped.
    package mutating func decode(
        _ bytes: RawSpan, consumed: inout Int, keeps: Bool, into body: inout [UInt8]
    ) throws(Violation) {
        while consumed < bytes.byteCount, self.state != .complete {
            switch self.state {
            case .fixed(let left):
                let taken = self.take(bytes, &consumed, left, keeps, &body)
                self.state = left == taken ? .complete : .fixed(left: left - taken)
            case .data(let left):
                let taken = self.take(bytes, &consumed, left, keeps, &body)
                self.state = left == taken ? .dataCarriageReturn : .data(left: left - taken)
            case .size, .extensionStart, .extensions, .sizeLineFeed, .dataCarriageReturn, .dataLineFeed:
                try self.readFraming(bytes[byte: consumed])
                consumed += 1
            case .trailers: try self.readTrailers(bytes, &consumed)
            case .complete: return
            }
        }
    }

    private func take(
        _ bytes: RawSpan, _ consumed: inout Int, _ left: Int, _ keeps: Bool, _ body: inout [UInt8]
    ) -> Int {
        let taken = min(left, bytes.byteCount - consumed)
        if keeps { body.append(bytes.extracting(consumed..<(consumed + taken))) }
        consumed += taken
        return taken
    }

    /// chunk = chunk-size [ chunk-ext ] CRLF chunk-data CRLF
    private mutating func readFraming(_ byte: UInt8) throws(Violation) {
        switch self.state {
        case .size(let size, let digits):
            if let digit = byte.hexadecimalValue {
                // Fifteen digits cannot overflow; more are no size that anyone sends.
                guard digits < 15 else { throw .malformedChunk }
                self.state = .size(size << 4 | Int(digit), digits: digits + 1)
                return
            }
            guard digits > 0 else { throw .malformedChunk }
            guard size <= self.limit - self.count else { throw .tooLong(limit: self.limit) }
            self.pendingSize = size
            try self.endSize(byte)
        case .extensionStart:
            // No line end: another server could read the size differently.
            guard byte != 0x0D else { throw .malformedChunk }
            try self.endSize(byte)
        case .extensions: try self.readExtension(byte)
        case .sizeLineFeed(let size):
            guard byte == 0x0A else { throw .malformedChunk }
            self.count += size
            self.state = size == 0 ? .trailers : .data(left: size)
        case .dataCarriageReturn:
            guard byte == 0x0D else { throw .malformedChunk }
            self.state = .dataLineFeed
        case .dataLineFeed:
            guard byte == 0x0A else { throw .malformedChunk }
            self.state = .size(0, digits: 0)
        case .fixed, .data, .trailers, .complete: break
        }
    }

    private mutating func endSize(_ byte: UInt8) throws(Violation) {
        switch byte {
        case 0x0D: self.state = .sizeLineFeed(self.pendingSize)
        case UInt8(ascii: ";"): self.state = .extensions
        case _ where byte.isBlank:
            try self.countExtensionByte()
            self.state = .extensionStart
        default: throw .malformedChunk
        }
    }

    private mutating func readExtension(_ byte: UInt8) throws(Violation) {
        if byte == 0x0D { return self.state = .sizeLineFeed(self.pendingSize) }
        guard !byte.isControl else { throw .malformedChunk }
        try self.countExtensionByte()
    }

    private mutating func countExtensionByte() throws(Violation) {
        self.extensionBytes += 1
        guard self.extensionBytes <= Self.extensionLimit else { throw .malformedChunk }
    }

    /// Trailer fields are read to their end and dropped.
    private mutating func readTrailers(_ bytes: RawSpan, _ consumed: inout Int) throws(Violation) {
        var count = 0
        do throws(HeadViolation) {
            let rest = bytes.extracting(consumed..<bytes.byteCount)
            if try self.trailerParser.parse(rest, consumed: &count) != nil { self.state = .complete }
        } catch {
            throw .malformedTrailer
        }
        consumed += count
    }
}
