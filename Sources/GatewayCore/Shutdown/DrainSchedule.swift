import StreamTransport

/// When which of the open connections are told to close, so that clients do not all come back at once.
package struct DrainSchedule: Hashable, Sendable {
    package let began: MonotonicInstant
    /// What is still open then is reset.
    package let deadline: MonotonicInstant
    /// Connections to be told.
    package let count: Int
    private let spread: Int64
    private let loop: Int64
    private let loops: Int64

    /// - Parameters:
    ///   - count: connections of one loop, open at `began`; they are told evenly over the spread.
    ///   - loop: which loop of how many drain at the same time: they take turns, so that what all of them tell is even
    ///     too. The first of the first loop is told at once.
    package init(_ settings: DrainSettings, count: Int, loop: Int = 0, of loops: Int = 1, began: MonotonicInstant) {
        self.loops = Int64(max(loops, 1))
        self.loop = Int64(min(max(loop, 0), max(loops, 1) - 1))
        self.began = began
        self.deadline = began.advanced(by: max(settings.timeout, .zero))
        self.count = max(count, 0)
        self.spread = max(min(settings.closeSpread, settings.timeout), .zero).clampedNanoseconds
    }

    /// How many should have been told by now.
    package func due(at now: MonotonicInstant) -> Int {
        let elapsed = self.began.duration(to: now).clampedNanoseconds
        guard elapsed >= 0, self.count > 0 else { return 0 }
        guard elapsed < self.spread else { return self.count }
        // Wide enough that no product overflows, and rounded as in `instant(of:)`.
        let scaled = elapsed.multipliedFullWidth(by: Int64(self.count) * self.loops)
        let (quotient, _) = self.spread.dividingFullWidth(scaled)
        return quotient < self.loop ? 0 : min(Int((quotient - self.loop) / self.loops) + 1, self.count)
    }

    /// When the next one is to be told.
    /// - Parameter told: how many were.
    /// - Returns: `nil` when all were.
    package func next(after told: Int) -> MonotonicInstant? {
        guard told >= 0, told < self.count else { return nil }
        let scaled = self.spread.multipliedFullWidth(by: Int64(told) * self.loops + self.loop)
        let (quotient, remainder) = (Int64(self.count) * self.loops).dividingFullWidth(scaled)
        return self.began.advanced(by: .nanoseconds(quotient + (remainder > 0 ? 1 : 0)))
    }
}
