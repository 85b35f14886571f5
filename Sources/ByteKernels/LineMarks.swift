/// Finding where lines of text may end, and making text of what lies between.
extension RawSpan {
    /// The offset of the first byte, from `start` on, with which a line end begins or may begin: LF, VT, FF, CR, and the
    /// first bytes of U+0085 (`C2`), U+2028 and U+2029 (`E2`), which begin other characters too.
    /// - Returns: `byteCount` if there is none.
    package func firstLineMark(from start: Int) -> Int {
        precondition(start >= 0 && start <= self.byteCount)
        return unsafe self.withUnsafeBytes { bytes in
            var offset = start
            while offset <= bytes.count - 16 {
                let found = unsafe lineMarks(bytes.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self))
                if found[0] != 0 { return offset + found[0].trailingZeroBitCount / 8 }
                if found[1] != 0 { return offset + 8 + found[1].trailingZeroBitCount / 8 }
                offset += 16
            }
            while offset < bytes.count {
                let byte = unsafe bytes[offset]
                if byte &- 0x0A < 4 || byte | 0x20 == 0xE2 { return offset }
                offset += 1
            }
            return offset
        }
    }
}

/// All bits of each byte that may begin a line end, in memory order.
@inline(__always)
private func lineMarks(_ bytes: SIMD16<UInt8>) -> SIMD2<UInt64> {
    let isEnd = (bytes &- 0x0A) .< SIMD16(repeating: 4)
    let isLead = (bytes | 0x20) .== SIMD16(repeating: 0xE2)
    let marks = unsafe unsafeBitCast(isEnd .| isLead, to: SIMD2<UInt64>.self)
    return SIMD2(marks[0].littleEndian, marks[1].littleEndian)
}

extension String {
    /// The text that `bytes` are in UTF-8; what is none of it becomes U+FFFD.
    package init(repairing bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
