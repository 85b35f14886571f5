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
    private var room = ByteBuffer()
    /// Whether anything was pulled since the last rewinding.
    private(set) var isTouched = false

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
        self.isTouched = true
        // A byte beyond the length shows a source that has too much.
        let count = Int(min(Int64(Self.pieceLimit), (self.remaining ?? Int64(Self.pieceLimit)).addingOne))
        if self.room.readableBytes < count { self.room = ByteBuffer(repeating: 0, count: count) }
        switch self.read(count) {
        case .bytes(let given): return self.take(max(0, min(given, count)))
        case .end:
            self.room = ByteBuffer()
            guard let remaining = self.remaining else { return .end }
            return .failed(.tooShort(missing: remaining))
        case .later: return .later
        case .failed: return .failed(.sourceFailed)
        }
    }

    private mutating func read(_ count: Int) -> BodyRead {
        let source = self.source
        var all = self.room.mutableReadableBytesSpan
        var span = all._mutatingExtracting(0..<count)
        return source.read(into: &span)
    }

    private mutating func take(_ given: Int) -> Step {
        guard given > 0, let piece = self.room.getSlice(at: self.room.readerIndex, length: given) else { return .later }
        if let remaining = self.remaining {
            guard given <= remaining else { return .failed(.tooLong) }
            self.remaining = remaining - Int64(given)
        }
        return .piece(piece)
    }

    /// - Returns: whether the body can be sent from its beginning again.
    package mutating func rewind() -> Bool {
        guard !self.isTouched || self.source.rewind() else { return false }
        self = OutgoingBody(self.source, length: self.length)
        return true
    }
}

extension Int64 {
    fileprivate var addingOne: Int64 { self == .max ? self : self + 1 }
}
