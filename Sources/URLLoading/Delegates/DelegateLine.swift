import DequeModule
import Foundation
import Synchronization

/// The messages of one session on their way to its delegate queue.
///
/// On a serial queue they share operations: one takes everything that waits, in order, and lets others of the queue in
/// between after `batch` of them. On a queue that runs several at a time each is an operation of its own.
final class DelegateLine: Sendable {
    typealias Message = @Sendable () -> Void

    private static let batch = 64

    let queue: OperationQueue
    private struct State {
        var waiting = Deque<Message>()
        var isScheduled = false
    }
    private let state = Mutex(State())

    /// - Parameter queue: `nil` makes a serial one.
    init(_ queue: OperationQueue?) {
        if let queue {
            self.queue = queue
        } else {
            let own = OperationQueue()
            own.name = "URLSession delegate queue"
            own.maxConcurrentOperationCount = 1
            self.queue = own
        }
    }

    func add(_ message: @escaping Message) {
        guard self.queue.maxConcurrentOperationCount == 1 else { return self.queue.addOperation(message) }
        let begins = self.state.withLock { state in
            state.waiting.append(message)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if begins { self.schedule() }
    }

    private func schedule() {
        self.queue.addOperation { self.deliver() }
    }

    private func deliver() {
        for _ in 0..<Self.batch {
            let next = self.state.withLock { state -> Message? in
                let next = state.waiting.popFirst()
                if next == nil { state.isScheduled = false }
                return next
            }
            guard let next else { return }
            next()
            // Who suspends the queue means the very next message.
            if self.queue.isSuspended { break }
        }
        self.schedule()
    }
}
