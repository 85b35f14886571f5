import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// A WebSocket of `connect`.
final class MessageLink: ConnectLink {
    private let url: String
    private let endpoint: ConnectPlan
    private let task: WebSocketTask
    private let outcome = Mutex<WebSocketEnd?>(nil)

    init(_ opening: ClientOpening, _ options: WebSocketOptions, plan: ConnectPlan, on loop: Loop) async {
        self.url = "\(plan.url)"
        self.endpoint = plan
        self.task = await withCheckedContinuation { continuation in
            loop.execute {
                continuation.resume(returning: WebSocketTask(opening: opening, on: loop, options: options))
            }
        }
    }

    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async {
        let task = self.task
        task.loop.execute {
            task.openObserver = opened
            task.whenEnded { end in
                self.outcome.withLock { $0 = end }
                closed()
            }
            task.resumeOnLoop()
        }
    }

    func receive() async -> [Received] {
        let task = self.task
        return await withCheckedContinuation { continuation in
            task.loop.execute { MessageBatch(task).fill { continuation.resume(returning: $0) } }
        }
    }

    /// All at once: only the last one is waited for, since they go out in their order.
    func send(_ outgoing: [Outgoing]) async throws(TaskFailure) {
        guard let last = outgoing.last else { return }
        let task = self.task
        let result: Result<Void, TaskFailure> = await withCheckedContinuation { continuation in
            task.loop.execute {
                for one in outgoing.dropLast() { task.send(Self.message(one)) { _ in } }
                task.send(Self.message(last)) { continuation.resume(returning: $0) }
            }
        }
        try result.get()
    }

    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        let began = ContinuousClock.now
        let task = self.task
        let result: Result<Void, TaskFailure> = await withCheckedContinuation { continuation in
            task.loop.execute { task.sendPing(Array(payload.utf8)) { continuation.resume(returning: $0) } }
        }
        try result.get()
        return ContinuousClock.now - began
    }

    func end(code: UInt16, reason: String) {
        self.task.cancel(with: CloseCode(rawValue: code), reason: Array(reason.utf8))
    }

    func leave() {}

    func abort() {
        let task = self.task
        task.loop.execute { task.reset() }
    }

    private static func message(_ outgoing: Outgoing) -> WebSocketTask.Message {
        switch outgoing {
        case .text(let text): .string(text)
        case .data(let bytes): .data(bytes)
        }
    }

    // MARK: What is known of it

    var facts: ConnectionFacts {
        var facts = self.task.record.facts(url: self.url)
        facts.response = self.task.response
        facts.subprotocol = self.task.subprotocol
        return facts
    }

    func failure(wasOpen: Bool) -> ConnectFailure? {
        guard let end = self.outcome.withLock({ $0 }) else { return ConnectFailure(.interrupted, "interrupted") }
        if case .handshakeRefused? = end.failure, let response = self.task.response {
            return ConnectFailure(refusal: response, body: self.task.responseBody, of: self.endpoint.url)
        }
        guard let failure = end.failure else { return nil }
        return wasOpen ? ConnectFailure(failure) : ConnectFailure(opening: failure, of: self.endpoint.url)
    }

    func closingFacts(by party: ClosingFacts.Party) -> ClosingFacts {
        ClosingFacts(
            by: party, code: self.task.closeCode?.rawValue,
            reason: self.task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? "",
            bytesReceived: self.task.record.bytesReceived, bytesSent: self.task.record.bytesSent)
    }
}
