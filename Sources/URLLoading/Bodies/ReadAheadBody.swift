import ByteKernels
import Dispatch
import Foundation
import HTTPTransport
import Synchronization

/// A body that is read on a queue of its own, at most two pieces ahead of the exchange that pulls it.
package final class ReadAheadBody: BodySource {
    private struct Chunk {
        var bytes: [UInt8] = []
        var count = 0
    }

    private enum Source {
        case open
        case ended
        case failed(any Error)
    }

    private struct State {
        var ready: [Chunk] = []
        var spare: [[UInt8]] = []
        var source = Source.open
        /// Of the next piece to be read.
        var offset: Int64 = 0
        /// A job is queued or about to be.
        var isReading = false
        /// `read` answered `.later`.
        var isConsumerWaiting = false
        var isClosed = false
        /// Incremented by `rewind`; a read that belongs to an earlier generation is dropped.
        var generation = 0
        var availabilityHandler: (@Sendable () -> Void)?
    }

    /// The piece being consumed, on the exchange's loop: its lock is never contended.
    private struct Cursor {
        var chunk = Chunk()
        var position = 0
    }

    private static let chunksAhead = 2

    private let queue = DispatchQueue(label: "URLLoading.body")
    private let reader: any BodyReader
    private let state = Mutex(State())
    private let cursor = Mutex(Cursor())

    init(_ reader: any BodyReader) {
        self.reader = reader
    }

    /// The body of a stream. It has no length and cannot be rewound.
    package convenience init(_ stream: sending InputStream) {
        self.init(StreamReader(stream))
    }

    /// The content of the file at `url`, with its current length.
    /// - Returns: the body and its length in bytes.
    package static func file(_ url: URL) throws(FileBodyFailure) -> (body: ReadAheadBody, length: Int64) {
        let reader = try FileReader(url)
        return (ReadAheadBody(reader), reader.length)
    }

    deinit {
        self.close()
    }

    /// Why `read` answered `.failed`. From any thread.
    package var failure: (any Error)? {
        self.state.withLock { if case .failed(let error) = $0.source { error } else { nil } }
    }

    package func whenAvailable(_ work: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.availabilityHandler = work }
    }

    package func close() {
        let isFirst = self.state.withLock { state in
            defer { state.isClosed = true }
            state.availabilityHandler = nil
            return !state.isClosed
        }
        // After a read that may be in progress.
        if isFirst { self.queue.async { [reader] in reader.close() } }
    }

    // MARK: On the exchange's loop

    package func read(into buffer: inout MutableRawSpan) -> BodyRead {
        // Taken out meanwhile: a closure cannot change `buffer`.
        var cursor = self.cursor.withLock { cursor in
            defer { cursor = Cursor() }
            return cursor
        }
        if cursor.position == cursor.chunk.count, let answer = self.advance(&cursor) { return answer }
        let count = min(buffer.byteCount, cursor.chunk.count - cursor.position)
        let bytes = cursor.chunk.bytes
        buffer.copy(bytes.span.bytes.extracting(cursor.position..<(cursor.position + count)), at: 0)
        cursor.position += count
        self.cursor.withLock { $0 = cursor }
        return .bytes(count)
    }

    /// Makes the next piece current.
    /// - Returns: `nil` if there is one, otherwise the answer of `read`.
    private func advance(_ cursor: inout Cursor) -> BodyRead? {
        let empty = cursor.chunk.bytes
        cursor = Cursor()
        let (chunk, answer, mustRead) = self.state.withLock { state -> (Chunk?, BodyRead, Bool) in
            if !empty.isEmpty { state.spare.append(empty) }
            if state.isClosed { return (nil, .failed, false) }
            let chunk = state.ready.isEmpty ? nil : state.ready.removeFirst()
            switch state.source {
            case .ended: return (chunk, .end, false)
            case .failed: return (chunk, .failed, false)
            case .open: break
            }
            state.isConsumerWaiting = chunk == nil
            let mustRead = !state.isReading
            state.isReading = true
            return (chunk, .later, mustRead)
        }
        if mustRead { self.readAhead() }
        guard let chunk else { return answer }
        cursor.chunk = chunk
        return nil
    }

    package func rewind() -> Bool {
        guard self.reader.isRepeatable else { return false }
        self.cursor.withLock { $0 = Cursor() }
        self.state.withLock { state in
            state.ready = []
            state.source = .open
            state.offset = 0
            state.isReading = false
            state.isConsumerWaiting = false
            state.generation += 1
        }
        return true
    }

    // MARK: On the queue

    private func readAhead() {
        self.queue.async { [weak self] in
            while let self, self.readNextChunk() {}
        }
    }

    /// - Returns: whether another piece may be read.
    private func readNextChunk() -> Bool {
        let (spare, offset, generation, isClosed) = self.state.withLock {
            ($0.spare.popLast(), $0.offset, $0.generation, $0.isClosed)
        }
        guard !isClosed else { return false }
        var bytes = spare ?? [UInt8](repeating: 0, count: self.reader.chunkSize)
        let result = Result { try self.reader.read(into: &bytes, at: offset) }
        let (continues, availabilityHandler) = self.state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard state.generation == generation, !state.isClosed else { return (false, nil) }
            switch result {
            case .success(let count) where count > 0:
                let chunk = Chunk(bytes: bytes, count: min(count, bytes.count))
                state.ready.append(chunk)
                state.offset += Int64(chunk.count)
                state.isReading = state.ready.count < Self.chunksAhead
            case .success:
                state.source = .ended
                state.isReading = false
            case .failure(let error):
                state.source = .failed(error)
                state.isReading = false
            }
            let availabilityHandler = state.isConsumerWaiting ? state.availabilityHandler : nil
            state.isConsumerWaiting = false
            return (state.isReading, availabilityHandler)
        }
        availabilityHandler?()
        return continues
    }
}
