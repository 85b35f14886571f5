import Cluster
import Synchronization

/// Calls to other nodes that several callers make with the same content: while one is unanswered, further callers wait for
/// its answer instead of making their own.
package final class SharedCalls: Sendable {
    package typealias Answer = Result<[UInt8], ClusterError>

    private struct Key: Hashable {
        let node: String
        let content: [UInt8]
    }

    private struct Running {
        /// Number of the first caller: a later call with the same content has another one.
        let number: UInt64
        var task: Task<Void, Never>?
        var callers: [UInt64: CheckedContinuation<Answer, Never>]
    }

    private struct State {
        var running: [Key: Running] = [:]
        var lastCaller: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Callers that wait.
    package var callerCount: Int {
        self.state.withLock { $0.running.values.reduce(0) { $0 + $1.callers.count } }
    }

    /// Cancelling the awaiting task ends the wait with `timeout`. When no caller waits any more, the task that performs the
    /// call is cancelled.
    /// - Parameter perform: makes the call.
    package func call(
        _ node: String, _ content: [UInt8],
        _ perform: @escaping @Sendable () async throws(ClusterError) -> [UInt8]
    ) async throws(ClusterError) -> [UInt8] {
        let key = Key(node: node, content: content)
        let number = self.state.withLock { state in
            state.lastCaller += 1
            return state.lastCaller
        }
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { self.add($0, number, key, perform) }
        } onCancel: {
            self.withdraw(number, key)
        }
        return try answer.get()
    }

    private func add(
        _ caller: CheckedContinuation<Answer, Never>, _ number: UInt64, _ key: Key,
        _ perform: @escaping @Sendable () async throws(ClusterError) -> [UInt8]
    ) {
        let isCancelled = self.state.withLock { state in
            // A cancellation after this check finds the caller.
            guard !Task.isCancelled else { return true }
            if state.running[key] != nil {
                state.running[key]?.callers[number] = caller
            } else {
                let task = Task { await self.perform(perform, number, key) }
                state.running[key] = Running(number: number, task: task, callers: [number: caller])
            }
            return false
        }
        if isCancelled { caller.resume(returning: .failure(.timeout(node: key.node))) }
    }

    private func perform(
        _ perform: @Sendable () async throws(ClusterError) -> [UInt8], _ number: UInt64, _ key: Key
    ) async {
        let answer: Answer
        do throws(ClusterError) {
            answer = .success(try await perform())
        } catch {
            answer = .failure(error)
        }
        let callers = self.state.withLock { state in
            // Without callers the call was forgotten, and there may be another one.
            guard state.running[key]?.number == number else { return [CheckedContinuation<Answer, Never>]() }
            return Array((state.running.removeValue(forKey: key)?.callers ?? [:]).values)
        }
        for caller in callers { caller.resume(returning: answer) }
    }

    private func withdraw(_ number: UInt64, _ key: Key) {
        let (caller, task) = self.state.withLock { state -> (CheckedContinuation<Answer, Never>?, Task<Void, Never>?) in
            guard let caller = state.running[key]?.callers.removeValue(forKey: number) else { return (nil, nil) }
            guard state.running[key]?.callers.isEmpty == true else { return (caller, nil) }
            return (caller, state.running.removeValue(forKey: key)?.task)
        }
        task?.cancel()
        caller?.resume(returning: .failure(.timeout(node: key.node)))
    }
}
