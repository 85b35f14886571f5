import DequeModule

/// The end of a queue behind an operation whose deadline passed: everything in it, and everything that comes later,
/// fails alike.
struct DoomedOperations<Operation> {
    var operations: Deque<Operation> = []
    private(set) var failure: TaskFailure?

    /// Whether newcomers belong here.
    var isOpen: Bool {
        self.failure != nil
    }

    /// Moves the operations from `index` on here, in front of what is here already.
    mutating func take(_ queue: inout Deque<Operation>, from index: Int, _ failure: TaskFailure) {
        self.operations.prepend(contentsOf: queue[index...])
        queue.removeSubrange(index...)
        self.failure = self.failure ?? failure
    }
}
