import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// Drives a stream task. On the loop, where not said otherwise.
final class StreamConnection: ConnectionTaskDriver, @unchecked Sendable {
    /// Bytes read at most before anybody asks for them: so the end of input is noticed when it comes.
    private static let readAhead = 64 << 10

    let life: ConnectionTaskState
    /// Names the server in challenges, by host and port.
    let url: URL?
    /// `nil` until the connection of another task is taken over.
    private(set) var stream: StreamTask?
    private let counted = Mutex<TaskRecord?>(nil)
    private var readClosed = false
    private var writeClosed = false
    /// `captureStreams` waits for its turn.
    var isCapturing = false

    /// For a task that connects to `place` when it is resumed.
    init(_ life: ConnectionTaskState, to place: ConnectTarget, at url: URL?) {
        self.life = life
        self.url = url
        var target = OpeningTarget(place)
        if case .host(let host, _) = place { target.permits = life.core.permission(for: host) }
        target.connectTimeout = Self.timeout(life)
        target.socket.trafficClass = life.core.configuration.networkServiceType.trafficClass
        let stream = StreamTask(to: target, on: life.loop)
        self.stream = stream
        self.count(stream)
    }

    /// For a task that goes on with the connection of another one.
    init(_ life: ConnectionTaskState, at url: URL?) {
        self.life = life
        self.url = url
    }

    /// What the task counts, for any thread.
    var record: TaskRecord? { self.counted.withLock { $0 } }

    private func count(_ stream: StreamTask) {
        self.life.counter = stream.record
        self.counted.withLock { $0 = stream.record }
    }

    private static func timeout(_ life: ConnectionTaskState) -> Duration {
        Duration(timeout: life.core.configuration.timeoutIntervalForRequest)
    }

    var securingTimeout: Duration { Self.timeout(self.life) }

    // MARK: Life

    func begin() {
        self.watch()
        self.stream?.resumeOnLoop()
    }

    /// Begins with a connection that stands.
    func adopt(_ connection: UpgradedConnection) {
        let stream = StreamTask(adopting: connection.transport(on: self.life.loop))
        self.stream = stream
        self.count(stream)
        self.watch()
    }

    private func watch() {
        self.stream?.watchDirections(
            readAhead: Self.readAhead, inputClosed: { self.tellReadClosed() }, outputClosed: { self.tellWriteClosed() })
        self.stream?.whenEnded { self.ended($0) }
    }

    func hold() { self.stream?.suspendOnLoop() }
    func goOn() { self.stream?.resumeOnLoop() }

    func breakOff() {
        self.stream?.cancelOnLoop()
        self.life.end(self.life.verdict)
    }

    private func ended(_ failure: TaskFailure?) {
        // The streams are handed over next.
        if failure == nil, self.isCapturing { return }
        self.life.end(failure.map { self.life.error($0) })
    }

    // MARK: Directions

    private func tellReadClosed() {
        guard !self.readClosed, let task = self.life.task as? URLSessionStreamTask else { return }
        self.readClosed = true
        let session = self.life.session
        self.life.tell(.readClosed) { $0.stream?.urlSession(session, readClosedFor: task) }
    }

    private func tellWriteClosed() {
        guard !self.writeClosed, let task = self.life.task as? URLSessionStreamTask else { return }
        self.writeClosed = true
        let session = self.life.session
        self.life.tell(.writeClosed) { $0.stream?.urlSession(session, writeClosedFor: task) }
    }
}

/// What a stream task is asked for, from any thread. Everything takes its place behind what was asked for before.
extension StreamConnection {
    /// - Parameter answer: called on the loop.
    func read(
        _ minimum: Int, _ maximum: Int, timeout: TimeInterval,
        _ answer: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) {
        self.life.loop.execute { self.beginRead(minimum, maximum, timeout, answer) }
    }

    @discardableResult
    private func beginRead(
        _ minimum: Int, _ maximum: Int, _ timeout: TimeInterval,
        _ answer: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            answer(.failure(self.life.error(.ended)))
            return nil
        }
        return stream.read(minimum: minimum, maximum: maximum, timeout: Self.limit(timeout)) { result in
            answer(result.mapError { self.life.error($0) })
        }
    }

    func write(_ data: Data, timeout: TimeInterval, _ answer: @escaping @Sendable (URLError?) -> Void) {
        let bytes = [UInt8](data)
        self.life.loop.execute { self.beginWrite(bytes, timeout, answer) }
    }

    @discardableResult
    private func beginWrite(
        _ bytes: [UInt8], _ timeout: TimeInterval, _ answer: @escaping @Sendable (URLError?) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            answer(self.life.error(.ended))
            return nil
        }
        return stream.write(bytes, timeout: Self.limit(timeout)) { answer(self.life.error($0)) }
    }

    /// Seconds, of which none and fewer mean no limit.
    private static func limit(_ timeout: TimeInterval) -> Duration? {
        timeout > 0 ? Duration(timeout: timeout) : nil
    }

    func closeRead() { self.life.loop.execute { self.stream?.closeReadOnLoop() } }
    func closeWrite() { self.life.loop.execute { self.stream?.closeWriteOnLoop() } }

    /// What waits is done, then both directions end.
    func close() {
        self.life.loop.execute {
            self.stream?.closeWriteOnLoop()
            self.stream?.closeReadOnLoop()
        }
    }

    // MARK: For Swift tasks that wait

    /// Cancelling withdraws the read; what had come for it goes to the next.
    func read(_ minimum: Int, _ maximum: Int, timeout: TimeInterval) async throws -> StreamTask.Chunk {
        try await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.beginRead(minimum, maximum, timeout, answer)
        } withdraw: { number in
            self.stream?.withdrawRead(number)
        }.get()
    }

    /// Cancelling withdraws the write unless it has begun.
    func write(_ data: Data, timeout: TimeInterval) async throws {
        let bytes = [UInt8](data)
        let failure: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.beginWrite(bytes, timeout, answer)
        } withdraw: { number in
            self.stream?.withdrawWrite(number)
        }
        if let failure { throw failure }
    }
}

extension StreamConnection {
    /// From any thread: TLS from here on.
    func startSecure() {
        self.life.loop.execute {
            guard let stream = self.stream, let task = self.life.task, let url = self.url else { return }
            switch self.life.core.streamTLSContext() {
            case .failure(let failure):
                self.fail(
                    LoadFailure.error(
                        .secureConnectionFailed, url: nil, cause: failure, text: failure.description))
            case .success(let context):
                let settings = self.secureSettings(context, at: url, for: task, timeout: self.securingTimeout)
                stream.startSecure(settings) { self.secured($0) }
            }
        }
    }

    private func secured(_ result: Result<Void, TaskFailure>) {
        guard case .failure(let failure) = result else { return }
        // Asked for twice: it is secure.
        if case .usageError = failure { return }
        self.fail(self.life.error(failure))
    }

    /// From any thread: the connection leaves the session as two streams, once all that was asked for is done.
    func capture() {
        self.life.loop.execute {
            guard let stream = self.stream, self.life.stage != .over else { return }
            self.isCapturing = true
            stream.captureStreams { result in
                self.isCapturing = false
                switch result {
                case .success(let captured): self.handOver(captured)
                case .failure(let failure): self.fail(self.life.error(failure))
                }
            }
        }
    }

    private func handOver(_ captured: CapturedStreams) {
        let streams = CapturedStreamPair(captured)
        let session = self.life.session
        guard let task = self.life.task as? URLSessionStreamTask else { return }
        self.life.tell(.capturedStreams) {
            $0.stream?.urlSession(
                session, streamTask: task, didBecome: streams.input, outputStream: streams.output)
        }
        _ = self.life.leave()
        self.life.core.endSilently(task, session: session)
    }
}
