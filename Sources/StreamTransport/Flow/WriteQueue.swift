import ByteKernels
import DequeModule

/// Bytes that wait for the kernel, in pieces. Owns no memory while empty.
struct WriteQueue {
    /// Small writes are gathered into pieces of up to this size.
    private static let pieceSize = 64 << 10
    /// Pieces given to one sending call.
    private static let piecesPerCall = 16

    private var pieces: Deque<[UInt8]> = []
    /// Bytes of the first piece that were sent.
    private var sentOfFirst = 0
    private(set) var count = 0

    var isEmpty: Bool {
        self.count == 0
    }

    mutating func append(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        self.count += bytes.byteCount
        if let last = self.pieces.indices.last, self.pieces[last].count + bytes.byteCount <= Self.pieceSize {
            self.pieces[last].append(bytes)
        } else {
            self.pieces.append([UInt8](bytes))
        }
    }

    mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        // Many small ones would fill calls that take a few pieces each.
        guard piece.count > Self.pieceSize / 2 else { return piece.withRawSpan { self.append($0) } }
        self.count += piece.count
        self.pieces.append(piece)
    }

    /// Gives the waiting bytes to one sending call and drops what it took.
    /// - Parameter send: gives the bytes taken, or a negated error number.
    mutating func drain(_ send: (_ pieces: [[UInt8]], _ skipping: Int) -> Int) -> Int {
        let taken = send(Array(self.pieces.prefix(Self.piecesPerCall)), self.sentOfFirst)
        if taken > 0 { self.drop(taken) }
        return taken
    }

    private mutating func drop(_ taken: Int) {
        self.count -= taken
        var left = taken + self.sentOfFirst
        while let first = self.pieces.first, left >= first.count {
            left -= first.count
            self.pieces.removeFirst()
        }
        self.sentOfFirst = left
        if self.pieces.isEmpty { self.removeAll() }
    }

    mutating func removeAll() {
        self.pieces = []
        self.sentOfFirst = 0
        self.count = 0
    }
}
