import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The task on one side of a tunnel.
package enum RelayEndpoint: Sendable {
    case stream(StreamTask)
    case webSocket(WebSocketTask)

    var stage: TaskStage {
        switch self {
        case .stream(let task): task.stage
        case .webSocket(let task): task.stage
        }
    }

    var kind: SideKind {
        switch self {
        case .stream: .stream
        case .webSocket: .webSocket
        }
    }

    package var loop: Loop {
        switch self {
        case .stream(let task): task.loop
        case .webSocket(let task): task.loop
        }
    }

    package var record: TaskRecord {
        switch self {
        case .stream(let task): task.record
        case .webSocket(let task): task.record
        }
    }

    /// Whether output is compressed.
    var compresses: Bool {
        switch self {
        case .stream: false
        case .webSocket(let task): task.compresses
        }
    }

    var sentBytes: UInt64 {
        switch self {
        case .stream(let task): task.sentBytes
        case .webSocket(let task): task.sentBytes
        }
    }

    var queuedBytes: Int {
        switch self {
        case .stream(let task): task.queuedBytes
        case .webSocket(let task): task.queuedBytes
        }
    }

    var outputStall: OutputStall {
        switch self {
        case .stream(let task): task.outputStall
        case .webSocket(let task): task.outputStall
        }
    }

    func awaitProgress() {
        switch self {
        case .stream(let task): task.awaitProgress()
        case .webSocket(let task): task.awaitProgress()
        }
    }

    /// Attaches a tap. On the loop.
    package func add(_ tap: TaskTap) {
        switch self {
        case .stream(let task): task.add(tap)
        case .webSocket(let task): task.add(tap)
        }
    }

    package func remove(_ tap: TaskTap) {
        switch self {
        case .stream(let task): task.remove(tap)
        case .webSocket(let task): task.remove(tap)
        }
    }

    func stallBegins() {
        switch self {
        case .stream(let task): task.record.stallBegins(at: task.loop.now)
        case .webSocket(let task): task.record.stallBegins(at: task.loop.now)
        }
    }

    func stallEnded() {
        switch self {
        case .stream(let task): task.record.stallEnded(at: task.loop.now)
        case .webSocket(let task): task.record.stallEnded(at: task.loop.now)
        }
    }

    func pauseReading() {
        switch self {
        case .stream(let task): task.pauseReading()
        case .webSocket(let task): task.pauseReading()
        }
    }

    func resumeReading() {
        switch self {
        case .stream(let task): task.resumeReading()
        case .webSocket(let task): task.resumeReading()
        }
    }

    func setReadLimit(_ bytes: Int) {
        switch self {
        case .stream(let task): task.setReadLimit(bytes)
        case .webSocket(let task): task.setReadLimit(bytes)
        }
    }

    func reset() {
        switch self {
        case .stream(let task): task.reset()
        case .webSocket(let task): task.reset()
        }
    }
}

/// How a task ended, whether it was open or not.
struct TaskEnd {
    /// `nil` after a clean end.
    let failure: TaskFailure?
    /// Code of the peer's Close frame; `nil` for a stream.
    var closeCode: UInt16?
}

extension RelayEndpoint {
    /// - Parameter ended: called once, when the task has ended.
    func whenEnded(_ ended: @escaping (TaskEnd) -> Void) {
        switch self {
        case .stream(let task): task.whenEnded { ended(TaskEnd(failure: $0)) }
        case .webSocket(let task):
            task.whenEnded { ended(TaskEnd(failure: $0.failure, closeCode: $0.code?.rawValue)) }
        }
    }

    /// Connects a task of ours.
    /// - Parameters:
    ///   - opened: called once, if payload can flow.
    ///   - ended: called once, when the task has ended, unless `forgetEndObservers` is called before.
    func open(opened: @escaping () -> Void, ended: @escaping (TaskEnd) -> Void) {
        self.whenEnded(ended)
        switch self {
        case .stream(let task):
            task.openObserver = opened
            task.resumeOnLoop()
        case .webSocket(let task):
            task.openObserver = opened
            task.resumeOnLoop()
        }
    }

    /// The task gets a new owner: its end is no longer observed by the former one.
    func forgetEndObservers() {
        switch self {
        case .stream(let task): task.forgetEndObservers()
        case .webSocket(let task): task.forgetEndObservers()
        }
    }

    func cancel() {
        switch self {
        case .stream(let task): task.cancelOnLoop()
        case .webSocket(let task): task.cancelOnLoop()
        }
    }

    var webSocket: WebSocketTask? {
        if case .webSocket(let task) = self { task } else { nil }
    }

    /// The server's response to our opening handshake, if received.
    var response: ResponseHead? { self.webSocket?.response }
}
