import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// Drives a stream task. Confined to the loop unless stated otherwise.
final class StreamConnection: ConnectionTaskDriver, @unchecked Sendable {  // Its vars are used on the loop only.
    /// Most bytes read ahead of `readData`, so that the end of input is noticed when it arrives.
    private static let readAhead = 64 << 10

    let taskState: ConnectionTaskState
    /// Names the server in challenges, by host and port.
    let url: URL?
    /// `nil` until a connection is adopted.
    private(set) var stream: StreamTask?
    private let sharedRecord = Mutex<TaskRecord?>(nil)
    private var readClosed = false
    private var writeClosed = false
    /// `captureStreams` waits for earlier operations.
    private var isCapturing = false
    /// `nil` before the connection is open, and without a delegate for it.
    private var routeWatch: RouteWatch?

    /// For a task that connects to `destination` when it is resumed.
    /// - Parameter proxies: `nil` to connect directly.
    init(
        _ taskState: ConnectionTaskState, to destination: ConnectTarget,
        through proxies: OpeningTarget.SelectProxies?, at url: URL?
    ) {
        self.taskState = taskState
        self.url = url
        var target = OpeningTarget(destination)
        target.selectProxies = proxies
        if case .host(let host, _) = destination { target.permits = taskState.core.permission(for: host) }
        target.connectTimeout = Self.timeout(taskState)
        target.socket.trafficClass = taskState.core.configuration.networkServiceType.trafficClass
        target.path = taskState.core.networkSettings.path(for: nil, isReported: false)
        target.resolveServer = taskState.core.resolveServer()
        target.waitsForPath = taskState.core.networkSettings.waits
        target.watch = { if case .waiting = $0 { taskState.waitingForConnectivity() } }
        let stream = StreamTask(to: target, on: taskState.loop)
        self.stream = stream
        self.publishRecord(of: stream)
    }

    /// For a task that adopts the connection of another one.
    init(_ taskState: ConnectionTaskState, at url: URL?) {
        self.taskState = taskState
        self.url = url
    }

    /// The task's byte counters, from any thread.
    var record: TaskRecord? { self.sharedRecord.withLock { $0 } }

    private func publishRecord(of stream: StreamTask) {
        self.taskState.taskRecord = stream.record
        self.sharedRecord.withLock { $0 = stream.record }
    }

    private static func timeout(_ taskState: ConnectionTaskState) -> Duration {
        Duration(timeout: taskState.core.configuration.timeoutIntervalForRequest)
    }

    var handshakeTimeout: Duration { Self.timeout(self.taskState) }

    // MARK: ConnectionTaskDriver

    func begin() {
        self.observeStream()
        self.stream?.openObserver = { self.watchRoute() }
        self.stream?.resumeOnLoop()
    }

    /// Begins with an open connection.
    func adopt(_ connection: DetachedConnection) {
        connection.handOver { transport, unread in
            let stream = StreamTask(adopting: transport, unread: unread, readsOnly: connection.readsOnly)
            self.stream = stream
            self.publishRecord(of: stream)
            self.observeStream()
            self.watchRoute()
        }
    }

    private func observeStream() {
        self.stream?.watchDirections(
            readAhead: Self.readAhead, inputClosed: { self.notifyReadClosed() },
            outputClosed: { self.notifyWriteClosed() })
        self.stream?.whenEnded { self.ended($0) }
    }

    func suspend() { self.stream?.suspendOnLoop() }
    func resume() { self.stream?.resumeOnLoop() }

    func cancelConnection() {
        self.routeWatch.take()?.cancel()
        self.stream?.cancelOnLoop()
        self.taskState.end(self.taskState.finalError)
    }

    private func ended(_ failure: TaskFailure?) {
        self.routeWatch.take()?.cancel()
        // `handOver` follows.
        if failure == nil, self.isCapturing { return }
        self.taskState.end(failure.map { self.taskState.error($0) })
    }

    // MARK: Routes

    private func watchRoute() {
        guard let task = self.taskState.task as? URLSessionStreamTask, let record = self.record,
            self.taskState.core.delegates(for: task).contains(where: { $0.mayImplement(.betterRoute) })
        else { return }
        let session = self.taskState.session
        let (local, peer) = record.read { ($0.localAddress, $0.peerAddress) }
        self.routeWatch = RouteWatch(
            of: local, to: peer,
            forbidding: self.taskState.core.networkSettings.path(for: nil, isReported: false).forbidden,
            on: self.taskState.loop
        ) { [taskState] in
            taskState.notifyDelegate(.betterRoute) { $0.stream?.urlSession(session, betterRouteDiscoveredFor: task) }
        }
    }

    // MARK: Directions

    private func notifyReadClosed() {
        guard !self.readClosed, let task = self.taskState.task as? URLSessionStreamTask else { return }
        self.readClosed = true
        let session = self.taskState.session
        self.taskState.notifyDelegate(.readClosed) { $0.stream?.urlSession(session, readClosedFor: task) }
    }

    private func notifyWriteClosed() {
        guard !self.writeClosed, let task = self.taskState.task as? URLSessionStreamTask else { return }
        self.writeClosed = true
        let session = self.taskState.session
        self.taskState.notifyDelegate(.writeClosed) { $0.stream?.urlSession(session, writeClosedFor: task) }
    }

    // MARK: Operations, from any thread; they run in the order of the calls

    /// - Parameter completion: called on the loop.
    func read(
        _ minimum: Int, _ maximum: Int, timeout: TimeInterval,
        _ completion: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) {
        self.taskState.loop.execute { self.beginRead(minimum, maximum, timeout, completion) }
    }

    @discardableResult
    private func beginRead(
        _ minimum: Int, _ maximum: Int, _ timeout: TimeInterval,
        _ completion: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            completion(.failure(self.taskState.error(.ended)))
            return nil
        }
        return stream.read(minimum: minimum, maximum: maximum, timeout: Self.duration(timeout)) { result in
            completion(result.mapError { self.taskState.error($0) })
        }
    }

    func write(_ data: Data, timeout: TimeInterval, _ completion: @escaping @Sendable (URLError?) -> Void) {
        let bytes = [UInt8](data)
        self.taskState.loop.execute { self.beginWrite(bytes, timeout, completion) }
    }

    @discardableResult
    private func beginWrite(
        _ bytes: [UInt8], _ timeout: TimeInterval, _ completion: @escaping @Sendable (URLError?) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            completion(self.taskState.error(.ended))
            return nil
        }
        return stream.write(bytes, timeout: Self.duration(timeout)) { completion(self.taskState.error($0)) }
    }

    /// - Parameter timeout: in seconds; 0 or less means no limit.
    private static func duration(_ timeout: TimeInterval) -> Duration? {
        timeout > 0 ? Duration(timeout: timeout) : nil
    }

    func closeRead() { self.taskState.loop.execute { self.stream?.closeReadOnLoop() } }
    func closeWrite() { self.taskState.loop.execute { self.stream?.closeWriteOnLoop() } }

    /// Closes both directions after the operations already requested.
    func close() {
        self.taskState.loop.execute {
            self.stream?.closeWriteOnLoop()
            self.stream?.closeReadOnLoop()
        }
    }

    // MARK: Asynchronous

    /// Cancelling withdraws the read; bytes received for it go to the next one.
    func read(_ minimum: Int, _ maximum: Int, timeout: TimeInterval) async throws -> StreamTask.Chunk {
        try await AwaitedOperation.perform(on: self.taskState.loop) { completion in
            self.beginRead(minimum, maximum, timeout, completion)
        } withdraw: { number in
            self.stream?.withdrawRead(number)
        }.get()
    }

    /// Cancelling withdraws the write unless it has begun.
    func write(_ data: Data, timeout: TimeInterval) async throws {
        let bytes = [UInt8](data)
        let failure: URLError? = await AwaitedOperation.perform(on: self.taskState.loop) { completion in
            self.beginWrite(bytes, timeout, completion)
        } withdraw: { number in
            self.stream?.withdrawWrite(number)
        }
        if let failure { throw failure }
    }

    // MARK: TLS and captured streams

    /// From any thread: starts TLS after the operations already requested.
    func startSecure() {
        self.taskState.loop.execute {
            guard let stream = self.stream, let task = self.taskState.task, let url = self.url else { return }
            switch self.taskState.core.streamTLSContext() {
            case .failure(let failure):
                self.fail(LoadFailure.error(ofContext: failure, url: nil))
            case .success(let context):
                let settings = self.secureSettings(context, at: url, for: task, timeout: self.handshakeTimeout)
                stream.startSecure(settings) { self.secured($0) }
            }
        }
    }

    private func secured(_ result: Result<Void, TaskFailure>) {
        guard case .failure(let failure) = result else { return }
        // Requested twice: TLS is already in use.
        if case .usageError = failure { return }
        // Requested after a capture, which ends the task.
        if self.isCapturing { return }
        self.fail(self.taskState.error(failure))
    }

    /// From any thread: hands the connection to the delegate as two streams, after the operations already requested.
    func capture() {
        self.taskState.loop.execute {
            guard let stream = self.stream, self.taskState.stage != .ended, !self.isCapturing else { return }
            self.isCapturing = true
            stream.captureStreams { result in
                self.isCapturing = false
                switch result {
                case .success(let captured): self.handOver(captured)
                case .failure(let failure): self.fail(self.taskState.error(failure))
                }
            }
        }
    }

    private func handOver(_ captured: CapturedStreams) {
        let streams = CapturedStreamPair(captured)
        let session = self.taskState.session
        guard let task = self.taskState.task as? URLSessionStreamTask else { return }
        self.taskState.notifyDelegate(.capturedStreams) {
            $0.stream?.urlSession(
                session, streamTask: task, didBecome: streams.input, outputStream: streams.output)
        }
        self.routeWatch.take()?.cancel()
        _ = self.taskState.detachTask()
        self.taskState.core.endSilently(task, session: session)
    }
}
