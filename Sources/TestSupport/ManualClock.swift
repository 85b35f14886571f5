import StreamTransport

/// A clock that stands still until a test moves it.
package struct ManualClock: Sendable {
    package private(set) var now: MonotonicInstant

    /// Starts a second after the origin, so that a test may look at instants before the beginning.
    package init() {
        self.now = MonotonicInstant(nanoseconds: 1_000_000_000)
    }

    package mutating func advance(by duration: Duration) {
        self.now = self.now.advanced(by: duration)
    }

    /// Goes to `instant`; never back.
    package mutating func advance(to instant: MonotonicInstant) {
        self.now = max(self.now, instant)
    }
}
