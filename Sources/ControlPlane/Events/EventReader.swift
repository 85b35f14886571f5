import GatewayCore

/// Follows the journal for one client: what comes next, in order, with gaps and heartbeats.
struct EventReader: Sendable {
    enum Step: Sendable {
        case events([GatewayEvent])
        case gap(ClosedRange<UInt64>)
        /// Nothing happened for a while.
        case heartbeat
        case end
    }

    let journal: EventJournal
    let filter: EventFilter
    let heartbeat: Duration
    /// Where it ends by itself, if it does.
    let bounds: StreamBounds
    /// Ends the reading when the client is not there any more.
    var gone: ClientGone?
    /// The number up to which everything was given.
    private(set) var position: UInt64

    /// Events that were given.
    private var given = 0

    init(
        _ journal: EventJournal, filter: EventFilter, after position: UInt64?, heartbeat: Duration,
        bounds: StreamBounds = StreamBounds()
    ) {
        self.journal = journal
        self.filter = filter
        self.heartbeat = heartbeat
        self.bounds = bounds
        self.position = position ?? journal.last
    }

    mutating func next() async -> Step {
        while !Task.isCancelled, !self.bounds.isReached(self.given) {
            let batch = self.journal.events(after: self.position)
            if let missed = batch.missed {
                // From another life of the process: what is kept of this one follows.
                self.position = batch.events.first.map { $0.number - 1 } ?? 0
                return .gap(missed)
            }
            if let last = batch.events.last {
                self.position = last.number
                let wanted = batch.events.filter(self.filter.matches).prefix(self.bounds.room(after: self.given))
                if wanted.isEmpty { continue }
                self.given += wanted.count
                return .events(Array(wanted))
            }
            switch await self.more() {
            case true?: continue
            case false?: return .end
            case nil: return Task.isCancelled || self.bounds.isReached(self.given) ? .end : .heartbeat
            }
        }
        return .end
    }

    /// - Returns: whether there is more to read, or never will be; `nil` when it is time for a heartbeat.
    private func more() async -> Bool? {
        let (journal, position, gone) = (self.journal, self.position, self.gone)
        let limit = min(self.heartbeat, self.bounds.timeLeft ?? self.heartbeat)
        let outcome = try? await Waiting.atMost(limit) { () -> Bool? in
            guard let gone else { return await journal.wait(after: position) }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask { await journal.wait(after: position) }
                group.addTask { await gone.wait() ? false : nil }
                let isOn = await group.next() ?? nil
                group.cancelAll()
                return isOn
            }
        }
        return outcome ?? nil
    }
}
