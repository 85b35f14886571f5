import ByteKernels

/// The buffer that a loop's secure connections decrypt into: one for all, since none of them keeps anything in it.
final class PlaintextBuffer {
    /// Four full TLS records.
    static let capacity = 64 << 10

    private var bytes = [UInt8](repeating: 0, count: PlaintextBuffer.capacity)

    /// Lends the buffer. A second lending inside the first gets an array of its own.
    func lend<R>(_ body: (inout MutableRawSpan) -> R) -> R {
        var taken: [UInt8] = []
        swap(&taken, &self.bytes)
        if taken.isEmpty { taken = [UInt8](repeating: 0, count: Self.capacity) }
        defer { self.bytes = taken }
        return taken.withMutableRawSpan(body)
    }
}
