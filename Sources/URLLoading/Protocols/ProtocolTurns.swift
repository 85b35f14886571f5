import DequeModule
import Dispatch
import Foundation
import Synchronization

/// Runs the calls of all protocols one at a time, in the order in which they were added: classes of programs keep static state without
/// locks, since other platforms call them on one thread. A call that waits for its content to be consumed lets others run meanwhile.
package final class ProtocolTurns: Sendable {
    static let shared = ProtocolTurns()

    private struct State {
        var calls: Deque<@Sendable () -> Void> = []
        /// Suspended calls that can continue; they come before new calls.
        var returning: Deque<DispatchSemaphore> = []
        /// Whether a call runs, or a thread has been asked to run the next one.
        var isTaken = false
        /// The thread that runs a call.
        var holder: pthread_t?
    }

    private enum Next {
        case call(@Sendable () -> Void)
        case resume(DispatchSemaphore)
        case none
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameter call: runs on any thread, and may block.
    package func add(_ call: @escaping @Sendable () -> Void) {
        let isFirst = self.state.withLock { state in
            state.calls.append(call)
            defer { state.isTaken = true }
            return !state.isTaken
        }
        if isFirst { self.startThread() }
    }

    /// Runs `wait`, which may block. Other calls run meanwhile if this is called within one.
    package func suspending<Value>(_ wait: () -> Value) -> Value {
        let isCall = self.state.withLock { state in state.holder.map { pthread_equal($0, pthread_self()) != 0 } ?? false
        }
        guard isCall else { return wait() }
        self.passOn()
        let value = wait()
        self.takeTurn()
        return value
    }

    private func startThread() {
        DispatchQueue.global().async {
            while case .call(let call) = self.next() { call() }
        }
    }

    /// The next call for this thread. If a suspended one continues instead, its thread has the turn.
    private func next() -> Next {
        let next = self.state.withLock { state in
            state.holder = nil
            if let thread = state.returning.popFirst() { return Next.resume(thread) }
            guard let call = state.calls.popFirst() else {
                state.isTaken = false
                return .none
            }
            state.holder = pthread_self()
            return .call(call)
        }
        if case .resume(let thread) = next { thread.signal() }
        return next
    }

    private func passOn() {
        let isWanted = self.state.withLock { state in
            state.holder = nil
            state.isTaken = !state.calls.isEmpty || !state.returning.isEmpty
            return state.isTaken
        }
        if isWanted { self.startThread() }
    }

    private func takeTurn() {
        let turn = self.state.withLock { state -> DispatchSemaphore? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let turn = DispatchSemaphore(value: 0)
            state.returning.append(turn)
            return turn
        }
        turn?.wait()
        self.state.withLock { $0.holder = pthread_self() }
    }
}
