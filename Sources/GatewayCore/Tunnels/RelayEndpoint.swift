import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The task on one side of a tunnel.
///
/// A relay forwards bytes by a `switch` over the two kinds, which costs less than calls of a protocol; for everything else
/// there is `task`.
package enum RelayEndpoint: Sendable {
    case stream(StreamTask)
    case webSocket(WebSocketTask)

    package var task: any RelayTask {
        switch self {
        case .stream(let task): task
        case .webSocket(let task): task
        }
    }

    package var loop: Loop {
        switch self {
        case .stream(let task): task.loop
        case .webSocket(let task): task.loop
        }
    }

    /// Read whenever output of a tunnel progresses.
    var queuedBytes: Int {
        switch self {
        case .stream(let task): task.queuedBytes
        case .webSocket(let task): task.queuedBytes
        }
    }

    var kind: SideKind {
        switch self {
        case .stream: .stream
        case .webSocket: .webSocket
        }
    }

    var webSocket: WebSocketTask? {
        if case .webSocket(let task) = self { task } else { nil }
    }

    /// The server's response to our opening handshake, if received.
    var response: ResponseHead? { self.webSocket?.response }
}

/// A stream task or a WebSocket task, where the protocol that it speaks makes no difference. On its loop.
package protocol RelayTask: AnyObject, Sendable {
    var loop: Loop { get }
    var record: TaskRecord { get }
    var stage: TaskStage { get }
    var isSuspended: Bool { get }
    /// Whether bytes are passed on instead of queued for a reader.
    var isRelayed: Bool { get }
    /// Whether output is compressed.
    var compresses: Bool { get }
    var sentBytes: UInt64 { get }
    var writtenBytes: UInt64 { get }
    /// Bytes that wait in the transport.
    var queuedBytes: Int { get }
    /// Bytes that the transport was not given yet.
    var waitingBytes: Int { get }
    var outputStall: OutputStall { get }
    /// Called once, if payload can flow.
    var openObserver: (() -> Void)? { get set }

    func add(_ tap: TaskTap)
    func remove(_ tap: TaskTap)
    func awaitProgress()
    func pauseReading()
    func resumeReading()
    func setReadLimit(_ bytes: Int)
    func resumeOnLoop()
    func cancelOnLoop()
    func reset()
    /// Calls `observer` once, when the task has ended; at once if it has.
    func observeEnd(_ observer: @escaping (TaskEnd) -> Void)
    /// The task gets a new owner: its end is no longer observed by the former one.
    func forgetEndObservers()
}

extension RelayTask {
    /// Connects a task of ours.
    /// - Parameters:
    ///   - opened: called once, if payload can flow.
    ///   - ended: called once, when the task has ended, unless `forgetEndObservers` is called before.
    func open(opened: @escaping () -> Void, ended: @escaping (TaskEnd) -> Void) {
        self.observeEnd(ended)
        self.openObserver = opened
        self.resumeOnLoop()
    }

    /// Pauses reading because the receiver of the bytes is behind, and records that.
    func beginStall() {
        self.record.stallBegins(at: self.loop.now)
        self.pauseReading()
    }

    func endStall() {
        self.record.stallEnded(at: self.loop.now)
        self.resumeReading()
    }
}

/// How a task ended, whether it was open or not.
package struct TaskEnd {
    /// `nil` after a clean end.
    let failure: TaskFailure?
    /// Code of the peer's Close frame; `nil` for a stream.
    var closeCode: UInt16?
}

extension StreamTask: RelayTask {
    package var compresses: Bool { false }
    package var isSuspended: Bool { self.record.state == .suspended }

    package func observeEnd(_ observer: @escaping (TaskEnd) -> Void) {
        self.whenEnded { observer(TaskEnd(failure: $0)) }
    }
}

extension WebSocketTask: RelayTask {
    package func observeEnd(_ observer: @escaping (TaskEnd) -> Void) {
        self.whenEnded { observer(TaskEnd(failure: $0.failure, closeCode: $0.code?.rawValue)) }
    }
}
