import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization

/// Drives a stream task. On the loop, where not said otherwise.
final class StreamConnection: ConnectionDriving, @unchecked Sendable {
    /// Bytes read at most before anybody asks for them: so the end of input is noticed when it comes.
    private static let readAhead = 64 << 10

    let life: ConnectionLife
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
    init(_ life: ConnectionLife, to place: ConnectTarget, at url: URL?) {
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
    init(_ life: ConnectionLife, at url: URL?) {
        self.life = life
        self.url = url
    }

    /// What the task counts, for any thread.
    var record: TaskRecord? { self.counted.withLock { $0 } }

    private func count(_ stream: StreamTask) {
        self.life.counter = stream.record
        self.counted.withLock { $0 = stream.record }
    }

    private static func timeout(_ life: ConnectionLife) -> Duration {
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
