extension System {
    /// Reads once, at most `limit` bytes.
    package func receive(_ descriptor: Descriptor, atMost limit: Int) -> ReceivedBytes {
        var result = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: max(1, limit)) { buffer, count in
            result = unsafe self.receive(descriptor, into: UnsafeMutableRawBufferPointer(buffer))
            count = max(0, result)
        }
        if result == 0 { return .end }
        return result > 0 ? .bytes(bytes) : .failed(SystemError(Int32(truncatingIfNeeded: -result)))
    }

    /// Writes once.
    /// - Returns: how many bytes, from the first on, the kernel took.
    package func send(_ descriptor: Descriptor, _ bytes: ArraySlice<UInt8>) -> Result<Int, SystemError> {
        let taken = unsafe bytes.withUnsafeBytes { unsafe self.send(descriptor, $0) }
        return taken >= 0 ? .success(taken) : .failure(SystemError(Int32(truncatingIfNeeded: -taken)))
    }
}
