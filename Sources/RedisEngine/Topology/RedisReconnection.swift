/// When to connect again: at once is never right for all clients of a server that has just restarted.
package struct RedisReconnection: Sendable {
    /// Longest pause after the first failure; each further one doubles it.
    package static let firstPause = Duration.milliseconds(50)
    /// Longest pause of all.
    package static let longestPause = Duration.seconds(5)
    /// Time that a connection must have been ready for the pauses to begin with the first again.
    package static let stableTime = Duration.seconds(10)

    private enum Phase {
        case idle
        case connecting
        case ready(since: Duration)
        case waiting(until: Duration, rediscovers: Bool)
        case stopped
    }

    private var phase = Phase.idle
    /// Failures in a row.
    private var failures = 0

    package init() {}

    package enum Action: Equatable, Sendable {
        /// Make a connection now. With Sentinel or a cluster, look up the server first if `rediscovers`.
        case connect(rediscovers: Bool)
        case wait(until: Duration)
        case ignore
    }

    /// When `waitOver` must be called.
    package var nextDeadline: Duration? {
        if case .waiting(let until, _) = self.phase { until } else { nil }
    }

    package mutating func start() -> Action {
        switch self.phase {
        case .idle, .stopped:
            self.phase = .connecting
            self.failures = 0
            return .connect(rediscovers: true)
        case .connecting, .ready, .waiting: return .ignore
        }
    }

    package mutating func connectionReady(now: Duration) {
        if case .connecting = self.phase { self.phase = .ready(since: now) }
    }

    /// The connection, or the attempt to make one or to find its server, has failed.
    package mutating func connectionEnded(
        _ failure: RedisConnectionFailure, now: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action {
        switch self.phase {
        case .idle, .waiting, .stopped: return .ignore
        case .ready(let since):
            if now - since >= Self.stableTime { self.failures = 0 }
        case .connecting: break
        }
        var pause = self.longestPauseNow
        // Settings that the server refuses are refused again until they are changed.
        if failure.needsOperator { pause = Self.longestPause }
        self.failures += 1
        let until = now + Self.jittered(pause, using: &generator)
        self.phase = .waiting(until: until, rediscovers: failure != .closed)
        return .wait(until: until)
    }

    /// Sentinel or the cluster named another server: a pause in progress ends.
    package mutating func serverChanged() -> Action {
        guard case .waiting = self.phase else { return .ignore }
        self.phase = .connecting
        return .connect(rediscovers: true)
    }

    /// `nextDeadline` is reached, or the owner's timer fired too early.
    package mutating func waitOver(now: Duration) -> Action {
        guard case .waiting(let until, let rediscovers) = self.phase else { return .ignore }
        guard until <= now else { return .wait(until: until) }
        self.phase = .connecting
        return .connect(rediscovers: rediscovers)
    }

    package mutating func stop() {
        self.phase = .stopped
    }

    private var longestPauseNow: Duration {
        var pause = Self.firstPause
        for _ in 0..<self.failures where pause < Self.longestPause { pause *= 2 }
        return min(pause, Self.longestPause)
    }

    /// From half of the pause to all of it.
    private static func jittered(_ pause: Duration, using generator: inout some RandomNumberGenerator) -> Duration {
        pause / 2 + (pause / 2) * Double.random(in: 0...1, using: &generator)
    }
}
