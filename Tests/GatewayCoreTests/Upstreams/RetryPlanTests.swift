import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Retry plan")
struct RetryPlanTests {
    private static let start = MonotonicInstant(nanoseconds: 0)

    private static func policy(_ attempts: Int, _ initial: Duration, _ maximum: Duration) -> RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = attempts
        policy.initialDelay = initial
        policy.maximumDelay = maximum
        return policy
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func retryDelayDoublesUpToTheMaximumAndJitterTakesAtMostHalf(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var plan = RetryPlan(Self.policy(5, .milliseconds(100), .milliseconds(500)), deadline: .distantFuture)
        for full in [100, 200, 400, 500, 500] {
            guard case .retry(let wait) = plan.attemptFailed(now: Self.start, using: &random) else {
                Issue.record("gave up, seed \(seed)")
                return
            }
            #expect(wait <= .milliseconds(full) && wait >= .milliseconds(full / 2), "seed \(seed)")
        }
        #expect(plan.attemptFailed(now: Self.start, using: &random) == .giveUp)
        #expect(plan.attemptFailed(now: Self.start, using: &random) == .giveUp)
    }

    @Test func chanceSpreadsTheWaits() {
        let waits = (0..<20 as Range<UInt64>).map { seed in
            var random = SeededGenerator(seed: seed)
            var plan = RetryPlan(Self.policy(1, .seconds(1), .seconds(1)), deadline: .distantFuture)
            return plan.attemptFailed(now: Self.start, using: &random)
        }
        #expect(Set(waits).count > 10)
    }

    @Test func noAttemptBeginsAtTheDeadline() {
        var random = SeededGenerator(seed: 1)
        let deadline = Self.start.advanced(by: .milliseconds(50))
        var late = RetryPlan(Self.policy(9, .milliseconds(100), .seconds(1)), deadline: deadline)
        #expect(late.attemptFailed(now: Self.start, using: &random) == .giveUp)
        var atOnce = RetryPlan(Self.policy(9, .zero, .zero), deadline: deadline)
        #expect(atOnce.attemptFailed(now: Self.start, using: &random) == .retry(after: .zero))
        #expect(atOnce.attemptFailed(now: deadline, using: &random) == .giveUp)
    }

    @Test func planWithoutAttemptsGivesUp() {
        var random = SeededGenerator(seed: 1)
        var plan = RetryPlan(Self.policy(0, .zero, .zero), deadline: .distantFuture)
        #expect(plan.attemptFailed(now: Self.start, using: &random) == .giveUp)
    }
}
