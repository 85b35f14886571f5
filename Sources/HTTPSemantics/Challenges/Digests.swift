/// Splits a message into the 64-byte blocks of MD5 and SHA-256, with padding.
private struct HashBlocks: Sendable {
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    /// Calls `block` for each complete block, with the bytes and its offset; buffers the rest.
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

    /// Calls `block` for the last one or two blocks: a one bit, zeros, and the message length in bits.
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

/// MD5 (RFC 1321), only for Digest authentication: it is not collision-resistant.
package struct MD5: Sendable {
    private static let constants: [UInt32] = [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
        0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
        0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
        0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
        0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
        0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
        0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
        0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ]

    private var state = SIMD4<UInt32>(0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476)
    private var blocks = HashBlocks()

    package init() {}

    package mutating func update(_ bytes: Span<UInt8>) {
        var state = self.state
        self.blocks.update(bytes) { state = Self.mixed(state, $0, at: $1) }
        self.state = state
    }

    /// The 16-byte digest of all bytes so far; more may follow.
    package func finalize() -> [UInt8] {
        var state = self.state
        self.blocks.finish(bigEndian: false) { state = Self.mixed(state, $0, at: $1) }
        return (0..<16).map { UInt8(truncatingIfNeeded: state[$0 / 4] &>> UInt32(8 * ($0 % 4))) }
    }

    private static func mixed(_ state: SIMD4<UInt32>, _ bytes: Span<UInt8>, at start: Int) -> SIMD4<UInt32> {
        var words = InlineArray<16, UInt32>(repeating: 0)
        for index in 0..<64 { words[index / 4] |= UInt32(bytes[start + index]) &<< UInt32(8 * (index % 4)) }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        let constants = self.constants
        for step in 0..<64 {
            let (function, word) = self.round(step, b, c, d)
            let sum = a &+ function &+ constants[step] &+ words[word]
            let shift = self.shift(step)
            (a, d, c, b) = (d, c, b, b &+ (sum &<< shift | sum &>> (32 - shift)))
        }
        return state &+ SIMD4(a, b, c, d)
    }

    @inline(__always)
    private static func round(_ step: Int, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> (UInt32, word: Int) {
        switch step / 16 {
        case 0: (b & c | ~b & d, step)
        case 1: (d & b | ~d & c, (5 * step + 1) % 16)
        case 2: (b ^ c ^ d, (3 * step + 5) % 16)
        default: (c ^ (b | ~d), 7 * step % 16)
        }
    }

    @inline(__always)
    private static func shift(_ step: Int) -> UInt32 {
        switch (step / 16, step % 4) {
        case (0, 0): 7
        case (0, 1): 12
        case (0, 2): 17
        case (0, _): 22
        case (1, 0): 5
        case (1, 1): 9
        case (1, 2): 14
        case (1, _): 20
        case (2, 0): 4
        case (2, 1): 11
        case (2, 2): 16
        case (2, _): 23
        case (_, 0): 6
        case (_, 1): 10
        case (_, 2): 15
        default: 21
        }
    }
}

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

    /// The 32-byte digest of all bytes so far; more may follow.
    package func finalize() -> [UInt8] {
        var state = self.state
        self.blocks.finish(bigEndian: true) { state = Self.mixed(state, $0, at: $1) }
        return (0..<32).map { UInt8(truncatingIfNeeded: state[$0 / 4] &>> UInt32(24 - 8 * ($0 % 4))) }
    }

    private static func mixed(_ state: SIMD8<UInt32>, _ bytes: Span<UInt8>, at start: Int) -> SIMD8<UInt32> {
        // A step needs only the last 16 of the schedule's 64 words.
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
