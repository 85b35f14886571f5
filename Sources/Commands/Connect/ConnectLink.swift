import CommandLineText
import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The connection of `connect`: a stream, a WebSocket, or a connection of a gateway.
protocol ConnectLink: Sendable {
    /// Starts opening the connection. Each closure is called at most once; `closed` always is.
    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async

    /// Returns what has arrived; waits for the first item. Never empty, and `.end` is the last item.
    func receive() async -> [ReceivedItem]

    /// Returns when the system has accepted all data.
    func send(_ outgoing: [OutgoingItem]) async throws(TaskFailure)

    /// - Returns: the round-trip time.
    func ping(_ payload: String) async throws(TaskFailure) -> Duration

    /// Sends a Close frame, or half-closes a stream, after all data sent before. Only the first call has an effect.
    func closeOutput(code: UInt16, reason: String)

    /// Stops reading.
    func stopReading()

    /// Closes the connection at once.
    func abort()

    var metadata: ConnectionMetadata { get }

    /// The failure after the end; `nil` for a clean end.
    func failure(wasOpen: Bool) -> ConnectFailure?

    /// How the connection was closed. Valid after the end.
    /// - Parameter party: who closed first as far as the session knows; a WebSocket knows from the Close frames.
    func closingMetadata(by party: ClosingMetadata.Party) -> ClosingMetadata
}

/// A byte stream: TCP, TLS or a Unix socket, upgraded by STARTTLS if requested.
final class StreamLink: ConnectLink {
    private struct Outcome {
        var taskFailure: TaskFailure?
        /// Failure that preceded the task's own.
        var failure: ConnectFailure?
        var reading: Task<StreamTask.Chunk?, Never>?
        var isReadingStopped = false
    }

    private let plan: ConnectPlan
    private let startTLS: ConnectPlan.StartTLS?
    private let task: StreamTask
    private let outcome = Mutex(Outcome())

    init(_ target: OpeningTarget, _ startTLS: ConnectPlan.StartTLS?, plan: ConnectPlan, on loop: Loop) {
        self.plan = plan
        self.startTLS = startTLS
        self.task = StreamTask(to: target, on: loop)
    }

    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async {
        let task = self.task
        task.loop.execute {
            if self.startTLS == nil { task.openObserver = opened }
            task.whenEnded { failure in
                self.outcome.withLock { $0.taskFailure = failure }
                closed()
            }
            task.resumeOnLoop()
        }
        guard let startTLS = self.startTLS else { return }
        Task {
            do throws(ConnectFailure) {
                try await StartTLSExchange(task: task, url: self.plan.url).upgrade(startTLS)
                opened()
            } catch {
                self.outcome.withLock { $0.failure = $0.failure ?? error }
                task.cancel()
            }
        }
    }

    func receive() async -> [ReceivedItem] {
        let task = self.task
        // In a separate task, so that `stopReading` can cancel the read.
        let reading = Task { try? await task.read(maximum: StandardStreams.readSize) }
        let isReadingStopped = self.outcome.withLock {
            $0.reading = reading
            return $0.isReadingStopped
        }
        if isReadingStopped { reading.cancel() }
        guard let chunk = await reading.value, !(chunk.isAtEnd && chunk.bytes.isEmpty) else { return [.end] }
        return chunk.isAtEnd ? [.bytes(chunk.bytes), .end] : [.bytes(chunk.bytes)]
    }

    func send(_ outgoing: [OutgoingItem]) async throws(TaskFailure) {
        for one in outgoing {
            switch one {
            case .text(let text): try await self.task.write(Array(text.utf8))
            case .data(let bytes): try await self.task.write(bytes)
            }
        }
    }

    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        throw .usageError("Ping is only available on a WebSocket")
    }

    func closeOutput(code: UInt16, reason: String) {
        self.task.closeWrite()
    }

    func stopReading() {
        let reading = self.outcome.withLock {
            $0.isReadingStopped = true
            return $0.reading
        }
        reading?.cancel()
        self.task.closeRead()
    }

    func abort() {
        self.task.cancel()
    }

    // MARK: Metadata

    var metadata: ConnectionMetadata { self.task.record.metadata(url: "\(self.plan.url)") }

    func failure(wasOpen: Bool) -> ConnectFailure? {
        let (own, failure) = self.outcome.withLock { ($0.failure, $0.taskFailure) }
        if let own { return own }
        guard let failure else { return nil }
        return wasOpen ? ConnectFailure(failure) : ConnectFailure(opening: failure, of: self.plan.url)
    }

    func closingMetadata(by party: ClosingMetadata.Party) -> ClosingMetadata {
        ClosingMetadata(
            by: party, bytesReceived: self.task.record.bytesReceived, bytesSent: self.task.record.bytesSent)
    }
}

/// A WebSocket connection.
final class WebSocketLink: ConnectLink {
    private let plan: ConnectPlan
    private let task: WebSocketTask
    private let outcome = Mutex<WebSocketEnd?>(nil)

    init(_ opening: ClientOpening, _ options: WebSocketOptions, plan: ConnectPlan, on loop: Loop) async {
        self.plan = plan
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

    func receive() async -> [ReceivedItem] {
        let task = self.task
        return await withCheckedContinuation { continuation in
            task.loop.execute { MessageBatch(task).fill { continuation.resume(returning: $0) } }
        }
    }

    /// Queues all messages and waits for the last, since they are sent in order.
    func send(_ outgoing: [OutgoingItem]) async throws(TaskFailure) {
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

    func closeOutput(code: UInt16, reason: String) {
        self.task.cancel(with: CloseCode(rawValue: code), reason: Array(reason.utf8))
    }

    func stopReading() {}

    func abort() {
        let task = self.task
        task.loop.execute { task.reset() }
    }

    private static func message(_ outgoing: OutgoingItem) -> WebSocketTask.Message {
        switch outgoing {
        case .text(let text): .string(text)
        case .data(let bytes): .data(bytes)
        }
    }

    // MARK: Metadata

    var metadata: ConnectionMetadata {
        var metadata = self.task.record.metadata(url: "\(self.plan.url)")
        metadata.response = self.task.response
        metadata.subprotocol = self.task.subprotocol
        return metadata
    }

    func failure(wasOpen: Bool) -> ConnectFailure? {
        guard let end = self.outcome.withLock({ $0 }) else { return ConnectFailure(.interrupted, "interrupted") }
        if case .handshakeRefused? = end.failure, let response = self.task.response {
            return ConnectFailure(refusal: response, body: self.task.responseBody, of: self.plan.url)
        }
        guard let failure = end.failure else { return nil }
        return wasOpen ? ConnectFailure(failure) : ConnectFailure(opening: failure, of: self.plan.url)
    }

    func closingMetadata(by party: ClosingMetadata.Party) -> ClosingMetadata {
        ClosingMetadata(
            by: self.task.closeCode == nil ? party : self.task.isClosedByPeer ? .peer : .us,
            code: self.task.closeCode?.rawValue,
            reason: self.task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? "",
            bytesReceived: self.task.record.bytesReceived, bytesSent: self.task.record.bytesSent)
    }
}

/// Takes all messages that a WebSocket task has buffered. Runs on the task's loop.
///
/// A hop to the loop and back costs more than a small message, so all available messages are taken with the first. The
/// task bounds its buffer, which bounds the batch too.
private final class MessageBatch {
    /// Maximum number of messages in a batch.
    private static let limit = 256

    private let task: WebSocketTask
    private var taken: [ReceivedItem] = []
    private var completion: (([ReceivedItem]) -> Void)?
    /// `receive` is on the stack: its completion may run synchronously.
    private var isReceiving = false
    private var isWithdrawn = false

    init(_ task: WebSocketTask) {
        self.task = task
    }

    /// - Parameter completion: called once; synchronously if a message is available.
    func fill(_ completion: @escaping ([ReceivedItem]) -> Void) {
        self.completion = completion
        while self.taken.count < Self.limit {
            let before = self.taken.count
            self.isReceiving = true
            let number = self.task.receive { self.answered($0) }
            self.isReceiving = false
            if case .end? = self.taken.last { return self.deliver() }
            guard self.taken.count == before else { continue }
            // No more messages: withdraw the request, unless the batch is empty and has to wait for its first message.
            guard before > 0 else { return }
            self.isWithdrawn = true
            self.task.withdrawReceive(number)
            return self.deliver()
        }
        self.deliver()
    }

    private func answered(_ result: Result<WebSocketTask.Message, TaskFailure>) {
        guard !self.isWithdrawn else { return }
        switch result {
        case .success(.string(let text)): self.taken.append(.text(text))
        case .success(.data(let bytes)): self.taken.append(.data(bytes))
        case .failure: self.taken.append(.end)
        }
        if !self.isReceiving { self.deliver() }
    }

    private func deliver() {
        let completion = self.completion
        self.completion = nil
        completion?(self.taken)
    }
}

/// Runs a `StartTLSDialogue` on a stream and then upgrades it to TLS.
private struct StartTLSExchange {
    let task: StreamTask
    let url: EndpointURL

    func upgrade(_ startTLS: ConnectPlan.StartTLS) async throws(ConnectFailure) {
        var dialogue = StartTLSDialogue(startTLS.mode)
        while true {
            switch dialogue.nextAction() {
            case .send(let bytes):
                try await self.perform { task throws(TaskFailure) in try await task.write(bytes) }
            case .read:
                // Plaintext after the server's consent is rejected here, or by TLS if it arrives later.
                let chunk = try await self.perform { task throws(TaskFailure) in try await task.read(maximum: 4096) }
                guard !chunk.bytes.isEmpty else {
                    throw ConnectFailure(
                        .refused, "\(self.url): the server closed the connection before TLS",
                        remedy: "check that the server speaks the protocol given with --starttls")
                }
                dialogue.received(chunk.bytes)
            case .secure:
                return try await self.perform { task throws(TaskFailure) in
                    try await task.startSecureConnection(startTLS.settings)
                }
            case .refused(let answer):
                throw ConnectFailure(
                    .refused, "\(self.url): STARTTLS refused: \(answer)",
                    remedy: "nothing but the STARTTLS request was sent in plaintext")
            case .invalid(let reason):
                throw ConnectFailure(
                    .refused, "\(self.url): STARTTLS failed: \(reason)",
                    remedy: "check that the server speaks the protocol given with --starttls")
            }
        }
    }

    private func perform<Value: Sendable>(
        _ operation: (StreamTask) async throws(TaskFailure) -> Value
    ) async throws(ConnectFailure) -> Value {
        do throws(TaskFailure) {
            return try await operation(self.task)
        } catch {
            throw ConnectFailure(opening: error, of: self.url)
        }
    }
}
