import StreamTransport

/// The writes of a stream task.
package struct SendQueue: StreamQueue {
    package typealias Operation = QueuedOperation<Send>
    package typealias Completion = (Result<Void, TaskFailure>) -> Void

    package struct Send: QueuedTransfer {
        package let number: UInt64
        package let bytes: [UInt8]
        package var deadline: MonotonicInstant?
        package let completion: Completion
        /// Bytes that the transport was given.
        fileprivate var writtenCount = 0
        /// Value of the transport's `sentBytes` at which the write is complete; known once all bytes were passed on.
        fileprivate var doneAt: UInt64?

        /// A write that has begun is completed, and its caller learns how it ended.
        package var isWithdrawable: Bool { self.writtenCount == 0 && self.doneAt == nil }

        package init(
            number: UInt64, bytes: [UInt8], deadline: MonotonicInstant?, completion: @escaping Completion
        ) {
            self.number = number
            self.bytes = bytes
            self.deadline = deadline
            self.completion = completion
        }
    }

    package enum Action {
        /// Give the transport bytes of the first write, from `offset` on.
        case write([UInt8], offset: Int)
        case answer(Completion, Result<Void, TaskFailure>)
        case closeOutput
        case barrier(BarrierAction)
    }

    package var core = StreamQueueCore<Send>()

    package init() {}

    /// Operations that wait, those failed by a deadline not included.
    var count: Int { self.core.operations.count }

    /// Bytes that the transport was not given yet.
    var waitingBytes: Int {
        self.core.operations.reduce(0) { sum, operation in
            if case .transfer(let send) = operation { sum + send.bytes.count - send.writtenCount } else { sum }
        }
    }

    /// Whether the first operation is a write, which only the transport can bring forward.
    var awaitsTransport: Bool { self.core.firstTransfer != nil }

    /// - Parameters:
    ///   - sentBytes: what the kernel has taken from the transport so far.
    ///   - mayWrite: whether the transport's queue is below its watermark.
    package mutating func nextAction(sentBytes: UInt64, mayWrite: Bool) -> Action? {
        if let action = self.nextExpiredAction() { return action }
        switch self.core.operations.first {
        case nil:
            return nil
        case .transfer(let send):
            return self.action(for: send, sentBytes: sentBytes, mayWrite: mayWrite)
        case .close:
            self.core.removeFirst()
            self.fail(.directionClosed)
            return .closeOutput
        case .barrier(let number):
            return self.core.barrierAction(number).map { .barrier($0) }
        }
    }

    /// The next action for an operation that a passed deadline failed; it needs no transport.
    mutating func nextExpiredAction() -> Action? {
        while let (operation, failure) = self.core.popExpired() {
            switch operation {
            case .transfer(let send): return .answer(send.completion, .failure(failure))
            case .barrier(let number): return .barrier(.failed(number, failure))
            // An end of output after unsent bytes would make the peer believe that it has everything.
            case .close: continue
            }
        }
        return nil
    }

    private mutating func action(for send: Send, sentBytes: UInt64, mayWrite: Bool) -> Action? {
        if let doneAt = send.doneAt, sentBytes >= doneAt {
            self.core.removeFirst()
            return .answer(send.completion, .success(()))
        }
        if let failure = self.core.failure {
            self.core.removeFirst()
            return .answer(send.completion, .failure(failure))
        }
        guard send.doneAt == nil, mayWrite else { return nil }
        return .write(send.bytes, offset: send.writtenCount)
    }

    /// The transport was given `count` bytes of the first write, and has been given `writtenBytes` in all.
    package mutating func didWrite(_ count: Int, writtenBytes: UInt64) {
        guard var send = self.core.firstTransfer else { return }
        send.writtenCount += count
        if send.writtenCount >= send.bytes.count { send.doneAt = writtenBytes }
        self.core.firstTransfer = send
    }
}
