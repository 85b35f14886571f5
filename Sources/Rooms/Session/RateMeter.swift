/// Allows an average rate, with bursts of one period's worth.
package struct RateMeter: Sendable {
    /// Events in a second.
    package let rate: Int
    private let interval: Duration
    private let burst: Duration
    /// When the next event would be on time, if all came evenly.
    private var next: Duration

    package init(rate: Int, burst period: Duration = .seconds(1), now: Duration) {
        self.rate = rate
        self.interval = .seconds(1) / max(1, rate)
        self.burst = max(period, self.interval)
        self.next = now
    }

    package mutating func allows(at now: Duration) -> Bool {
        guard self.delay(at: now) == .zero else { return false }
        self.next = max(self.next, now) + self.interval
        return true
    }

    /// Counts an event that cannot be refused.
    /// - Returns: how long the next one must wait to be allowed; zero if it need not.
    package mutating func count(at now: Duration) -> Duration {
        self.next = max(self.next, now) + self.interval
        return self.delay(at: now)
    }

    /// How long the next event must wait to be allowed; zero if it need not.
    package func delay(at now: Duration) -> Duration {
        max(.zero, max(self.next, now) + self.interval - self.burst - now)
    }

    /// Whether it allows what a new meter would.
    func isUnused(at now: Duration) -> Bool { self.next <= now }

    /// Whether it allows less than `other`, which has the same rate.
    func isStricter(than other: RateMeter) -> Bool { self.next > other.next }
}

/// Rates of what one client sends to the rooms.
package struct RoomMeters: Sendable {
    /// Policies with a meter, above which all meters are reset: only reloads that rename policies lead to more.
    private static let policyLimit = 256
    /// Of the entries into rooms: a client enters all its rooms when it connects.
    private static let entryBurst: Duration = .seconds(30)

    private var commands: RateMeter?
    private var publications: [String: RateMeter] = [:]
    private var entries: [String: RateMeter] = [:]

    package init() {}

    mutating func allowsCommand(rate: Int, at now: Duration) -> Bool {
        Self.allows(&self.commands, rate: rate, at: now)
    }

    /// One meter for each policy: what a policy bounds is the client, not the client in each room.
    mutating func allowsPublication(_ policy: RoomPolicy, at now: Duration) -> Bool {
        guard let rate = policy.publicationRate else { return true }
        Self.makeSpace(for: policy, in: &self.publications)
        return Self.allows(&self.publications[policy.name], rate: rate, at: now)
    }

    /// Where members hear who enters and leaves, each entry costs two messages to all of them.
    mutating func allowsEntry(_ policy: RoomPolicy, at now: Duration) -> Bool {
        guard policy.sendsJoinLeave else { return true }
        Self.makeSpace(for: policy, in: &self.entries)
        return Self.allows(&self.entries[policy.name], rate: policy.joinRate, burst: Self.entryBurst, at: now)
    }

    private static func makeSpace(for policy: RoomPolicy, in meters: inout [String: RateMeter]) {
        if meters.count >= Self.policyLimit, meters[policy.name] == nil { meters = [:] }
    }

    /// A meter of another rate, from before a reload, is reset.
    private static func allows(
        _ meter: inout RateMeter?, rate: Int, burst: Duration = .seconds(1), at now: Duration
    ) -> Bool {
        var current = meter.flatMap { $0.rate == rate ? $0 : nil } ?? RateMeter(rate: rate, burst: burst, now: now)
        defer { meter = current }
        return current.allows(at: now)
    }

    /// Of the publications in the rooms of a policy; `nil` if there were none, or the policy has another rate now.
    package func publications(of policy: RoomPolicy) -> RateMeter? {
        self.publications[policy.name].flatMap { $0.rate == policy.publicationRate ? $0 : nil }
    }

    /// Adds what the same client has published by other means: the stricter meter of each policy remains.
    package mutating func addPublications(of other: RoomMeters, at now: Duration) {
        for (policy, meter) in other.publications { self.add(meter, ofPublicationsIn: policy, at: now) }
    }

    /// - Parameter policy: its name.
    package mutating func add(_ meter: RateMeter, ofPublicationsIn policy: String, at now: Duration) {
        guard !meter.isUnused(at: now) else { return }
        if let own = self.publications[policy], own.rate == meter.rate, !meter.isStricter(than: own) { return }
        self.publications[policy] = meter
    }

    /// Whether they allow what new meters would.
    package func isUnused(at now: Duration) -> Bool {
        self.commands?.isUnused(at: now) ?? true && self.publications.values.allSatisfy { $0.isUnused(at: now) }
    }
}
