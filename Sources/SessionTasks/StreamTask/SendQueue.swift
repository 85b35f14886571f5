import DequeModule
import StreamTransport

/// The writes of a stream task in their order. Knows no transport and no clock.
package struct SendQueue {
    package typealias Completion = (Result<Void, TaskFailure>) -> Void

    package struct Send {
        package let number: UInt64
        package let bytes: [UInt8]
        package let deadline: MonotonicInstant?
        package let completion: Completion
        /// Bytes that the transport was given.
        package var given = 0
        /// What the transport's `sentBytes` must reach for the write to be done; known once all was given.
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

    package enum Order {
        /// Give the transport bytes of the first write, from `offset` on.
        case write([UInt8], offset: Int)
        case answer(Completion, Result<Void, TaskFailure>)
        case closeOutput
        case reachedBarrier(UInt64)
    }

    package private(set) var operations: Deque<Operation> = []
    private var failure: TaskFailure?
    private var reportedBarrier: UInt64 = 0

    package init() {}

    package var isEmpty: Bool {
        self.operations.isEmpty
    }

    package var earliestDeadline: MonotonicInstant? {
        self.operations.compactMap { operation -> MonotonicInstant? in
            if case .send(let send) = operation { send.deadline } else { nil }
        }.min()
    }

    package mutating func append(_ operation: Operation) {
        self.operations.append(operation)
    }

    package mutating func fail(_ failure: TaskFailure) {
        if self.failure == nil { self.failure = failure }
    }

    /// - Parameters:
    ///   - sentBytes: what the kernel has taken from the transport so far.
    ///   - mayWrite: whether the transport's queue is below its watermark.
    package mutating func nextOrder(sentBytes: UInt64, mayWrite: Bool) -> Order? {
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
            guard self.reportedBarrier != number else { return nil }
            self.reportedBarrier = number
            return .reachedBarrier(number)
        }
    }

    private mutating func order(for send: Send, sentBytes: UInt64, mayWrite: Bool) -> Order? {
        if let doneAt = send.doneAt, sentBytes >= doneAt {
            self.operations.removeFirst()
            return .answer(send.completion, .success(()))
        }
        if let failure = self.failure {
            self.operations.removeFirst()
            return .answer(send.completion, .failure(failure))
        }
        guard send.doneAt == nil, mayWrite else { return nil }
        return .write(send.bytes, offset: send.given)
    }

    /// The transport was given `count` bytes of the first write, and has been given `writtenBytes` in all.
    package mutating func gave(_ count: Int, writtenBytes: UInt64) {
        guard case .send(var send) = self.operations.first else { return }
        send.given += count
        if send.given >= send.bytes.count { send.doneAt = writtenBytes }
        self.operations[0] = .send(send)
    }

    package func isAtBarrier(_ number: UInt64) -> Bool {
        if case .barrier(number) = self.operations.first { true } else { false }
    }

    package mutating func liftBarrier() {
        if case .barrier = self.operations.first { self.operations.removeFirst() }
    }

    /// Takes one write out, if none of its bytes was given away: a write that has begun runs to its end, and its caller learns which.
    package mutating func withdraw(_ number: UInt64) -> Completion? {
        let found = self.operations.firstIndex {
            if case .send(let send) = $0 { send.number == number && send.given == 0 && send.doneAt == nil } else { false }
        }
        guard let found, case .send(let send) = self.operations[found] else { return nil }
        self.operations.remove(at: found)
        return send.completion
    }

    package mutating func expire(at now: MonotonicInstant) {
        guard let deadline = self.earliestDeadline, deadline <= now else { return }
        self.fail(.timedOut)
    }
}
