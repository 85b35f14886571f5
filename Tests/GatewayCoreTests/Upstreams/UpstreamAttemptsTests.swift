import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Attempts to reach an upstream")
struct UpstreamAttemptsTests {
    private enum Event: CaseIterable {
        case due, dueWithoutEndpoint, connected, failed, failedForTheClient, ended
    }

    private static let now = MonotonicInstant(nanoseconds: 0)

    /// One in each phase, with retries left.
    private static var attempts: [UpstreamAttempts] {
        let waiting = Self.make()
        var connecting = waiting
        _ = connecting.attemptDue { _, _ in 0 }
        var over = waiting
        _ = over.ended()
        return [waiting, connecting, over]
    }

    private static func make(endpoints: Int = 2, retries: Int = 5) -> UpstreamAttempts {
        var policy = RetryPolicy()
        policy.attempts = retries
        policy.initialDelay = .zero
        policy.maximumDelay = .zero
        let deadline = Self.now.advanced(by: .seconds(60))
        return UpstreamAttempts(endpointCount: endpoints, plan: RetryPlan(policy, deadline: deadline))
    }

    private static func fail(
        _ attempts: inout UpstreamAttempts, _ failure: UpstreamFailure
    ) -> UpstreamAttempts.AttemptFailedAction {
        var generator = SeededGenerator(seed: 1)
        return attempts.attemptFailed(failure, now: Self.now, using: &generator)
    }

    /// The action in words, and the phase that follows.
    private static func apply(_ event: Event, to attempts: inout UpstreamAttempts) -> String {
        switch event {
        case .due: "\(attempts.attemptDue { _, _ in 1 })"
        case .dueWithoutEndpoint: "\(attempts.attemptDue { _, _ in nil })"
        case .connected: "\(attempts.connected())"
        case .failed: "\(Self.fail(&attempts, .unreachable))"
        case .failedForTheClient: "\(Self.fail(&attempts, .status(403)))"
        case .ended: "\(attempts.ended())"
        }
    }

    @Test func attemptsAnswerEveryEventInEveryPhase() {
        let connecting1 = UpstreamAttempts.Phase.connecting(endpoint: 1)
        let connecting0 = UpstreamAttempts.Phase.connecting(endpoint: 0)
        let expected: [[Event: (String, UpstreamAttempts.Phase)]] = [
            [
                .due: ("connect(endpoint: 1)", connecting1), .dueWithoutEndpoint: ("giveUp", .over),
                .connected: ("ignore", .waiting), .failed: ("ignore", .waiting),
                .failedForTheClient: ("ignore", .waiting), .ended: ("stopWaiting", .over),
            ],
            [
                .due: ("ignore", connecting0), .dueWithoutEndpoint: ("ignore", connecting0),
                .connected: ("join(endpoint: 0)", .over),
                .failed: ("retry(releasing: 0, after: 0.0 seconds)", .waiting),
                .failedForTheClient: ("giveUp(releasing: 0)", .over),
                .ended: ("cancelAttempt(releasing: 0)", .over),
            ],
            Dictionary(uniqueKeysWithValues: Event.allCases.map { ($0, ("ignore", .over)) }),
        ]
        for (before, answers) in zip(Self.attempts, expected) {
            for event in Event.allCases {
                var attempts = before
                let action = Self.apply(event, to: &attempts)
                #expect(action == answers[event]?.0, "\(event) in \(before.phase)")
                #expect(attempts.phase == answers[event]?.1, "\(event) in \(before.phase)")
            }
        }
    }

    @Test func untriedEndpointsArePreferred() {
        var attempts = Self.make()
        _ = attempts.attemptDue { _, _ in 1 }
        _ = Self.fail(&attempts, .unreachable)
        var seen: ([Int], [Int])?
        _ = attempts.attemptDue { tried, excluded in
            seen = (tried, excluded)
            return 0
        }
        #expect(seen?.0 == [1] && seen?.1 == [])
    }

    @Test func excludesEndpointsThatWouldFailAgainForTheSameReason() {
        var attempts = Self.make()
        _ = attempts.attemptDue { _, _ in 1 }
        #expect(Self.fail(&attempts, .certificate) == .retry(releasing: 1, after: .zero))
        var excluded: [Int] = []
        _ = attempts.attemptDue {
            excluded = $1
            return 0
        }
        #expect(excluded == [1])
        #expect(Self.fail(&attempts, .certificate) == .giveUp(releasing: 0))
    }

    @Test func attemptsGiveUpWithoutRetriesLeft() {
        var attempts = Self.make(retries: 0)
        _ = attempts.attemptDue { _, _ in 0 }
        #expect(Self.fail(&attempts, .unreachable) == .giveUp(releasing: 0))
        #expect(attempts.phase == .over)
    }
}
