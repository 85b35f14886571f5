import StreamTransport

/// When to try again for one connection that could not be made.
package struct RetryPlan: Sendable {
    private let policy: RetryPolicy
    private let deadline: MonotonicInstant
    private var attemptsLeft: Int
    private var delay: Duration

    /// - Parameter deadline: no attempt begins at or after it; unless given, the policy's attempts are the only bound.
    package init(_ policy: RetryPolicy, deadline: MonotonicInstant = .distantFuture) {
        self.policy = policy
        self.deadline = deadline
        self.attemptsLeft = policy.attempts
        self.delay = min(policy.initialDelay, policy.maximumDelay)
    }

    /// An attempt failed. The waits double from one to the next up to the policy's maximum, and each is shortened by chance by up to a
    /// half, so that clients that failed together do not come back together.
    ///
    /// - Parameter chance: any number, each as likely as the others.
    /// - Returns: how long to wait before the next attempt; `nil` to give up.
    package mutating func nextDelay(at now: MonotonicInstant, chance: UInt64) -> Duration? {
        guard self.attemptsLeft > 0 else { return nil }
        self.attemptsLeft -= 1
        let full = max(self.delay.clampedNanoseconds, 0)
        let wait = Duration.nanoseconds(full - Int64(chance % UInt64(full / 2 + 1)))
        let (double, overflow) = full.multipliedReportingOverflow(by: 2)
        self.delay = overflow ? self.policy.maximumDelay : min(.nanoseconds(double), self.policy.maximumDelay)
        return now.advanced(by: wait) < self.deadline ? wait : nil
    }
}
