import Synchronization

/// The longest time between two steps of a test; it distinguishes a stalled machine from a failure of a timeout.
final class StepTimer: Sendable {
    private let state = Mutex((last: ContinuousClock.now, longest: Duration.zero))

    /// Starts measuring from now on.
    func begin() { self.state.withLock { $0.last = .now } }

    func step() {
        self.state.withLock { state in
            let now = ContinuousClock.now
            state.longest = max(state.longest, now - state.last)
            state.last = now
        }
    }

    var longest: Duration { self.state.withLock { $0.longest } }
}
