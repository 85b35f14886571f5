import StreamTransport

/// A rate with a burst: tokens come back evenly, and a quiet time saves up at most `burst` of them.
///
/// Kept as one instant, that at which the bucket would be full again (the generic cell rate algorithm, ITU-T I.371), so
/// it never drifts.
package struct TokenBucket: Hashable, Sendable {
    /// Nanoseconds for one token to come back.
    private let interval: Int64
    /// Nanoseconds that a full bucket is worth.
    private let span: Int64
    private var fullAt: Int64 = .min

    /// - Parameter rate: values below 1 count as 1.
    package init(_ rate: AcceptRate) {
        let perSecond = Int64(clamping: min(max(rate.perSecond, 1), 1_000_000_000))
        self.interval = 1_000_000_000 / perSecond
        self.span = self.interval * Int64(clamping: min(max(rate.burst, 1), 1_000_000_000))
    }

    /// - Returns: whether there was a token to take.
    package mutating func take(at now: MonotonicInstant) -> Bool {
        let start = max(self.fullAt, now.nanoseconds)
        let (next, overflow) = start.addingReportingOverflow(self.interval)
        guard !overflow, next &- now.nanoseconds <= self.span else { return false }
        self.fullAt = next
        return true
    }
}
