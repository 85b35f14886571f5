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
        guard let length = lengths.first?.decimal, lengths.allSatisfy({ $0 == lengths[0] }) else {
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
        /// The rest of the line with the size.
        case extensions
        case sizeLineFeed(Int)
        case data(left: Int)
        case dataCarriageReturn
        case dataLineFeed
        /// In a line after the last chunk; whether it has a byte yet.
        case trailer(isEmpty: Bool)
        case trailerLineFeed(isEmpty: Bool)
        case complete
    }

    /// Bytes of chunk extensions and trailers together.
    private static let overheadLimit = 16 << 10

    private let limit: Int
    private var state: State
    private var pendingSize = 0
    private var count = 0
    private var overhead = 0

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
            case .size, .extensions, .sizeLineFeed, .dataCarriageReturn, .dataLineFeed:
                try self.readFraming(bytes[byte: consumed])
                consumed += 1
            case .trailer, .trailerLineFeed:
                try self.readTrailer(bytes[byte: consumed])
                consumed += 1
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
            try self.endSize(byte, mayFollow: true)
        case .extensions: try self.endSize(byte, mayFollow: false)
        case .sizeLineFeed(let size):
            guard byte == 0x0A else { throw .malformedChunk }
            self.count += size
            self.state = size == 0 ? .trailer(isEmpty: true) : .data(left: size)
        case .dataCarriageReturn:
            guard byte == 0x0D else { throw .malformedChunk }
            self.state = .dataLineFeed
        case .dataLineFeed:
            guard byte == 0x0A else { throw .malformedChunk }
            self.state = .size(0, digits: 0)
        case .fixed, .data, .trailer, .trailerLineFeed, .complete: break
        }
    }

    private mutating func endSize(_ byte: UInt8, mayFollow: Bool) throws(Violation) {
        if byte == 0x0D {
            self.state = .sizeLineFeed(self.pendingSize)
            return
        }
        guard !byte.isControl, !mayFollow || byte == UInt8(ascii: ";") || byte.isBlank else { throw .malformedChunk }
        self.overhead += 1
        guard self.overhead <= Self.overheadLimit else { throw .malformedChunk }
        self.state = .extensions
    }

    /// Trailer fields are read to their end and dropped.
    private mutating func readTrailer(_ byte: UInt8) throws(Violation) {
        self.overhead += 1
        guard self.overhead <= Self.overheadLimit else { throw .malformedTrailer }
        switch (self.state, byte) {
        case (.trailerLineFeed(let isEmpty), 0x0A): self.state = isEmpty ? .complete : .trailer(isEmpty: true)
        case (.trailer(let isEmpty), 0x0D): self.state = .trailerLineFeed(isEmpty: isEmpty)
        case (.trailer, _) where !byte.isControl: self.state = .trailer(isEmpty: false)
        case (_, _): throw .malformedTrailer
        }
    }
}
