/// How a deflater compresses; two deflaters of equal settings can stand in for each other.
package struct DeflaterSettings: Equatable, Sendable {
    package let format: DeflateFormat
    /// The largest distance that the output reaches back, as a power of two, 8 to 15.
    package let windowBits: Int
    /// 1 (fastest) to 9 (smallest); 0 stores without compressing.
    package let level: Int
    /// How much is spent on the search beside the window, 1 to 9: 2 to the power of this plus 9, in bytes.
    package let memoryLevel: Int

    /// Values outside of their ranges are brought into them.
    package init(format: DeflateFormat, windowBits: Int = 15, level: Int = 6, memoryLevel: Int = 8) {
        self.format = format
        self.windowBits = min(max(windowBits, 8), 15)
        self.level = min(max(level, 0), 9)
        self.memoryLevel = min(max(memoryLevel, 1), 9)
    }

    /// zlib refuses a window of 256 bytes when deflating raw, and its matches reach back 262 bytes less than its
    /// window: with 9 bits asked for, never more than 250 bytes. So 9 keeps every promise made about 8 (RFC 7692
    /// §7.1.2.1), and a peer that remembers 256 bytes can read it.
    var windowBitsForZlib: Int32 { self.format.windowBitsForZlib(max(self.windowBits, 9)) }

    /// Memory that a deflater of these settings holds, in bytes, to within a few KiB.
    package var memoryCost: Int { 1 << (max(self.windowBits, 9) + 2) + 1 << (self.memoryLevel + 9) }
}
