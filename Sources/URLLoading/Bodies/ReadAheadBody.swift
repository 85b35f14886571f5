import ByteKernels
import Dispatch
import Foundation
import HTTPTransport
import Synchronization

/// A body that is read on a queue of its own, never more than two pieces ahead of the exchange that pulls it.
package final class ReadAheadBody: UploadBody, @unchecked Sendable {
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
        /// A job is on the queue, or will be there at once.
        var isReading = false
        /// `read` answered `.later`.
        var isAwaited = false
        var isClosed = false
        /// How often it began: what was read for an earlier time is dropped.
        var beginning = 0
        var wake: (@Sendable () -> Void)?
        var bytesGiven: Int64 = 0
    }

    private static let chunksAhead = 2

    private let queue = DispatchQueue(label: "URLLoading.body")
    private let reader: any ChunkReader
    private let state = Mutex(State())
    /// What is being given. Belongs to whoever reads, which is the exchange's event loop.
    private var current = Chunk()
    private var position = 0

    init(_ reader: any ChunkReader) {
        self.reader = reader
    }

    deinit {
        self.close()
    }

    package var bytesGiven: Int64 { self.state.withLock { $0.bytesGiven } }

    package var failure: (any Error)? {
        self.state.withLock { if case .failed(let error) = $0.source { error } else { nil } }
    }

    package func whenAvailable(_ work: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = work }
    }

    package func close() {
        let isFirst = self.state.withLock { state in
            defer { state.isClosed = true }
            state.wake = nil
            return !state.isClosed
        }
        // Behind a read that may be under way, however long it takes.
        if isFirst { self.queue.async { [reader] in reader.close() } }
    }

    // MARK: On the exchange's event loop

    package func read(into room: inout MutableRawSpan) -> BodyRead {
        if self.position == self.current.count, let answer = self.takeNext() { return answer }
        let count = min(room.byteCount, self.current.count - self.position)
        let bytes = self.current.bytes
        room.copy(bytes.span.bytes.extracting(self.position..<(self.position + count)), at: 0)
        self.position += count
        self.state.withLock { $0.bytesGiven += Int64(count) }
        return .bytes(count)
    }

    /// - Returns: what is to be answered where there is no next piece; `nil` where there is.
    private func takeNext() -> BodyRead? {
        let empty = self.current.bytes
        self.current = Chunk()
        self.position = 0
        let (chunk, answer, reads) = self.state.withLock { state -> (Chunk?, BodyRead, Bool) in
            if !empty.isEmpty { state.spare.append(empty) }
            if state.isClosed { return (nil, .failed, false) }
            let chunk = state.ready.isEmpty ? nil : state.ready.removeFirst()
            switch state.source {
            case .ended: return (chunk, .end, false)
            case .failed: return (chunk, .failed, false)
            case .open: break
            }
            state.isAwaited = chunk == nil
            let reads = !state.isReading
            state.isReading = true
            return (chunk, .later, reads)
        }
        if reads { self.readAhead() }
        guard let chunk else { return answer }
        self.current = chunk
        return nil
    }

    package func rewind() -> Bool {
        guard self.reader.isRepeatable else { return false }
        self.current = Chunk()
        self.position = 0
        self.state.withLock { state in
            state.ready = []
            state.bytesGiven = 0
            state.source = .open
            state.offset = 0
            state.isReading = false
            state.isAwaited = false
            state.beginning += 1
        }
        return true
    }

    // MARK: On the queue

    private func readAhead() {
        self.queue.async { [weak self] in
            while let self, self.readOne() {}
        }
    }

    /// - Returns: whether there is room for another piece.
    private func readOne() -> Bool {
        let (spare, offset, beginning, isClosed) = self.state.withLock {
            ($0.spare.popLast(), $0.offset, $0.beginning, $0.isClosed)
        }
        guard !isClosed else { return false }
        var bytes = spare ?? [UInt8](repeating: 0, count: self.reader.chunkSize)
        let result = Result { try self.reader.read(into: &bytes, at: offset) }
        let (goesOn, wake) = self.state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard state.beginning == beginning, !state.isClosed else { return (false, nil) }
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
            let wake = state.isAwaited ? state.wake : nil
            state.isAwaited = false
            return (state.isReading, wake)
        }
        wake?()
        return goesOn
    }
}

extension ReadAheadBody {
    /// The body that a stream gives. It has no length, and cannot begin again.
    package convenience init(_ stream: sending InputStream) {
        self.init(StreamReader(stream))
    }

    /// The content of the file at `url`, as long as it is now.
    /// - Returns: the body and its length in bytes.
    package static func file(_ url: URL) throws(FileBodyFailure) -> (body: ReadAheadBody, length: Int64) {
        let reader = try FileReader(url)
        return (ReadAheadBody(reader), reader.length)
    }
}
