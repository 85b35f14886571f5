extension RawSpan {
    /// The offset of the first byte from `start` on that begins, or may begin, a line break: LF, VT, FF, CR, and the
    /// first bytes of U+0085 (`C2`), U+2028 and U+2029 (`E2`), which begin other characters too.
    /// - Returns: `byteCount` if there is none.
    package func firstLineBreakCandidate(from start: Int) -> Int {
        precondition(start >= 0 && start <= self.byteCount)
        return unsafe self.withUnsafeBytes { bytes in
            var offset = start
            while offset <= bytes.count - 8 {
                let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                let marks = lineMarks(UInt64(littleEndian: word))
                if marks != 0 { return offset + marks.trailingZeroBitCount / 8 }
                offset += 8
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

/// Sets the highest bit of each byte that may begin a line break. No sum below carries into the next byte, so the marks
/// are exact.
@inline(__always)
private func lineMarks(_ bytes: UInt64) -> UInt64 {
    let each: UInt64 = 0x0101_0101_0101_0101
    let low = bytes & (each &* 0x7F)
    let isEnd = (low &+ each &* (0x80 - 0x0A)) & ~(low &+ each &* (0x80 - 0x0E)) & ~bytes
    // C2 and E2 differ in one bit.
    let lead = (bytes | each &* 0x20) ^ (each &* 0xE2)
    let isLead = ~((lead & (each &* 0x7F)) &+ (each &* 0x7F) | lead)
    return (isEnd | isLead) & (each &* 0x80)
}
