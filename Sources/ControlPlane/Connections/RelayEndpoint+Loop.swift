import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization

extension RelayEndpoint {
    /// Does something to the task on its loop, and returns what it gave when it is done.
    func onLoop<R: Sendable>(_ body: @escaping @Sendable (RelayEndpoint) -> R) async -> R {
        await withCheckedContinuation { continuation in
            self.loop.execute { continuation.resume(returning: body(self)) }
        }
    }

    /// Whether the task is suspended; on the loop.
    var isSuspended: Bool {
        switch self {
        case .stream(let task): task.record.state == .suspended
        case .webSocket(let task): task.isSuspended
        }
    }

    /// Bytes that wait to be sent, in the task's queue and in its connection's; on the loop.
    fileprivate var bytesToSend: Int {
        switch self {
        case .stream(let task): task.queuedBytes + task.waitingBytes
        case .webSocket(let task): task.queuedBytes + task.waitingBytes
        }
    }

    /// Messages or writes that wait in the task's queue; on the loop.
    fileprivate var waitingSends: Int {
        switch self {
        case .stream(let task): task.waitingWrites
        case .webSocket(let task): task.waitingMessages
        }
    }
}

/// What is sent by command: text only goes as such to a WebSocket.
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

/// One send by command: taken into the task's queue or refused, and then done or failed.
final class QueuedSend: Sendable {
    /// Bytes that may wait on a connection before more are refused. A message that is larger is taken by an empty queue.
    static let byteLimit = 4 << 20
    /// Messages that may wait so.
    static let messageLimit = 4096

    /// What the connection's queue was like when the send came to it.
    struct EnqueueResult: Sendable {
        var isAccepted: Bool
        var queuedBytes: Int
        var isSuspended: Bool
    }

    private enum State {
        case waiting(OneShotContinuation?)
        case over(Result<Void, TaskFailure>)
    }

    private let state = Mutex(State.waiting(nil))

    /// Looks for room and takes it in one step on the loop, so that many at once cannot exceed the limits together.
    func enqueue(_ payload: SendPayload, on link: RelayEndpoint) async -> EnqueueResult {
        await link.onLoop { link in
            let queued = link.bytesToSend
            let fits = queued == 0 || queued + payload.count <= Self.byteLimit
            let isTaken = fits && link.waitingSends < Self.messageLimit
            let place = EnqueueResult(isAccepted: isTaken, queuedBytes: queued, isSuspended: link.isSuspended)
            guard isTaken else { return place }
            switch link {
            case .webSocket(let task): task.send(payload.message) { self.finished($0) }
            case .stream(let task): task.write(payload.bytes, timeout: nil) { self.finished($0) }
            }
            return place
        }
    }

    /// Waits for the kernel to take every byte. What is not taken in time stays in the queue.
    /// - Returns: whether that is done.
    /// - Throws: why it never will be.
    func wait(within limit: Duration) async throws(TaskFailure) -> Bool {
        let isOver = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let box = OneShotContinuation(continuation)
            let isOver = self.state.withLock { state in
                if case .over = state { return true }
                state = .waiting(box)
                return false
            }
            if isOver { return box.resume(returning: true) }
            Task {
                try? await Task.sleep(for: limit)
                box.resume(returning: false)
            }
        }
        guard isOver, case .over(let result) = self.state.withLock({ $0 }) else { return false }
        try result.get()
        return true
    }

    private func finished(_ result: Result<Void, TaskFailure>) {
        let box = self.state.withLock { state -> OneShotContinuation? in
            defer { state = .over(result) }
            if case .waiting(let box) = state { return box }
            return nil
        }
        box?.resume(returning: true)
    }
}
