/// Compressed data encoded bit by bit without a compressor (RFC 1951 §3.2.6).
struct FixedBlock {
    private var bits: [Bool] = []

    /// A message of one byte, and then `matches` times 258 of it, as it goes into frames (RFC 7692 §7.2.1).
    static func repeating(_ byte: UInt8, matches: Int) -> [UInt8] {
        var block = FixedBlock()
        block.number(0, bits: 1)  // not the last block
        block.number(1, bits: 2)  // fixed codes
        block.code(0x30 + UInt16(byte), bits: 8)  // below 144
        for _ in 0..<matches {
            block.code(0b1100_0101, bits: 8)  // 285: 258 bytes
            block.code(0, bits: 5)  // from 1 byte back
        }
        block.code(0, bits: 7)  // the end of the block
        block.number(0, bits: 3)  // an empty stored block, whose length is left out
        return block.bytes
    }

    private mutating func number(_ value: UInt16, bits count: Int) {
        for place in 0..<count { self.bits.append(value >> UInt16(place) & 1 == 1) }
    }

    /// Codes are written with their highest bit first.
    private mutating func code(_ value: UInt16, bits count: Int) {
        for place in (0..<count).reversed() { self.bits.append(value >> UInt16(place) & 1 == 1) }
    }

    private var bytes: [UInt8] {
        stride(from: 0, to: self.bits.count, by: 8).map { start in
            self.bits[start..<min(start + 8, self.bits.count)].enumerated().reduce(0) { byte, bit in
                byte | (bit.element ? 1 << UInt8(bit.offset) : 0)
            }
        }
    }
}
