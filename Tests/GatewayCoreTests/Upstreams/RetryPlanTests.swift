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
    func waitsDoubleUpToTheMaximumAndAreShortenedByAtMostAHalf(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var plan = RetryPlan(Self.policy(5, .milliseconds(100), .milliseconds(500)), deadline: .distantFuture)
        for full in [100, 200, 400, 500, 500] {
            guard let wait = plan.nextDelay(at: Self.start, chance: random.next()) else {
                Issue.record("gave up, seed \(seed)")
                return
            }
            #expect(wait <= .milliseconds(full) && wait >= .milliseconds(full / 2), "seed \(seed)")
        }
        #expect(plan.nextDelay(at: Self.start, chance: 0) == nil)
        #expect(plan.nextDelay(at: Self.start, chance: 0) == nil)
    }

    @Test(arguments: [0, 1, 500_000_000, 500_000_001, .max] as [UInt64])
    func anyChanceStaysWithinTheBounds(_ chance: UInt64) throws {
        var plan = RetryPlan(Self.policy(1, .seconds(1), .seconds(1)))
        let delay = plan.nextDelay(at: Self.start, chance: chance)
        let wait = try #require(delay)
        #expect(wait >= .milliseconds(500) && wait <= .seconds(1))
    }

    @Test func chanceSpreadsTheWaits() {
        let waits = (0..<20 as Range<UInt64>).map { seed in
            var random = SeededGenerator(seed: seed)
            var plan = RetryPlan(Self.policy(1, .seconds(1), .seconds(1)), deadline: .distantFuture)
            return plan.nextDelay(at: Self.start, chance: random.next())
        }
        #expect(Set(waits).count > 10)
    }

    @Test func noAttemptBeginsAtTheDeadline() {
        let deadline = Self.start.advanced(by: .milliseconds(50))
        var late = RetryPlan(Self.policy(9, .milliseconds(100), .seconds(1)), deadline: deadline)
        #expect(late.nextDelay(at: Self.start, chance: 0) == nil)
        var atOnce = RetryPlan(Self.policy(9, .zero, .zero), deadline: deadline)
        #expect(atOnce.nextDelay(at: Self.start, chance: .max) == .zero)
        #expect(atOnce.nextDelay(at: deadline, chance: .max) == nil)
    }

    @Test func withoutAttemptsThereIsNone() {
        var plan = RetryPlan(Self.policy(0, .zero, .zero), deadline: .distantFuture)
        #expect(plan.nextDelay(at: Self.start, chance: 0) == nil)
    }
}
