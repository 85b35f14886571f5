/// Allows an average rate, with bursts of one second's worth.
package struct RateMeter: Sendable {
    private let interval: Duration
    private let burst: Duration
    /// When the next event would be on time, if all came evenly.
    private var next: Duration

    package init(rate: Int, now: Duration) {
        self.interval = .seconds(1) / max(1, rate)
        self.burst = max(.seconds(1), self.interval)
        self.next = now
    }

    mutating func allows(at now: Duration) -> Bool {
        let base = max(self.next, now)
        guard base - now + self.interval <= self.burst else { return false }
        self.next = base + self.interval
        return true
    }

    /// Counts an event that cannot be refused.
    /// - Returns: how long the next one must wait to be allowed; zero if it need not.
    package mutating func count(at now: Duration) -> Duration {
        self.next = max(self.next, now) + self.interval
        return max(.zero, self.next + self.interval - self.burst - now)
    }
}

/// Rates of what one connection sends to the rooms.
package struct RoomMeters: Sendable {
    /// Policies with a meter, above which all meters begin anew: there are no more unless reloads rename them.
    private static let policyLimit = 256

    private var commands: RateMeter
    private var publications: [String: RateMeter] = [:]

    package init(commandRate: Int, now: Duration) {
        self.commands = RateMeter(rate: commandRate, now: now)
    }

    mutating func allowsCommand(at now: Duration) -> Bool { self.commands.allows(at: now) }

    /// One meter for each policy: what a policy bounds is the connection, not the connection in each room.
    mutating func allowsPublication(_ policy: RoomPolicy, at now: Duration) -> Bool {
        guard let rate = policy.publicationRate else { return true }
        if self.publications.count >= Self.policyLimit, self.publications[policy.name] == nil {
            self.publications = [:]
        }
        return self.publications[policy.name, default: RateMeter(rate: rate, now: now)].allows(at: now)
    }
}
