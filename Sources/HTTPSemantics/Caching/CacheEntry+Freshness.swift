import HTTPTypes

extension CacheEntry {
    /// A guessed lifetime is never longer than this many seconds: a week.
    package static let longestGuess: Int64 = 7 * 86_400

    /// For how many seconds from its making the response is fresh, in a private cache (RFC 9111 §4.2.1).
    package var lifetime: Int64 {
        if let maxAge = self.control.maxAge { return maxAge }
        if let expires = self.fields[values: .expires].first {
            // A date that cannot be understood, "0" above all, has passed already (§5.3).
            guard let date = HTTPDate(expires, now: self.responseTime) else { return 0 }
            return max(0, date.seconds(since: self.date))
        }
        return self.guessedLifetime
    }

    /// A tenth of the time for which it had not changed when it was sent (RFC 9111 §4.2.2).
    private var guessedLifetime: Int64 {
        guard HeuristicStatus.contains(self.status) || self.control.isPublic,
            let modified = self.lastModified.flatMap({ HTTPDate($0, now: self.responseTime) })
        else { return 0 }
        return min(max(0, self.date.seconds(since: modified)) / 10, Self.longestGuess)
    }

    /// How many seconds ago the response was made or last validated (RFC 9111 §4.2.3).
    package func age(at now: HTTPDate) -> Int64 {
        let told = self.fields[values: .age].first?.trimmingBlanks.clampedDecimal(limit: CacheControl.longest) ?? 0
        let apparent = max(0, self.responseTime.seconds(since: self.date))
        let delay = max(0, self.responseTime.seconds(since: self.requestTime))
        // The clock of this machine may have been set back since.
        let resident = max(0, now.seconds(since: self.responseTime))
        return max(apparent, told + delay) + resident
    }

    package func isFresh(at now: HTTPDate) -> Bool { self.lifetime > self.age(at: now) }

    /// Whether the response may stand in, stale as it is, for one that could not be had (RFC 5861 §4).
    package func mayAnswerFailure(at now: HTTPDate) -> Bool {
        let control = self.control
        guard !control.mustRevalidate, !control.noCache, let grace = control.staleIfError else { return false }
        return self.age(at: now) - self.lifetime <= grace
    }
}
