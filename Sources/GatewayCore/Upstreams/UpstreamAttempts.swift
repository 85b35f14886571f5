import GatewayConfiguration
import StreamTransport

/// Attempts to reach an upstream for one client: which endpoint is next, after which wait, and when to give up.
package struct UpstreamAttempts: Sendable {
    package enum Phase: Hashable, Sendable {
        /// Before the first attempt, and between two.
        case waiting
        /// The endpoint's slot in the balancer is taken.
        case connecting(endpoint: Int)
        /// Connected, given up or cancelled.
        case over
    }

    package private(set) var phase = Phase.waiting
    private let endpointCount: Int
    private var plan: RetryPlan
    private var tried: [Int] = []
    /// Endpoints that would fail again for the same reason.
    private var permanentlyFailed: [Int] = []

    package init(endpointCount: Int, plan: RetryPlan) {
        self.endpointCount = endpointCount
        self.plan = plan
    }

    package enum AttemptDueAction: Hashable, Sendable {
        case connect(endpoint: Int)
        /// No endpoint is left.
        case giveUp
        case ignore
    }

    /// The session has begun, or the wait between two attempts is over.
    /// - Parameter choose: takes a slot of an endpoint in the balancer, preferably of one not yet tried; `nil` if all
    ///   are excluded.
    package mutating func attemptDue(choosing choose: (_ tried: [Int], _ excluded: [Int]) -> Int?) -> AttemptDueAction {
        switch self.phase {
        case .waiting:
            guard let endpoint = choose(self.tried, self.permanentlyFailed) else {
                self.phase = .over
                return .giveUp
            }
            self.tried.append(endpoint)
            self.phase = .connecting(endpoint: endpoint)
            return .connect(endpoint: endpoint)
        case .connecting, .over:
            return .ignore
        }
    }

    package enum ConnectedAction: Hashable, Sendable {
        /// Join the client with the upstream; the slot of the endpoint belongs to the tunnel now.
        case join(endpoint: Int)
        case ignore
    }

    package mutating func connected() -> ConnectedAction {
        switch self.phase {
        case .connecting(let endpoint):
            self.phase = .over
            return .join(endpoint: endpoint)
        case .waiting, .over:
            return .ignore
        }
    }

    package enum AttemptFailedAction: Hashable, Sendable {
        /// Release the endpoint's slot, and begin the next attempt after this wait.
        case retry(releasing: Int, after: Duration)
        /// Release the endpoint's slot, and report the failure to the client.
        case giveUp(releasing: Int)
        case ignore
    }

    package mutating func attemptFailed(
        _ failure: UpstreamFailure, now: MonotonicInstant, using generator: inout some RandomNumberGenerator
    ) -> AttemptFailedAction {
        switch self.phase {
        case .connecting(let endpoint):
            if failure.isPermanent { self.permanentlyFailed.append(endpoint) }
            // A response meant for the client is no reason to try another endpoint.
            guard failure.isRetryable, self.permanentlyFailed.count < self.endpointCount,
                case .retry(let delay) = self.plan.attemptFailed(now: now, using: &generator)
            else {
                self.phase = .over
                return .giveUp(releasing: endpoint)
            }
            self.phase = .waiting
            return .retry(releasing: endpoint, after: delay)
        case .waiting, .over:
            return .ignore
        }
    }

    package enum EndedAction: Hashable, Sendable {
        /// Cancel the attempt and release the endpoint's slot.
        case cancelAttempt(releasing: Int)
        case stopWaiting
        case ignore
    }

    /// The client is gone, or the gateway ends the connection.
    package mutating func ended() -> EndedAction {
        defer { self.phase = .over }
        return switch self.phase {
        case .connecting(let endpoint): .cancelAttempt(releasing: endpoint)
        case .waiting: .stopWaiting
        case .over: .ignore
        }
    }
}

/// Retry schedule of one connection.
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
