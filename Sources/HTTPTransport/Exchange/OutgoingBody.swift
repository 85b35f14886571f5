import ByteKernels
import NIOCore

/// A body on its way out: pulls pieces from the source into one buffer, and holds the source to its length.
package struct OutgoingBody {
    package enum Step {
        case piece(ByteBuffer)
        case end
        case later
        case failed(BodyFailure)
    }

    /// Largest piece, in bytes.
    package static let pieceLimit = 256 << 10

    package let source: any BodySource
    /// `nil`: sent chunked, to any length.
    private let length: Int64?
    private var remaining: Int64?
    private var buffer = ByteBuffer()
    /// Whether anything was pulled since the last rewinding.
    private(set) var hasBeenRead = false

    package init(_ source: any BodySource, length: Int64?) {
        self.source = source
        self.length = length
        self.remaining = length
    }

    /// Whether everything that was announced has been pulled.
    package var isExhausted: Bool { self.remaining == 0 }

    /// Before the next is asked for, the piece is to be dropped: they share a buffer.
    package mutating func next() -> Step {
        if self.remaining == 0 { return .end }
        self.hasBeenRead = true
        // A byte beyond the length shows a source that has too much.
        let count = Int(min(Int64(Self.pieceLimit), (self.remaining ?? Int64(Self.pieceLimit)).addingOne))
        if self.buffer.readableBytes < count { self.buffer = ByteBuffer(repeating: 0, count: count) }
        switch self.read(count) {
        case .bytes(let given): return self.makePiece(max(0, min(given, count)))
        case .end:
            self.buffer = ByteBuffer()
            guard let remaining = self.remaining else { return .end }
            return .failed(.tooShort(missing: remaining))
        case .later: return .later
        case .failed: return .failed(.sourceFailed)
        }
    }

    private mutating func read(_ count: Int) -> BodyRead {
        let source = self.source
        var all = self.buffer.mutableReadableBytesSpan
        var span = all._mutatingExtracting(0..<count)
        return source.read(into: &span)
    }

    private mutating func makePiece(_ given: Int) -> Step {
        guard given > 0, let piece = self.buffer.getSlice(at: self.buffer.readerIndex, length: given) else {
            return .later
        }
        if let remaining = self.remaining {
            guard given <= remaining else { return .failed(.tooLong) }
            self.remaining = remaining - Int64(given)
        }
        return .piece(piece)
    }

    /// - Returns: whether the body can be sent from its beginning again.
    package mutating func rewind() -> Bool {
        guard !self.hasBeenRead || self.source.rewind() else { return false }
        self = OutgoingBody(self.source, length: self.length)
        return true
    }
}

extension Int64 {
    fileprivate var addingOne: Int64 { self == .max ? self : self + 1 }
}

/// What a request carries.
package enum RequestBody: Sendable {
    case none
    /// May be empty; Content-Length is said in any case.
    case bytes([UInt8])
    /// Pulled from `source`. With a length it is announced and held to: a source that gives more or less fails the
    /// exchange. Without, the body is sent chunked.
    case source(any BodySource, length: Int64?)

    /// `nil` if it is not known before the end.
    package var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .source(_, let length): length
        }
    }

    var isNone: Bool {
        if case .none = self { true } else { false }
    }
}

/// Gives the body of a request piece by piece, as fast as the connection takes it and no faster.
///
/// Called on the exchange's event loop, so it must not block for long; one that has to wait answers `.later`.
package protocol BodySource: AnyObject, Sendable {
    /// Fills the front of `room`, which is never empty. Not called again after `.end` or `.failed`, unless rewound.
    func read(into buffer: inout MutableRawSpan) -> BodyRead

    /// Begins again from the first byte, because the connection was lost before the server answered.
    /// - Returns: `false` if that cannot be done; the request is then not repeated.
    func rewind() -> Bool
}

/// A body that is in memory.
final class BytesSource: BodySource, @unchecked Sendable {
    private let bytes: [UInt8]
    /// Confined to the exchange's event loop.
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func read(into buffer: inout MutableRawSpan) -> BodyRead {
        let count = min(buffer.byteCount, self.bytes.count - self.position)
        guard count > 0 else { return .end }
        let start = self.position
        self.bytes.withRawSpan { buffer.copy($0.extracting(start..<(start + count)), at: 0) }
        self.position += count
        return .bytes(count)
    }

    func rewind() -> Bool {
        self.position = 0
        return true
    }
}

/// What a body source had to give.
package enum BodyRead: Sendable, Hashable {
    /// So many bytes, at least 1, were put at the front of the room.
    case bytes(Int)
    /// Everything was given.
    case end
    /// Nothing now; `Exchange.bodyAvailable` will say when.
    case later
    /// There will be no more, though more was promised. The exchange fails with `.body(.sourceFailed)`.
    case failed
}

/// Why a request's body could not be sent whole.
package enum BodyFailure: Sendable, Hashable {
    /// The source answered `.failed`; it knows why.
    case sourceFailed
    /// The source ended before the length that was announced.
    case tooShort(missing: Int64)
    /// The source went on behind the length that was announced.
    case tooLong
}
