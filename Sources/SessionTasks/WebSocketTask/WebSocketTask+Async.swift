import StreamTransport
import Synchronization
import WebSocketProtocol

/// The task from any thread.
extension WebSocketTask {
    /// Sends one message behind those before it; returns when the kernel has taken every byte.
    ///
    /// Cancelling the awaiting Swift task withdraws the message if it had not begun; one that has begun goes out whole.
    /// - Throws: `TaskFailure`.
    public func send(_ message: Message) async throws(TaskFailure) {
        try await self.perform { task, completion in
            task.send(message, completion)
        } withdraw: { task, number in
            task.withdrawSend(number)
        }
    }

    /// The next whole message, in the order of arrival; those who ask first are served first.
    ///
    /// A Close frame, or what breaks the protocol, takes effect when the messages before it were received and the next
    /// one is asked for, but after a second at the latest: until then the last message can still be answered.
    ///
    /// Cancelling the awaiting Swift task loses no message: one that had not been given out goes to the next who asks.
    /// - Throws: `TaskFailure`; `.closed` after a clean end.
    public func receive() async throws(TaskFailure) -> Message {
        try await self.perform { task, completion in
            task.receive(completion)
        } withdraw: { task, number in
            task.withdrawReceive(number)
        }
    }

    /// Sends a Ping and returns when its Pong is there. Pings are answered in their order.
    ///
    /// Cancelling the awaiting Swift task ends the wait; a Ping that has gone out is not taken back.
    /// - Throws: `TaskFailure`, if the connection ends first.
    public func sendPing() async throws(TaskFailure) {
        try await self.perform { task, completion in
            task.sendPing([], completion)
        } withdraw: { task, number in
            task.withdrawSend(number)
        }
    }

    /// Begins the closing handshake behind what was sent. Waiting receives fail once the peer's Close frame is there.
    /// - Parameters:
    ///   - code: one that may not go over the wire is sent as 1000.
    ///   - reason: UTF-8; cut at a character to 123 bytes.
    public func cancel(with code: CloseCode, reason: [UInt8] = []) {
        self.loop.execute { self.close(code, reason: reason) }
    }

    /// Ends the task without waiting for the peer: a Close frame without a code if the handshake was done, and
    /// everything that waits fails with `.cancelled`.
    public func cancel() {
        self.record.state = .canceling
        self.loop.execute { self.cancelOnLoop() }
    }

    /// Lets the task rest: until it is resumed nothing is read, and messages and pings wait.
    public func suspend() {
        self.loop.execute { self.suspendOnLoop() }
    }

    /// Starts the task, which connects and shakes hands; or ends its rest.
    public func resume() {
        self.loop.execute { self.resumeOnLoop() }
    }

    /// The code of the first Close frame, ours or the peer's (1005 for one without a code); `nil` while there was none.
    public var closeCode: CloseCode? { self.published { $0.closeCode } }
    /// The reason in that Close frame; `nil` for none.
    public var closeReason: [UInt8]? { self.published { $0.closeReason } }
    /// The subprotocol that was chosen.
    public var subprotocol: String? { self.published { $0.subprotocol } }
    /// The server's answer to the opening handshake, a refusal too; `nil` before, and on a server.
    public var response: ResponseHead? { self.published { $0.response } }
    /// The first bytes of a refusal's body, at most 16 KiB.
    public var responseBody: [UInt8] { self.published { $0.responseBody } }

    private func perform<R: Sendable>(
        _ begin: @escaping @Sendable (WebSocketTask, @escaping (Result<R, TaskFailure>) -> Void) -> UInt64,
        withdraw: @escaping @Sendable (WebSocketTask, UInt64) -> Void
    ) async throws(TaskFailure) -> R {
        let operation = AwaitedOperation()
        let result: Result<R, TaskFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.loop.execute {
                    guard operation.mayBegin() else { return continuation.resume(returning: .failure(.cancelled)) }
                    let number = begin(self) { continuation.resume(returning: $0) }
                    operation.began(number)
                }
            }
        } onCancel: {
            self.loop.execute {
                guard let number = operation.cancel() else { return }
                withdraw(self, number)
            }
        }
        return try result.get()
    }
}
