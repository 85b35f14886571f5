import ByteKernels

extension System {
    /// Reads once, at most `limit` bytes.
    package func receive(_ descriptor: Descriptor, atMost limit: Int) -> ReceivedBytes {
        var bytes = [UInt8](repeating: 0, count: max(1, limit))
        let result = bytes.withMutableRawSpan { self.receive(descriptor, into: &$0) }
        if result == 0 { return .end }
        guard result > 0 else { return .failed(SystemError(Int32(truncatingIfNeeded: -result))) }
        bytes.removeLast(bytes.count - result)
        return .bytes(bytes)
    }

    /// Writes once.
    /// - Returns: how many bytes, from the first on, the kernel took.
    package func send(_ descriptor: Descriptor, _ bytes: ArraySlice<UInt8>) -> Result<Int, SystemError> {
        let taken = Array(bytes).withRawSpan { self.send(descriptor, $0) }
        return taken >= 0 ? .success(taken) : .failure(SystemError(Int32(truncatingIfNeeded: -taken)))
    }
}
