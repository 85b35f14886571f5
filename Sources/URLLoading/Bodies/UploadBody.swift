import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// A body on its way to a server, as the task sees it beside the exchange that pulls it.
package protocol UploadBody: BodySource {
    /// Bytes given since the beginning, or since it began again. From any thread.
    var bytesGiven: Int64 { get }

    /// Why `read` answered `.failed`. From any thread.
    var failure: (any Error)? { get }

    /// Calls `work`, on whatever thread, each time that something is there after `read` answered `.later`:
    /// `Exchange.bodyAvailable` is to follow. Replaces what was set before; set it before the exchange starts.
    func whenAvailable(_ work: @escaping @Sendable () -> Void)

    /// Nothing more is wanted. What the body came from is closed as soon as nobody reads it; `read` answers `.failed`.
    func close()
}

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

/// Reads a stream that a program gave: opens it unless the program did, and closes it.
///
/// A read waits as long as the stream has it wait: it is never asked whether something is there.
final class StreamReader: ChunkReader, @unchecked Sendable {
    let chunkSize = 64 << 10
    let isRepeatable = false
    /// Confined to the queue.
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
        // Some streams tell of a failure by giving nothing.
        if count > 0 || count == 0 && self.stream.streamStatus != .error { return count }
        throw self.stream.streamError ?? CocoaError(.fileReadUnknown)
    }

    func close() {
        self.stream.close()
    }
}
