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
