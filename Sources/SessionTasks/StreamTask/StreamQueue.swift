import DequeModule
import StreamTransport

/// The reads or the writes of a stream task in order, without transport and clock: deadlines, barriers, failures. Its
/// two kinds decide when the first operation is done.
package protocol StreamQueue {
    associatedtype Transfer: QueuedTransfer

    var core: StreamQueueCore<Transfer> { get set }
}

/// A read or a write in a queue.
package protocol QueuedTransfer {
    associatedtype Value

    /// For withdrawing it.
    var number: UInt64 { get }
    /// `nil`: waits without limit.
    var deadline: MonotonicInstant? { get set }
    var completion: (Result<Value, TaskFailure>) -> Void { get }
    /// Whether none of its bytes have moved.
    var isWithdrawable: Bool { get }
}

package enum QueuedOperation<Transfer: QueuedTransfer> {
    case transfer(Transfer)
    /// The direction is to be closed when all operations before are done.
    case close
    /// Later operations wait until both queues have reached the barrier and it was lifted.
    case barrier(number: UInt64)
}

package enum BarrierAction {
    case reached(UInt64)
    /// The barrier's operation cannot happen any more: an operation before it failed.
    case failed(UInt64, TaskFailure)
}

package struct StreamQueueCore<Transfer: QueuedTransfer> {
    package typealias Operation = QueuedOperation<Transfer>

    fileprivate(set) var operations: Deque<Operation> = []
    /// Once set, fails every operation at once.
    fileprivate(set) var failure: TaskFailure?
    /// Operations after one whose deadline passed, and all later ones: they fail at once, while operations before it
    /// continue.
    fileprivate var expired: Deque<Operation> = []
    fileprivate var expiredFailure: TaskFailure?
    private var reportedBarrier: UInt64 = 0

    /// The transfer at the front; `nil` if another operation is there.
    var firstTransfer: Transfer? {
        get { if case .transfer(let transfer) = self.operations.first { transfer } else { nil } }
        set { if let newValue { self.operations[0] = .transfer(newValue) } }
    }

    mutating func removeFirst() {
        self.operations.removeFirst()
    }

    /// The next operation that fails because of a passed deadline.
    mutating func popExpired() -> (operation: Operation, failure: TaskFailure)? {
        guard let failure = self.expiredFailure, let operation = self.expired.popFirst() else { return nil }
        return (operation, failure)
    }

    /// The action for the barrier at the front, once.
    mutating func barrierAction(_ number: UInt64) -> BarrierAction? {
        if let failure = self.failure, failure != .directionClosed {
            self.removeFirst()
            return .failed(number, failure)
        }
        guard self.reportedBarrier != number else { return nil }
        self.reportedBarrier = number
        return .reached(number)
    }

    /// Fails the operations from `index` on, and all later ones.
    fileprivate mutating func expire(from index: Int, _ failure: TaskFailure) {
        self.expired.prepend(contentsOf: self.operations[index...])
        self.operations.removeSubrange(index...)
        self.expiredFailure = self.expiredFailure ?? failure
    }

    fileprivate func firstTransfer(where isWanted: (Transfer) -> Bool) -> (index: Int, transfer: Transfer)? {
        for index in self.operations.indices {
            if case .transfer(let transfer) = self.operations[index], isWanted(transfer) { return (index, transfer) }
        }
        return nil
    }
}

extension StreamQueue {
    package var isEmpty: Bool { self.core.operations.isEmpty && self.core.expired.isEmpty }

    var earliestDeadline: MonotonicInstant? {
        self.core.operations.compactMap { operation -> MonotonicInstant? in
            if case .transfer(let transfer) = operation { transfer.deadline } else { nil }
        }.min()
    }

    /// Moves every deadline by the time in which none could pass.
    mutating func postpone(by duration: Duration) {
        for index in self.core.operations.indices {
            guard case .transfer(var transfer) = self.core.operations[index], let deadline = transfer.deadline else {
                continue
            }
            transfer.deadline = deadline.advanced(by: duration)
            self.core.operations[index] = .transfer(transfer)
        }
    }

    package mutating func append(_ operation: QueuedOperation<Transfer>) {
        if self.core.expiredFailure == nil {
            self.core.operations.append(operation)
        } else {
            self.core.expired.append(operation)
        }
    }

    /// Fails the waiting operations, and all later ones.
    package mutating func fail(_ failure: TaskFailure) {
        if self.core.failure == nil { self.core.failure = failure }
    }

    func isAtBarrier(_ number: UInt64) -> Bool {
        if case .barrier(number) = self.core.operations.first { true } else { false }
    }

    /// Removes the barrier and fails the operations after it and all later ones.
    mutating func failAfterBarrier(_ number: UInt64, _ failure: TaskFailure) {
        let found = self.core.operations.firstIndex { if case .barrier(number) = $0 { true } else { false } }
        if let found { self.core.expire(from: found + 1, failure) }
        self.liftBarrier(number)
    }

    /// Removes the barrier, wherever it is in the queue, so that the operations after it run.
    package mutating func liftBarrier(_ number: UInt64) {
        self.core.operations.removeAll { if case .barrier(number) = $0 { true } else { false } }
    }

    /// Removes one transfer if none of its bytes have moved.
    package mutating func withdraw(_ number: UInt64) -> ((Result<Transfer.Value, TaskFailure>) -> Void)? {
        guard let found = self.core.firstTransfer(where: { $0.number == number && $0.isWithdrawable }) else {
            return nil
        }
        self.core.operations.remove(at: found.index)
        return found.transfer.completion
    }

    /// Fails the first transfer whose deadline has passed, and everything after it; those before it are unchanged.
    package mutating func expire(at now: MonotonicInstant) {
        let late = self.core.firstTransfer(where: { $0.deadline.map { $0 <= now } ?? false })
        if let late { self.core.expire(from: late.index, .timedOut) }
    }
}
