import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// A body that is in memory, and is copied only on its way out.
package final class DataBody: UploadBody {
    private let data: Data
    private let position = Atomic<Int>(0)

    package init(_ data: Data) {
        self.data = data
    }

    package var length: Int64 { Int64(self.data.count) }
    package var bytesGiven: Int64 { Int64(self.position.load(ordering: .relaxed)) }
    package var failure: (any Error)? { nil }

    package func read(into room: inout MutableRawSpan) -> BodyRead {
        let start = self.position.load(ordering: .relaxed)
        let count = min(room.byteCount, self.data.count - start)
        guard count > 0 else { return .end }
        room.copy(self.data.bytes.extracting(start..<(start + count)), at: 0)
        self.position.store(start + count, ordering: .relaxed)
        return .bytes(count)
    }

    package func rewind() -> Bool {
        self.position.store(0, ordering: .relaxed)
        return true
    }

    /// It is never late.
    package func whenAvailable(_ work: @escaping @Sendable () -> Void) {}
    package func close() {}
}
