import DequeModule

/// The connections of one loop that ended last, with how they ended. Bounded: the oldest makes room.
struct ClosedConnections {
    /// 0 remembers none.
    let limit: Int
    private(set) var reports: Deque<ConnectionReport> = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ report: ConnectionReport) {
        guard self.limit > 0 else { return }
        if self.reports.count >= self.limit { self.reports.removeFirst() }
        self.reports.append(report)
    }

    func report(_ key: ConnectionKey) -> ConnectionReport? {
        // Who asks for one that is closed usually asks soon.
        self.reports.last { $0.key == key }
    }
}
