import ByteKernels

/// The checksum of RFC 3720 §12.1 (Castagnoli's polynomial, reflected), bit by bit: headers are short and rare.
package enum CRC32C {
    /// - Parameter zeroing: bytes that count as 0, where the checksum itself stands.
    package static func checksum(of bytes: RawSpan, _ range: Range<Int>, zeroing: Range<Int>) -> UInt32 {
        var remainder = UInt32.max
        for offset in range {
            remainder ^= zeroing.contains(offset) ? 0 : UInt32(bytes[byte: offset])
            for _ in 0..<8 {
                remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82F6_3B78 : remainder >> 1
            }
        }
        return ~remainder
    }
}
