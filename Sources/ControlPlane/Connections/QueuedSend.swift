import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization

/// The payload of a `send` request. A stream sends text as its UTF-8 bytes.
enum SendPayload: Sendable {
    case text(String)
    case data([UInt8])

    var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let bytes): bytes.count
        }
    }

    fileprivate var bytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .data(let bytes): bytes
        }
    }

    fileprivate var message: WebSocketTask.Message {
        switch self {
        case .text(let text): .string(text)
        case .data(let bytes): .data(bytes)
        }
    }
}

/// The send operation of one `send` request: queued on the task or refused, then completed or failed.
final class QueuedSend: Sendable {
    /// Most bytes queued on a connection; an empty queue accepts a larger message too.
    private static let byteLimit = 4 << 20
    private static let messageLimit = 4096

    /// Whether the send was queued, and the state of the queue before.
    struct EnqueueResult: Sendable {
        var isAccepted: Bool
        var queuedBytes: Int
        var isSuspended: Bool
    }

    private let result = Mutex<Result<Void, TaskFailure>?>(nil)
    private let completed = OneTimeEvent()

    /// Checks the limits and enqueues in one step on the loop, so that concurrent sends cannot exceed the limits together.
    func enqueue(_ payload: SendPayload, on endpoint: RelayEndpoint) async -> EnqueueResult {
        await endpoint.onLoop { endpoint in
            let queued = endpoint.bytesToSend
            let fits = queued == 0 || queued + payload.count <= Self.byteLimit
            let isAccepted = fits && endpoint.waitingSends < Self.messageLimit
            let result = EnqueueResult(
                isAccepted: isAccepted, queuedBytes: queued, isSuspended: endpoint.isSuspended)
            guard isAccepted else { return result }
            switch endpoint {
            case .webSocket(let task): task.send(payload.message) { self.finished($0) }
            case .stream(let task): task.write(payload.bytes, timeout: nil) { self.finished($0) }
            }
            return result
        }
    }

    /// Waits until the kernel has taken every byte. The send stays queued after a timeout.
    /// - Returns: `false` on timeout.
    /// - Throws: the failure of the send.
    func wait(within limit: Duration) async throws(TaskFailure) -> Bool {
        guard await self.completed.wait(within: limit), let result = self.result.withLock({ $0 }) else { return false }
        try result.get()
        return true
    }

    private func finished(_ result: Result<Void, TaskFailure>) {
        self.result.withLock { $0 = result }
        self.completed.occur()
    }
}

extension RelayEndpoint {
    /// Runs `body` on the task's loop and returns its result.
    func onLoop<R: Sendable>(_ body: @escaping @Sendable (RelayEndpoint) -> R) async -> R {
        await withCheckedContinuation { continuation in
            self.loop.execute { continuation.resume(returning: body(self)) }
        }
    }

    // On the loop:

    fileprivate var isSuspended: Bool {
        switch self {
        case .stream(let task): task.record.state == .suspended
        case .webSocket(let task): task.isSuspended
        }
    }

    /// Bytes queued for sending, in the task and in its connection.
    fileprivate var bytesToSend: Int {
        switch self {
        case .stream(let task): task.queuedBytes + task.waitingBytes
        case .webSocket(let task): task.queuedBytes + task.waitingBytes
        }
    }

    /// Messages or writes in the task's queue.
    fileprivate var waitingSends: Int {
        switch self {
        case .stream(let task): task.waitingWrites
        case .webSocket(let task): task.waitingMessages
        }
    }
}
