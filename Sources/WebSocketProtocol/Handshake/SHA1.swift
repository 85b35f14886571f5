/// SHA-1, for nothing but `Sec-WebSocket-Accept`, which needs no protection from forgery (RFC 6455 §10.8).
///
/// - Source: FIPS 180-4 §6.1.
package enum SHA1 {
    /// The twenty bytes of the digest of `message`.
    package static func digest(_ message: [UInt8]) -> [UInt8] {
        var state: InlineArray<5, UInt32> = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        let padded = self.pad(message)
        for start in stride(from: 0, to: padded.count, by: 64) {
            self.absorb(padded, from: start, into: &state)
        }
        var digest: [UInt8] = []
        digest.reserveCapacity(20)
        for index in state.indices {
            for shift in stride(from: UInt32(24), through: 0, by: -8) {
                digest.append(UInt8(truncatingIfNeeded: state[index] >> shift))
            }
        }
        return digest
    }

    /// A one bit, zeroes, and the length in bits in the last eight bytes of a block.
    private static func pad(_ message: [UInt8]) -> [UInt8] {
        var padded = message
        padded.reserveCapacity(message.count + 72)
        padded.append(0x80)
        padded.append(contentsOf: repeatElement(0, count: (120 - padded.count % 64) % 64))
        let bitCount = UInt64(message.count) &* 8
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: bitCount >> shift))
        }
        return padded
    }

    private static func absorb(_ bytes: [UInt8], from start: Int, into state: inout InlineArray<5, UInt32>) {
        // The schedule looks back sixteen words at most, so sixteen are kept.
        var words = InlineArray<16, UInt32> { index in
            let offset = start + 4 * index
            return UInt32(bytes[offset]) << 24 | UInt32(bytes[offset + 1]) << 16 | UInt32(bytes[offset + 2]) << 8
                | UInt32(bytes[offset + 3])
        }
        var work = state
        // The functions and constants of §4.1.1 and §4.2.1, each for twenty rounds.
        self.mix(0..<20, &words, &work, 0x5A82_7999) { b, c, d in (b & c) ^ (~b & d) }
        self.mix(20..<40, &words, &work, 0x6ED9_EBA1) { b, c, d in b ^ c ^ d }
        self.mix(40..<60, &words, &work, 0x8F1B_BCDC) { b, c, d in (b & c) ^ (b & d) ^ (c & d) }
        self.mix(60..<80, &words, &work, 0xCA62_C1D6) { b, c, d in b ^ c ^ d }
        for index in state.indices { state[index] &+= work[index] }
    }

    @inline(__always)
    private static func mix(
        _ rounds: Range<Int>, _ words: inout InlineArray<16, UInt32>, _ work: inout InlineArray<5, UInt32>,
        _ constant: UInt32, _ choose: (UInt32, UInt32, UInt32) -> UInt32
    ) {
        var (a, b, c, d, e) = (work[0], work[1], work[2], work[3], work[4])
        for round in rounds {
            if round >= 16 {
                let mixed =
                    words[(round &+ 13) & 15] ^ words[(round &+ 8) & 15] ^ words[(round &+ 2) & 15] ^ words[round & 15]
                words[round & 15] = self.rotate(mixed, by: 1)
            }
            let next = self.rotate(a, by: 5) &+ choose(b, c, d) &+ e &+ words[round & 15] &+ constant
            (a, b, c, d, e) = (next, a, self.rotate(b, by: 30), c, d)
        }
        work = [a, b, c, d, e]
    }

    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
        word &<< count | word &>> (32 &- count)
    }
}
