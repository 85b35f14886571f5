import DequeModule
import StreamTransport

/// The writes of a stream task in their order. Knows no transport and no clock.
package struct SendQueue {
    package typealias Completion = (Result<Void, TaskFailure>) -> Void

    package struct Send {
        package let number: UInt64
        package let bytes: [UInt8]
        package fileprivate(set) var deadline: MonotonicInstant?
        package let completion: Completion
        /// Bytes that the transport was given.
        package var writtenCount = 0
        /// Value of the transport's `sentBytes` at which the write is complete; known once all bytes were passed on.
        package var doneAt: UInt64?

        package init(
            number: UInt64, bytes: [UInt8], deadline: MonotonicInstant?, completion: @escaping Completion
        ) {
            self.number = number
            self.bytes = bytes
            self.deadline = deadline
            self.completion = completion
        }
    }

    package enum Operation {
        case send(Send)
        case close
        case barrier(number: UInt64)
    }

    package enum Action {
        /// Give the transport bytes of the first write, from `offset` on.
        case write([UInt8], offset: Int)
        case answer(Completion, Result<Void, TaskFailure>)
        case closeOutput
        case reachedBarrier(UInt64)
        /// The barrier's operation cannot happen any more: an operation before it failed.
        case failedBarrier(UInt64, TaskFailure)
    }

    package private(set) var operations: Deque<Operation> = []
    private var failure: TaskFailure?
    /// Operations after a write whose deadline passed: they fail at once, while operations before it continue.
    private var expired = ExpiredOperations<Operation>()
    private var reportedBarrier: UInt64 = 0

    package init() {}

    package var isEmpty: Bool {
        self.operations.isEmpty && self.expired.operations.isEmpty
    }

    /// Bytes that the transport was not given yet.
    package var waitingBytes: Int {
        self.operations.reduce(0) { sum, operation in
            if case .send(let send) = operation { sum + send.bytes.count - send.writtenCount } else { sum }
        }
    }

    package var earliestDeadline: MonotonicInstant? {
        self.operations.compactMap { operation -> MonotonicInstant? in
            if case .send(let send) = operation { send.deadline } else { nil }
        }.min()
    }

    /// Moves every deadline by the time in which none could pass.
    package mutating func postpone(by duration: Duration) {
        for index in self.operations.indices {
            guard case .send(var send) = self.operations[index], let deadline = send.deadline else { continue }
            send.deadline = deadline.advanced(by: duration)
            self.operations[index] = .send(send)
        }
    }

    package mutating func append(_ operation: Operation) {
        if self.expired.isOpen { self.expired.operations.append(operation) } else { self.operations.append(operation) }
    }

    /// Whether the first operation is a write, which only the transport can bring forward.
    package var awaitsTransport: Bool {
        if case .send = self.operations.first { true } else { false }
    }

    package mutating func fail(_ failure: TaskFailure) {
        if self.failure == nil { self.failure = failure }
    }

    /// - Parameters:
    ///   - sentBytes: what the kernel has taken from the transport so far.
    ///   - mayWrite: whether the transport's queue is below its watermark.
    package mutating func nextAction(sentBytes: UInt64, mayWrite: Bool) -> Action? {
        if let order = self.nextExpiredAction() { return order }
        switch self.operations.first {
        case nil:
            return nil
        case .send(let send):
            return self.order(for: send, sentBytes: sentBytes, mayWrite: mayWrite)
        case .close:
            self.operations.removeFirst()
            self.fail(.directionClosed)
            return .closeOutput
        case .barrier(let number):
            if let failure = self.failure, failure != .directionClosed {
                self.operations.removeFirst()
                return .failedBarrier(number, failure)
            }
            guard self.reportedBarrier != number else { return nil }
            self.reportedBarrier = number
            return .reachedBarrier(number)
        }
    }

    /// The next order for what a passed deadline brought down, which needs no transport.
    package mutating func nextExpiredAction() -> Action? {
        while let failure = self.expired.failure, let operation = self.expired.operations.popFirst() {
            switch operation {
            case .send(let send): return .answer(send.completion, .failure(failure))
            case .barrier(let number): return .failedBarrier(number, failure)
            // An end of output after unsent bytes would make the peer believe that it has everything.
            case .close: continue
            }
        }
        return nil
    }

    private mutating func order(for send: Send, sentBytes: UInt64, mayWrite: Bool) -> Action? {
        if let doneAt = send.doneAt, sentBytes >= doneAt {
            self.operations.removeFirst()
            return .answer(send.completion, .success(()))
        }
        if let failure = self.failure {
            self.operations.removeFirst()
            return .answer(send.completion, .failure(failure))
        }
        guard send.doneAt == nil, mayWrite else { return nil }
        return .write(send.bytes, offset: send.writtenCount)
    }

    /// The transport was given `count` bytes of the first write, and has been given `writtenBytes` in all.
    package mutating func didWrite(_ count: Int, writtenBytes: UInt64) {
        guard case .send(var send) = self.operations.first else { return }
        send.writtenCount += count
        if send.writtenCount >= send.bytes.count { send.doneAt = writtenBytes }
        self.operations[0] = .send(send)
    }

    package func isAtBarrier(_ number: UInt64) -> Bool {
        if case .barrier(number) = self.operations.first { true } else { false }
    }

    /// Removes the barrier and fails the operations after it and all later ones.
    package mutating func failAfterBarrier(_ number: UInt64, _ failure: TaskFailure) {
        let found = self.operations.firstIndex { if case .barrier(number) = $0 { true } else { false } }
        if let found { self.expired.take(&self.operations, from: found + 1, failure) }
        self.liftBarrier(number)
    }

    /// Removes the barrier, wherever it is in the queue, so that the operations after it run.
    package mutating func liftBarrier(_ number: UInt64) {
        self.operations.removeAll { if case .barrier(number) = $0 { true } else { false } }
    }

    /// Takes one write out, if none of its bytes was given away: a write that has begun runs to its end, and its caller
    /// learns which.
    package mutating func withdraw(_ number: UInt64) -> Completion? {
        let found = self.operations.firstIndex {
            if case .send(let send) = $0 {
                send.number == number && send.writtenCount == 0 && send.doneAt == nil
            } else {
                false
            }
        }
        guard let found, case .send(let send) = self.operations[found] else { return nil }
        self.operations.remove(at: found)
        return send.completion
    }

    /// Fails the first write whose deadline has passed, and everything after it; writes before it are not touched.
    package mutating func expire(at now: MonotonicInstant) {
        let late = self.operations.firstIndex {
            if case .send(let send) = $0, let deadline = send.deadline { deadline <= now } else { false }
        }
        guard let late else { return }
        self.expired.take(&self.operations, from: late, .timedOut)
    }
}
