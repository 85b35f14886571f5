import Foundation

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
