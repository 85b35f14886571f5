/// When a published key set is to be fetched: at intervals, soon after a failure, and for a token with an unknown key, but
/// for that reason not more often than every 30 seconds.
package struct KeyRefreshSchedule: Sendable {
    /// Least time between two fetches because of unknown keys: anyone can make such tokens.
    package static let unknownKeyPause = Duration.seconds(30)
    private static let firstRetry = Duration.seconds(1)
    private static let longestRetry = Duration.seconds(60)

    private let interval: Duration
    /// When the next fetch is to begin.
    package private(set) var due: ContinuousClock.Instant
    private var nextRetry = Self.firstRetry
    private var lastForUnknownKey: ContinuousClock.Instant?

    /// The first fetch is due at once.
    package init(interval: Duration, now: ContinuousClock.Instant) {
        self.interval = interval
        self.due = now
    }

    package mutating func fetched(at now: ContinuousClock.Instant) {
        self.nextRetry = Self.firstRetry
        self.due = now.advanced(by: self.interval)
    }

    package mutating func fetchFailed(at now: ContinuousClock.Instant) {
        self.due = now.advanced(by: min(self.nextRetry, self.interval))
        self.nextRetry = min(self.nextRetry + self.nextRetry, Self.longestRetry)
    }

    /// A token named an unknown key: the next fetch is due at once, or when the pause since the last such fetch is over.
    package mutating func unknownKeyOccurred(at now: ContinuousClock.Instant) {
        let earliest = self.lastForUnknownKey.map { max(now, $0.advanced(by: Self.unknownKeyPause)) } ?? now
        guard earliest < self.due else { return }
        self.due = earliest
        self.lastForUnknownKey = earliest
    }
}
