/// Cuts bytes into the blocks of 64 that MD5 and SHA-256 work on, and puts their padding behind the last.
struct HashBlocks: Sendable {
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    /// Hands on every block that is full, as where it begins in what; what is left waits.
    mutating func update(_ bytes: Span<UInt8>, block: (Span<UInt8>, Int) -> Void) {
        self.count &+= UInt64(bytes.count)
        var index = 0
        while !self.pending.isEmpty, self.pending.count < 64, index < bytes.count {
            self.pending.append(bytes[index])
            index += 1
        }
        if self.pending.count == 64 {
            block(self.pending.span, 0)
            self.pending.removeAll(keepingCapacity: true)
        }
        while bytes.count - index >= 64 {
            block(bytes, index)
            index += 64
        }
        while index < bytes.count {
            self.pending.append(bytes[index])
            index += 1
        }
    }

    /// The last block or two: a bit, zeros, and the count of bits.
    func finish(bigEndian: Bool, block: (Span<UInt8>, Int) -> Void) {
        var tail = self.pending
        tail.append(0x80)
        while tail.count % 64 != 56 { tail.append(0) }
        let bits = self.count &<< 3
        for index in 0..<8 {
            let shift = UInt64(8 * (bigEndian ? 7 - index : index))
            tail.append(UInt8(truncatingIfNeeded: bits &>> shift))
        }
        for start in stride(from: 0, to: tail.count, by: 64) { block(tail.span, start) }
    }
}
