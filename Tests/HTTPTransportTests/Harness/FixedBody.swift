import ByteKernels
import HTTPTransport
import Synchronization

/// A body in memory, which may be one that cannot be sent again.
final class FixedBody: BodySource {
    private let bytes: [UInt8]
    private let canRewind: Bool
    private let position = Mutex(0)

    init(_ bytes: [UInt8], canRewind: Bool = true) {
        self.bytes = bytes
        self.canRewind = canRewind
    }

    func read(into room: inout MutableRawSpan) -> BodyRead {
        self.position.withLock { position in
            let piece = self.bytes[position..<min(self.bytes.count, position + room.byteCount)]
            guard !piece.isEmpty else { return .end }
            Array(piece).withRawSpan { room.copy($0, at: 0) }
            position += piece.count
            return .bytes(piece.count)
        }
    }

    func rewind() -> Bool {
        if self.canRewind { self.position.withLock { $0 = 0 } }
        return self.canRewind
    }
}
