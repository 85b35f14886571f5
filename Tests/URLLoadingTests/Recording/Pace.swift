import Synchronization

/// The longest time between two steps of a test: where clocks run, it tells a machine that stood still from a fault.
final class Pace: Sendable {
    private let state = Mutex((last: ContinuousClock.now, longest: Duration.zero))

    /// From here on, without what was before.
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
