extension RawSpan {
    /// The byte at `offset`; traps outside `0..<byteCount`, as an array does.
    subscript(byte offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < self.byteCount)
        return unsafe self.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }
}
