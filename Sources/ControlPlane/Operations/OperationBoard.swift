import Synchronization

/// The operations that are under way or were. Bounded: the oldest that is over makes room.
final class OperationBoard: Sendable {
    static let limit = 256

    private struct State {
        /// In the order in which they began.
        var operations: [RunningOperation] = []
        var last: UInt64 = 0
        var isStopped = false
    }

    private let state = Mutex(State())

    var all: [RunningOperation] { self.state.withLock { $0.operations } }

    func find(_ name: String) -> RunningOperation? {
        guard let number = UInt64(name), "\(number)" == name else { return nil }
        return self.state.withLock { $0.operations.first { $0.number == number } }
    }

    /// - Throws: `ControlProblem` 429 where as many go on as may.
    func add(_ operation: Operation, by caller: Caller) throws(ControlProblem) -> RunningOperation {
        let running = self.state.withLock { state -> RunningOperation? in
            if state.operations.count >= Self.limit {
                guard let index = state.operations.firstIndex(where: { $0.outcome != nil }) else { return nil }
                state.operations.remove(at: index)
            }
            guard !state.isStopped else { return nil }
            state.last += 1
            let running = RunningOperation(operation, by: caller, number: state.last)
            state.operations.append(running)
            return running
        }
        guard let running else {
            throw ControlProblem(
                429, "too-many-operations",
                "\(Self.limit) operations go on already; wait for one to end, or give one up."
            ).retryable(after: 1)
        }
        return running
    }

    func remove(_ operation: RunningOperation) {
        self.state.withLock { $0.operations.removeAll { $0 === operation } }
    }

    /// Gives up all of them.
    func stop() {
        let operations = self.state.withLock { state in
            state.isStopped = true
            return state.operations
        }
        for operation in operations { operation.giveUp() }
    }
}
