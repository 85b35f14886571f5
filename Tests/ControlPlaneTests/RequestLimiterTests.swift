import ControlPlane
import StreamTransport
import Testing

@Suite("Limit of concurrent requests")
struct RequestLimiterTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    @Test func noMoreThanTheLimitAreCarriedOutAtOnce() throws {
        let budget = RequestLimiter(limit: 2, rate: nil)
        try budget.acquire(for: "a", now: self.start)
        try budget.acquire(for: "b", now: self.start)
        let problem = #expect(throws: ControlProblem.self) { try budget.acquire(for: "a", now: self.start) }
        #expect(problem?.status == 503)
        #expect(problem?.retryAfter == 1)
        budget.release()
        try budget.acquire(for: "a", now: self.start)
    }

    @Test func eachCallerHasItsOwnRate() throws {
        let budget = RequestLimiter(limit: 1000, rate: 2)
        try budget.acquire(for: "a", now: self.start)
        try budget.acquire(for: "a", now: self.start)
        let problem = #expect(throws: ControlProblem.self) { try budget.acquire(for: "a", now: self.start) }
        #expect(problem?.status == 429)
        #expect(problem?.isRetryable == true)
        try budget.acquire(for: "b", now: self.start)
        try budget.acquire(for: "a", now: self.start.advanced(by: .milliseconds(500)))
    }

    @Test func boundsCanChangeWhileRequestsAreCarriedOut() throws {
        let budget = RequestLimiter(limit: 1, rate: nil)
        try budget.acquire(for: "a", now: self.start)
        budget.set(limit: 2, rate: 1)
        try budget.acquire(for: "a", now: self.start)
        let tooFast = #expect(throws: ControlProblem.self) { try budget.acquire(for: "a", now: self.start) }
        #expect(tooFast?.status == 429)
        budget.set(limit: 1, rate: nil)
        budget.release()
        let tooMany = #expect(throws: ControlProblem.self) { try budget.acquire(for: "a", now: self.start) }
        #expect(tooMany?.status == 503)
        budget.release()
        try budget.acquire(for: "a", now: self.start)
    }

    @Test func refusedRequestTakesNoSlot() throws {
        let budget = RequestLimiter(limit: 1, rate: 1)
        try budget.acquire(for: "a", now: self.start)
        budget.release()
        #expect(throws: ControlProblem.self) { try budget.acquire(for: "a", now: self.start) }
        try budget.acquire(for: "b", now: self.start)
    }
}
