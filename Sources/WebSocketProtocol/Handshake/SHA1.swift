/// SHA-1, for nothing but `Sec-WebSocket-Accept`, which needs no protection from forgery (RFC 6455 §10.8).
///
/// - Source: FIPS 180-4 §6.1.
package enum SHA1 {
    /// The twenty bytes of the digest of `message`.
    package static func digest(_ message: [UInt8]) -> [UInt8] {
        var state: InlineArray<5, UInt32> = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        let padded = Self.pad(message)
        for start in stride(from: 0, to: padded.count, by: 64) {
            Self.absorb(padded, from: start, into: &state)
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
        while padded.count % 64 != 56 { padded.append(0) }
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
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for round in 0..<80 {
            if round >= 16 {
                let mixed =
                    words[(round + 13) & 15] ^ words[(round + 8) & 15] ^ words[(round + 2) & 15] ^ words[round & 15]
                words[round & 15] = Self.rotate(mixed, by: 1)
            }
            let next = Self.rotate(a, by: 5) &+ Self.choose(round, b, c, d) &+ e &+ words[round & 15]
            (a, b, c, d, e) = (next, a, Self.rotate(b, by: 30), c, d)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
    }

    /// The function of the round with its constant (FIPS 180-4 §4.1.1 and §4.2.1).
    private static func choose(_ round: Int, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> UInt32 {
        switch round {
        case ..<20: ((b & c) ^ (~b & d)) &+ 0x5A82_7999
        case ..<40: (b ^ c ^ d) &+ 0x6ED9_EBA1
        case ..<60: ((b & c) ^ (b & d) ^ (c & d)) &+ 0x8F1B_BCDC
        default: (b ^ c ^ d) &+ 0xCA62_C1D6
        }
    }

    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
        word &<< count | word &>> (32 &- count)
    }
}
