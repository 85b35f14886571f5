/// Stands for a request's bytes: equal ones have equal prints, and others by no chance that matters here, as a caller can
/// only fool itself.
enum Fingerprint {
    /// 16 bytes by FNV-1a, in two lanes, and the length.
    static func of(_ bytes: [UInt8]) -> [UInt8] {
        var first: UInt64 = 0xCBF2_9CE4_8422_2325
        var second: UInt64 = 0x8422_2325_CBF2_9CE4
        for byte in bytes {
            first = (first ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
            second = (second ^ UInt64(byte &+ 0x55)) &* 0x0000_0100_0000_01B3
        }
        return [first, second, UInt64(bytes.count)].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
    }
}
