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

    private enum State {
        case fixed(left: Int)
        case chunks(ChunkReader)
        case trailers
        case complete
    }

    /// Bytes of all chunk extensions.
    private static let extensionLimit = 16 << 10
    /// Of a chunk's size: more is no size that anyone sends.
    private static let digitLimit = 15
    /// Bytes between two pieces of content: the longest size and extension, and line ends.
    private static let framingLimit = Self.extensionLimit + Self.digitLimit + 8

    private let limit: Int
    private var state: State
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
        case .chunked:
            self.state = .chunks(
                ChunkReader(
                    limit: Self.framingLimit, extensionLimit: Self.extensionLimit, digitLimit: Self.digitLimit,
                    contentLimit: Int64(limit)))
        }
    }

    package var isComplete: Bool { if case .complete = self.state { true } else { false } }

    /// Decodes from offset `consumed` on and advances it, at most to the end of the body.
    /// - Parameter keeps: whether the bytes are appended to `body`, and not dropped.
    package mutating func decode(
        _ bytes: RawSpan, consumed: inout Int, keeps: Bool, into body: inout [UInt8]
    ) throws(Violation) {
        while consumed < bytes.byteCount {
            switch self.state {
            case .fixed(let left):
                let range = consumed..<(consumed + min(left, bytes.byteCount - consumed))
                if keeps { body.append(bytes.extracting(range)) }
                consumed = range.upperBound
                self.state = left == range.count ? .complete : .fixed(left: left - range.count)
            case .chunks(let reader):
                let range = try self.readChunk(bytes, &consumed, reader)
                if keeps, let range { body.append(bytes.extracting(range)) }
            case .trailers: try self.readTrailers(bytes, &consumed)
            case .complete: return
            }
        }
    }

    /// - Returns: the bytes that are content.
    private mutating func readChunk(
        _ bytes: RawSpan, _ consumed: inout Int, _ reader: ChunkReader
    ) throws(Violation) -> Range<Int>? {
        var reader = reader
        let step: ChunkReader.Step
        do throws(ChunkViolation) {
            step = try reader.next(bytes, from: consumed)
        } catch {
            throw error == .contentTooLong ? .tooLong(limit: self.limit) : .malformedChunk
        }
        self.state = .chunks(reader)
        switch step {
        case .more: consumed = bytes.byteCount
        case .trailers(let start): (consumed, self.state) = (start, .trailers)
        case .content(let range):
            consumed = range.upperBound
            return range
        }
        return nil
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
