import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// A body in memory.
package final class DataBody: BodySource {
    private let data: Data
    private let position = Atomic<Int>(0)

    package init(_ data: Data) {
        self.data = data
    }

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
}

/// Reads a stream of the program: opens it unless it is open, and closes it. Reads block; `hasBytesAvailable` is not used.
final class StreamReader: BodyReader {
    let chunkSize = 64 << 10
    let isRepeatable = false
    /// Never contended: the reader is used on one queue.
    private let stream: Mutex<InputStream>
    private let isOpened = Atomic(false)

    init(_ stream: sending InputStream) {
        self.stream = Mutex(stream)
    }

    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int {
        try self.stream.withLock { stream in
            if !self.isOpened.exchange(true, ordering: .relaxed), stream.streamStatus == .notOpen { stream.open() }
            let count = stream.read(&chunk, maxLength: chunk.count)
            // Some streams report a failure by returning 0.
            if count > 0 || count == 0 && stream.streamStatus != .error { return count }
            // Foundation's streams trap where they are asked for the error that they do not have, as a closed one.
            let error = stream.streamStatus == .error ? stream.streamError : nil
            throw error ?? CocoaError(.fileReadUnknown)
        }
    }

    func close() {
        self.stream.withLock { $0.close() }
    }
}
