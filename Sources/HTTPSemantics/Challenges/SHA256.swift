/// SHA-256 (FIPS 180-4 §6.2), for Digest authentication.
package struct SHA256: Sendable {
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    private var state = SIMD8<UInt32>(
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19)
    private var blocks = HashBlocks()

    package init() {}

    package mutating func update(_ bytes: Span<UInt8>) {
        var state = self.state
        self.blocks.update(bytes) { state = Self.mixed(state, $0, at: $1) }
        self.state = state
    }

    /// The 32 bytes of the hash of all so far; more may follow.
    package func finalize() -> [UInt8] {
        var state = self.state
        self.blocks.finish(bigEndian: true) { state = Self.mixed(state, $0, at: $1) }
        return (0..<32).map { UInt8(truncatingIfNeeded: state[$0 / 4] &>> UInt32(24 - 8 * ($0 % 4))) }
    }

    private static func mixed(_ state: SIMD8<UInt32>, _ bytes: Span<UInt8>, at start: Int) -> SIMD8<UInt32> {
        // Of the schedule's 64 words, the last 16 are all that a step needs.
        var words = InlineArray<16, UInt32>(repeating: 0)
        for index in 0..<64 { words[index / 4] = words[index / 4] &<< 8 | UInt32(bytes[start + index]) }
        let constants = self.constants
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for step in 0..<64 {
            if step >= 16 {
                let near = words[(step + 14) & 15]
                let far = words[(step + 1) & 15]
                let spread = self.rotated(near, 17) ^ self.rotated(near, 19) ^ near &>> 10
                let other = self.rotated(far, 7) ^ self.rotated(far, 18) ^ far &>> 3
                words[step & 15] = words[step & 15] &+ spread &+ words[(step + 9) & 15] &+ other
            }
            let mix1 = self.rotated(e, 6) ^ self.rotated(e, 11) ^ self.rotated(e, 25)
            let first = h &+ mix1 &+ (e & f ^ ~e & g) &+ constants[step] &+ words[step & 15]
            let mix0 = self.rotated(a, 2) ^ self.rotated(a, 13) ^ self.rotated(a, 22)
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ mix0 &+ (a & b ^ a & c ^ b & c))
        }
        return state &+ SIMD8(a, b, c, d, e, f, g, h)
    }

    @inline(__always)
    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word &>> count | word &<< (32 - count)
    }
}
