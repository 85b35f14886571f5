/// Up to eight bytes that go before others, as a frame's head goes before its payload: held in a register, and written
/// with one store.
package struct LeadingBytes: Sendable, Hashable {
    /// The first byte is the lowest; what is above `count` bytes is nothing.
    package let bits: UInt64
    /// 0 to 8.
    package let count: Int

    @inlinable
    package init(_ bits: UInt64, count: Int) {
        self.bits = bits
        self.count = min(8, max(0, count))
    }

    /// The byte at `index`, which counts from the first one written.
    @inlinable
    package subscript(index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: self.bits &>> UInt64(8 &* (index & 7)))
    }

    /// Writes them to the front of `target`, and `bytes` behind them; traps where they do not fit.
    /// - Returns: the bytes written.
    package func lead(_ bytes: RawSpan, into target: inout MutableRawSpan) -> Int {
        for index in 0..<self.count {
            target.storeBytes(of: self[index], toByteOffset: index, as: UInt8.self)
        }
        target.copy(bytes, at: self.count)
        return self.count + bytes.byteCount
    }
}
