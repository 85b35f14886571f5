import SessionTasks

/// Everything that is counted, of all loops together, at one moment.
package struct GatewayFigures: Sendable {
    /// One group of live connections.
    package struct Group: Hashable, Sendable {
        package let route: String
        package let kind: ConnectionKind
        package let isAccepted: Bool
        package let stage: TaskStage
    }

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
}
