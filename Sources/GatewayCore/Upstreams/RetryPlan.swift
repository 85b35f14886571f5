import StreamTransport

/// When to try again for one connection that could not be made.
package struct RetryPlan: Sendable {
    package enum Step: Hashable, Sendable {
        /// Try again when this long has passed.
        case retry(after: Duration)
        case giveUp
    }

    private let policy: RetryPolicy
    private let deadline: MonotonicInstant
    private var attemptsLeft: Int
    private var delay: Duration

    /// - Parameter deadline: no attempt begins at or after it.
    package init(_ policy: RetryPolicy, deadline: MonotonicInstant) {
        self.policy = policy
        self.deadline = deadline
        self.attemptsLeft = policy.attempts
        self.delay = min(policy.initialDelay, policy.maximumDelay)
    }

    /// An attempt failed. The waits double from one to the next up to the policy's maximum, and each is shortened by
    /// chance by up to a half, so that clients that failed together do not come back together.
    package mutating func attemptFailed(now: MonotonicInstant, using generator: inout some RandomNumberGenerator)
        -> Step
    {
        guard self.attemptsLeft > 0 else { return .giveUp }
        self.attemptsLeft -= 1
        let full = self.delay.clampedNanoseconds
        let wait = Duration.nanoseconds(full - Int64.random(in: 0...max(full / 2, 0), using: &generator))
        let (double, overflow) = full.multipliedReportingOverflow(by: 2)
        self.delay = overflow ? self.policy.maximumDelay : min(.nanoseconds(double), self.policy.maximumDelay)
        return now.advanced(by: wait) < self.deadline ? .retry(after: wait) : .giveUp
    }
}
