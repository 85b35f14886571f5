import ByteKernels

/// A body that is in memory.
final class BytesSource: BodySource, @unchecked Sendable {
    private let bytes: [UInt8]
    /// Confined to the exchange's event loop.
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func read(into room: inout MutableRawSpan) -> BodyRead {
        let count = min(room.byteCount, self.bytes.count - self.position)
        guard count > 0 else { return .end }
        let start = self.position
        self.bytes.withRawSpan { room.copy($0.extracting(start..<(start + count)), at: 0) }
        self.position += count
        return .bytes(count)
    }

    func rewind() -> Bool {
        self.position = 0
        return true
    }
}
