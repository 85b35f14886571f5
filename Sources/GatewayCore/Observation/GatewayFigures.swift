import SessionTasks

/// Everything that is counted, of all loops together, at one moment.
package struct GatewayFigures: Sendable {
    /// One group of live connections.
    package struct Group: Hashable, Sendable {
        package var route: String
        package let kind: ConnectionKind
        package let isAccepted: Bool
        package let stage: TaskStage

        package init(route: String, kind: ConnectionKind, isAccepted: Bool, stage: TaskStage) {
            self.route = route
            self.kind = kind
            self.isAccepted = isAccepted
            self.stage = stage
        }
    }

    /// Routes that are told apart.
    package static let routeLimit = 256

    package var live: [Group: Int] = [:]
    package var stalled = 0
    package var queuedBytes = 0
    /// By route: of what lives and what is over.
    package var sums: [String: TrafficSums] = [:]
    package var handshakes = Distribution()
    package var lives = Distribution()
    package var messageSizes = Distribution()
    package var roundTrips = Distribution()
    /// Of one relayed read in 64.
    package var addedLatencies = Distribution()
    package var loops = 0

    package init() {}

    /// The same with at most `routeLimit` routes: what is beyond counts together, as `other`.
    /// - Parameter configured: told apart before all others, in this order; others follow by name.
    package func bounded(preferring configured: [String]) -> GatewayFigures {
        let names = Set(self.sums.keys).union(self.live.keys.map(\.route))
        guard names.count > Self.routeLimit else { return self }
        let known = ([""] + configured).filter(names.contains)
        let kept = Set((known + names.subtracting(known).sorted()).prefix(Self.routeLimit))
        var bounded = self
        bounded.sums = [:]
        for (route, sums) in self.sums {
            bounded.sums[kept.contains(route) ? route : "other", default: TrafficSums()].add(sums)
        }
        bounded.live = [:]
        for (group, count) in self.live {
            var group = group
            if !kept.contains(group.route) { group.route = "other" }
            bounded.live[group, default: 0] += count
        }
        return bounded
    }
}
