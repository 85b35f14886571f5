/// Cuts bytes into the blocks of 64 that MD5 and SHA-256 work on, and puts their padding behind the last.
struct HashBlocks: Sendable {
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    init() {
        self.pending.reserveCapacity(64)
    }

    /// Hands on every block that is full; what is left waits.
    mutating func update(_ bytes: some Collection<UInt8>, block: ([UInt8]) -> Void) {
        self.count &+= UInt64(bytes.count)
        for byte in bytes {
            self.pending.append(byte)
            if self.pending.count == 64 {
                block(self.pending)
                self.pending.removeAll(keepingCapacity: true)
            }
        }
    }

    /// The last block or two: a bit, zeros, and the count of bits.
    func finish(bigEndian: Bool, block: ([UInt8]) -> Void) {
        var tail = self.pending
        tail.append(0x80)
        while tail.count % 64 != 56 { tail.append(0) }
        let bits = self.count &<< 3
        for index in 0..<8 {
            let shift = UInt64(8 * (bigEndian ? 7 - index : index))
            tail.append(UInt8(truncatingIfNeeded: bits &>> shift))
        }
        for start in stride(from: 0, to: tail.count, by: 64) { block(Array(tail[start..<start + 64])) }
    }
}
