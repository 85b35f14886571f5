import StreamTransport

/// When which of the open connections are told to close, so that clients do not all come back at once.
package struct DrainSchedule: Hashable, Sendable {
    package let began: MonotonicInstant
    /// What is still open then is reset.
    package let deadline: MonotonicInstant
    /// Connections to be told.
    package let count: Int
    private let spread: Int64

    /// - Parameter count: connections open at `began`; the first is told at once, the last just before the spread is
    ///   over.
    package init(_ settings: DrainSettings, count: Int, began: MonotonicInstant) {
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
        let scaled = elapsed.multipliedFullWidth(by: Int64(self.count))
        let (quotient, _) = self.spread.dividingFullWidth(scaled)
        return min(Int(quotient) + 1, self.count)
    }

    /// When the next one is to be told.
    /// - Parameter told: how many were.
    /// - Returns: `nil` when all were.
    package func next(after told: Int) -> MonotonicInstant? {
        guard told >= 0, told < self.count else { return nil }
        let scaled = self.spread.multipliedFullWidth(by: Int64(told))
        let (quotient, remainder) = Int64(self.count).dividingFullWidth(scaled)
        return self.began.advanced(by: .nanoseconds(quotient + (remainder > 0 ? 1 : 0)))
    }
}
