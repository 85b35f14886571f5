import ByteKernels
import Synchronization

/// A request's body while it is sent: pulls pieces from the source into one buffer, and enforces the announced length.
package struct OutgoingBody {
    package enum Step {
        /// So many bytes, which `withPiece` shows until the next call.
        case piece(Int)
        case end
        case later
        case failed(BodyFailure)
    }

    /// Largest piece, in bytes.
    package static let pieceLimit = 256 << 10

    package let source: any BodySource
    /// `nil`: sent chunked, with any length.
    private let length: Int64?
    private var remaining: Int64?
    private var buffer: [UInt8] = []
    /// Whether anything was read since the last rewind.
    private(set) var hasBeenRead = false

    package init(_ source: any BodySource, length: Int64?) {
        self.source = source
        self.length = length
        self.remaining = length
    }

    /// Whether the announced length has been read.
    package var isExhausted: Bool { self.remaining == 0 }

    package mutating func next() -> Step {
        if self.remaining == 0 { return .end }
        self.hasBeenRead = true
        // One byte more than the length detects a source that is too long.
        let remaining = self.remaining ?? .max
        let count = Int(min(Int64(Self.pieceLimit), remaining == .max ? remaining : remaining + 1))
        if self.buffer.count < count { self.buffer = [UInt8](repeating: 0, count: count) }
        switch self.read(count) {
        case .bytes(let given): return self.makePiece(max(0, min(given, count)))
        case .end:
            self.buffer = []
            guard let remaining = self.remaining else { return .end }
            return .failed(.tooShort(missing: remaining))
        case .later: return .later
        case .failed: return .failed(.sourceFailed)
        }
    }

    private mutating func read(_ count: Int) -> BodyRead {
        let source = self.source
        return self.buffer.withMutableRawSpan { all in
            var room = all._mutatingExtracting(0..<count)
            return source.read(into: &room)
        }
    }

    private mutating func makePiece(_ count: Int) -> Step {
        guard count > 0 else { return .later }
        if let remaining = self.remaining {
            guard count <= remaining else { return .failed(.tooLong) }
            self.remaining = remaining - Int64(count)
        }
        return .piece(count)
    }

    package func withPiece<R>(_ count: Int, _ body: (RawSpan) -> R) -> R {
        self.buffer.withRawSpan { body($0.extracting(0..<count)) }
    }

    /// - Returns: whether the body can be sent from its beginning again.
    package mutating func rewind() -> Bool {
        guard !self.hasBeenRead || self.source.rewind() else { return false }
        self = OutgoingBody(self.source, length: self.length)
        return true
    }
}

package enum RequestBody: Sendable {
    case none
    /// May be empty; Content-Length is sent in any case.
    case bytes([UInt8])
    /// Pulled from `source`. A length is announced and enforced: a source that gives more or less fails the exchange.
    /// Without a length the body is sent chunked.
    case source(any BodySource, length: Int64?)

    /// `nil` if unknown.
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

/// Supplies the body of a request piece by piece, at the speed of the connection.
///
/// Called on the exchange's loop, so it must not block; answer `.later` instead.
package protocol BodySource: AnyObject, Sendable {
    /// Fills the front of `buffer`, which is never empty. Not called again after `.end` or `.failed`, unless rewound.
    func read(into buffer: inout MutableRawSpan) -> BodyRead

    /// Starts again from the first byte, because the connection was lost before the server answered.
    /// - Returns: `false` if that is impossible; the request is then not repeated.
    func rewind() -> Bool

    /// Calls `work`, on any thread, when bytes are available after `read` answered `.later`. Set by the exchange when it
    /// starts.
    func whenAvailable(_ work: @escaping @Sendable () -> Void)

    /// The exchange has ended; `read` is not called any more.
    func close()
}

extension BodySource {
    /// For a source that never answers `.later`.
    package func whenAvailable(_ work: @escaping @Sendable () -> Void) {}
    package func close() {}
}

/// A body in memory.
final class BytesSource: BodySource {
    private let bytes: [UInt8]
    /// Used on the exchange's loop.
    private let position = Atomic(0)

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func read(into buffer: inout MutableRawSpan) -> BodyRead {
        let start = self.position.load(ordering: .relaxed)
        let count = min(buffer.byteCount, self.bytes.count - start)
        guard count > 0 else { return .end }
        self.bytes.withRawSpan { buffer.copy($0.extracting(start..<(start + count)), at: 0) }
        self.position.store(start + count, ordering: .relaxed)
        return .bytes(count)
    }

    func rewind() -> Bool {
        self.position.store(0, ordering: .relaxed)
        return true
    }
}

/// The result of reading from a body source.
package enum BodyRead: Sendable, Hashable {
    /// This many bytes, at least 1, were written to the front of the buffer.
    case bytes(Int)
    /// The body is complete.
    case end
    /// No bytes now; the handler of `whenAvailable` is called when there are.
    case later
    /// The rest of the body cannot be read. The exchange fails with `.body(.sourceFailed)`.
    case failed
}

/// Why a request's body could not be sent to its end.
package enum BodyFailure: Sendable, Hashable {
    /// The source answered `.failed`; it knows the reason.
    case sourceFailed
    /// The source ended before the announced length.
    case tooShort(missing: Int64)
    /// The source exceeded the announced length.
    case tooLong
}
