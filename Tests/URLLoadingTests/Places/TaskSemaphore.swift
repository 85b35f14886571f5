import Synchronization

/// Limits the number of concurrent tasks; waiting tasks enter in the order of arrival.
final class TaskSemaphore: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(places: Int) { self.state = Mutex(State(free: places)) }

    func enter() async {
        await withCheckedContinuation { continuation in
            let enters = self.state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if enters { continuation.resume() }
        }
    }

    /// Admits the waiter that has waited longest.
    func leave() {
        let next: CheckedContinuation<Void, Never>? = self.state.withLock { state in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
