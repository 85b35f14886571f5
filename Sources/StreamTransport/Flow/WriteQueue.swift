import DequeModule

/// Bytes that wait for the kernel, in pieces. Owns no memory while empty.
struct WriteQueue {
    /// Small writes are gathered into pieces of up to this size.
    private static let pieceSize = 64 << 10

    private var pieces: Deque<[UInt8]> = []
    /// Bytes of the first piece that were sent.
    private var sentOfFirst = 0
    private(set) var count = 0

    var isEmpty: Bool {
        self.count == 0
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        self.count += bytes.count
        if let last = self.pieces.indices.last, self.pieces[last].count + bytes.count <= Self.pieceSize {
            unsafe self.pieces[last].append(contentsOf: bytes)
        } else {
            self.pieces.append(unsafe Array(bytes))
        }
    }

    mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        self.count += piece.count
        self.pieces.append(piece)
    }

    /// Lends the waiting bytes to one sending call and drops what it took.
    /// - Parameter send: gives the bytes taken, or a negated error number.
    mutating func drain(_ send: ([UnsafeRawBufferPointer]) -> Int) -> Int {
        var lent = unsafe [UnsafeRawBufferPointer]()
        for index in 0..<min(self.pieces.count, 16) {
            let piece = self.pieces[index]
            // The pieces outlive the call: nothing is changed until `send` has returned.
            unsafe piece.withUnsafeBytes { bytes in
                let start = index == 0 ? self.sentOfFirst : 0
                unsafe lent.append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
            }
        }
        let taken = unsafe send(lent)
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
