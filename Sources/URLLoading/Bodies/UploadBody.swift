import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// A body source with what its task needs: progress, the reason of a failure, and closing.
package protocol UploadBody: BodySource {
    /// Bytes read since the start or the last rewind. From any thread.
    var bytesGiven: Int64 { get }

    /// Why `read` answered `.failed`. From any thread.
    var failure: (any Error)? { get }

    /// Calls `work`, on any thread, when bytes are available after `read` answered `.later`; `work` must call
    /// `Exchange.bodyAvailable`. Replaces an earlier handler; set it before the exchange starts.
    func whenAvailable(_ work: @escaping @Sendable () -> Void)

    /// Closes the underlying source after a read in progress; `read` answers `.failed` from now on.
    func close()
}

/// A body in memory.
package final class DataBody: UploadBody {
    private let data: Data
    private let position = Atomic<Int>(0)

    package init(_ data: Data) {
        self.data = data
    }

    package var length: Int64 { Int64(self.data.count) }
    package var bytesGiven: Int64 { Int64(self.position.load(ordering: .relaxed)) }
    package var failure: (any Error)? { nil }

    package func read(into buffer: inout MutableRawSpan) -> BodyRead {
        let start = self.position.load(ordering: .relaxed)
        let count = min(buffer.byteCount, self.data.count - start)
        guard count > 0 else { return .end }
        buffer.copy(self.data.bytes.extracting(start..<(start + count)), at: 0)
        self.position.store(start + count, ordering: .relaxed)
        return .bytes(count)
    }

    package func rewind() -> Bool {
        self.position.store(0, ordering: .relaxed)
        return true
    }

    /// `read` never answers `.later`.
    package func whenAvailable(_ work: @escaping @Sendable () -> Void) {}
    package func close() {}
}

/// Reads a stream of the program: opens it unless it is open, and closes it. Reads block; `hasBytesAvailable` is not used.
final class StreamReader: BodyReader, @unchecked Sendable {
    let chunkSize = 64 << 10
    let isRepeatable = false
    private let stream: InputStream
    private var isOpened = false

    init(_ stream: InputStream) {
        self.stream = stream
    }

    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int {
        if !self.isOpened {
            self.isOpened = true
            if self.stream.streamStatus == .notOpen { self.stream.open() }
        }
        let count = self.stream.read(&chunk, maxLength: chunk.count)
        // Some streams report a failure by returning 0.
        if count > 0 || count == 0 && self.stream.streamStatus != .error { return count }
        throw self.stream.streamError ?? CocoaError(.fileReadUnknown)
    }

    func close() {
        self.stream.close()
    }
}
