/// MD5 (RFC 1321), for Digest authentication alone: it withstands nobody who wants two contents with one hash.
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

    /// The 16 bytes of the hash of all so far; more may follow.
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
