import CZlib

/// Lending buffers to zlib for the length of one call. zlib counts in 32 bits, so a turn is 4 GiB at most.
extension UnsafeMutablePointer<z_stream> {
    /// Sets the input. zlib only reads it, although its declaration is older than `const`.
    /// - Returns: how many bytes are offered.
    func offer(_ source: UnsafeRawBufferPointer, from offset: Int) -> Int {
        let count = UInt32(clamping: source.count - offset)
        unsafe self.pointee.avail_in = count
        if count > 0, let start = source.baseAddress {
            unsafe self.pointee.next_in = UnsafeMutablePointer<UInt8>(
                mutating: (start + offset).assumingMemoryBound(to: UInt8.self))
        }
        return Int(count)
    }

    /// Sets the output.
    /// - Returns: how many bytes of room there are.
    func lend(_ target: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        let count = UInt32(clamping: target.count - offset)
        unsafe self.pointee.avail_out = count
        if count > 0, let start = target.baseAddress {
            unsafe self.pointee.next_out = (start + offset).assumingMemoryBound(to: UInt8.self)
        }
        return Int(count)
    }

    /// Leaves no pointer behind to memory that was only lent.
    func takeBack() {
        unsafe self.pointee.next_in = nil
        unsafe self.pointee.avail_in = 0
        unsafe self.pointee.next_out = nil
        unsafe self.pointee.avail_out = 0
    }
}
