import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization

/// Snapshot of all metrics, summed over all loops.
package struct GatewayMetrics: Sendable {
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

    /// Number of routes reported separately.
    package static let routeLimit = 256

    package var live: [Group: Int] = [:]
    package var stalled = 0
    package var queuedBytes = 0
    /// By route: open and closed connections.
    package var traffic: [String: TrafficMetrics] = [:]
    package var handshakes = Distribution()
    package var lifetimes = Distribution()
    package var messageSizes = Distribution()
    package var roundTrips = Distribution()
    /// Sampled from one relayed read in 64.
    package var addedLatencies = Distribution()
    package var loops = 0
    /// Turns of the loops that took longer than 5 ms, since the start.
    package var slowTurns: UInt64 = 0

    package init() {}

    /// Reports at most `routeLimit` routes, and connections without a route; the rest is added up as `other`.
    /// - Parameter configured: routes reported first, in this order; others follow by name. Those without connections count
    ///   too: else the first connection of one route would take another from its own label to `other`, and back.
    package func bounded(preferring configured: [String]) -> GatewayMetrics {
        let names = Set(self.traffic.keys).union(self.live.keys.map(\.route))
        let others = names.subtracting(configured).subtracting([""]).sorted()
        let kept = Set((configured + others).prefix(Self.routeLimit)).union([""])
        guard !names.isSubset(of: kept) else { return self }
        var bounded = self
        bounded.traffic = [:]
        for (route, metrics) in self.traffic {
            bounded.traffic[kept.contains(route) ? route : "other", default: TrafficMetrics()].add(metrics)
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

/// Numbers of refused and lost connections since the start.
package final class GatewayCounters: Sendable {
    private let counts = Mutex<[String: UInt64]>([:])

    package init() {}

    package func count(_ name: String) {
        self.counts.withLock { $0[name, default: 0] += 1 }
    }

    func acceptFailed() { self.count("accept-failed") }
    func acceptingPaused() { self.count("accepting-paused") }

    /// All counts by name.
    package var all: [String: UInt64] {
        self.counts.withLock { $0 }
    }
}

/// Metrics of the closed connections of one loop. On the loop.
struct LoopMetrics {
    /// Number of routes counted separately, far above those of usual configurations; the rest counts as `other`.
    private static let routeLimit = 4096

    /// By route; connections opened through the control plane have an empty name.
    private(set) var ended: [String: TrafficMetrics] = [:]
    /// From acceptance to the first byte of payload that may flow, in microseconds.
    var handshakes = Distribution()
    /// From the first byte of payload that may flow to the end, in microseconds.
    var lifetimes = Distribution()

    mutating func end(_ traffic: TrafficMetrics, route: String?) {
        let name = route ?? ""
        let key = self.ended[name] != nil || self.ended.count < Self.routeLimit ? name : "other"
        self.ended[key, default: TrafficMetrics()].add(traffic)
    }
}

/// Traffic of several connections.
package struct TrafficMetrics: Equatable, Sendable {
    package var connections: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var messagesReceived: UInt64 = 0
    package var messagesSent: UInt64 = 0
    package var framesReceived: UInt64 = 0
    package var framesSent: UInt64 = 0

    package init() {}

    init(_ record: TaskRecord) {
        self.connections = 1
        self.bytesReceived = record.bytesReceived
        self.bytesSent = record.bytesSent
        self.messagesReceived = record.messagesReceived
        self.messagesSent = record.messagesSent
        self.framesReceived = record.framesReceived
        self.framesSent = record.framesSent
    }

    package mutating func add(_ other: TrafficMetrics) {
        self.connections &+= other.connections
        self.bytesReceived &+= other.bytesReceived
        self.bytesSent &+= other.bytesSent
        self.messagesReceived &+= other.messagesReceived
        self.messagesSent &+= other.messagesSent
        self.framesReceived &+= other.framesReceived
        self.framesSent &+= other.framesSent
    }

    /// Traffic since `other`, an earlier state of the same connection.
    func since(_ other: TrafficMetrics?) -> TrafficMetrics {
        guard let other else { return self }
        var rest = self
        rest.connections &-= other.connections
        rest.bytesReceived &-= other.bytesReceived
        rest.bytesSent &-= other.bytesSent
        rest.messagesReceived &-= other.messagesReceived
        rest.messagesSent &-= other.messagesSent
        rest.framesReceived &-= other.framesReceived
        rest.framesSent &-= other.framesSent
        return rest
    }
}

/// Time that relayed bytes stay in the process: from their read until the kernel has taken the last one on the other
/// side. Sampled. On its loop.
package final class RelayLatency {
    /// One read in this many is sampled on each side of a tunnel, beginning with the first.
    package static let interval: UInt8 = 64
    /// Number of reads measured at once. Beyond that the oldest counts as it is: a peer that accepts nothing is
    /// visible, and hides no others.
    package static let pendingLimit = 16

    private struct Pending {
        let end: ObjectIdentifier
        let readAt: MonotonicInstant
        /// Bytes that the kernel must have taken on that connection.
        let target: UInt64
    }

    /// In microseconds.
    package private(set) var distribution = Distribution()
    /// Whether the metrics can be queried.
    package var isEnabled = false
    private var pending: [Pending] = []

    package init() {}

    package static func shared(on loop: Loop) -> RelayLatency {
        loop.local(RelayLatency.self) { RelayLatency() }
    }

    package func forwarded(_ readAt: MonotonicInstant, at now: MonotonicInstant) {
        self.distribution.add(readAt.duration(to: now))
    }

    /// Starts measuring a read whose bytes are still queued.
    package func startWaiting(
        _ end: AnyObject, _ readAt: MonotonicInstant, until target: UInt64, at now: MonotonicInstant
    ) {
        if self.pending.count >= Self.pendingLimit { self.forwarded(self.pending.removeFirst().readAt, at: now) }
        self.pending.append(Pending(end: ObjectIdentifier(end), readAt: readAt, target: target))
    }

    /// - Parameters:
    ///   - sent: bytes that the kernel took on this connection; `.max` where nothing waits.
    /// - Returns: whether a sample of `end` is still pending.
    package func progressed(_ end: AnyObject, sent: UInt64, at now: MonotonicInstant) -> Bool {
        let name = ObjectIdentifier(end)
        var isWaiting = false
        self.pending.removeAll { one in
            guard one.end == name else { return false }
            guard one.target <= sent else {
                isWaiting = true
                return false
            }
            self.forwarded(one.readAt, at: now)
            return true
        }
        return isWaiting
    }

    /// Drops the samples of an ended tunnel.
    package func forget(_ end: AnyObject) {
        let name = ObjectIdentifier(end)
        self.pending.removeAll { $0.end == name }
    }
}

extension Gateway {
    /// Collects the metrics of all loops, `reportsPerTurn` connections a turn.
    package func metrics() async -> GatewayMetrics {
        var metrics = GatewayMetrics()
        metrics.loops = self.loopGateways.count
        metrics.slowTurns = self.loopGateways.reduce(0) { $0 &+ $1.loop.slowTurnCount }
        for loopGateway in self.loopGateways {
            var rest = await loopGateway.perform { $0.liveIdentifiers(from: 0) }[...]
            let subtotal = metrics
            metrics = await loopGateway.perform { $0.includingClosed(subtotal) }
            while !rest.isEmpty {
                let turn = rest.prefix(Self.reportsPerTurn)
                rest = rest.dropFirst(turn.count)
                let subtotal = metrics
                metrics = await loopGateway.perform { $0.counted(turn, subtotal) }
            }
        }
        let configured = self.state.withLock { $0.plan?.configuration.routes.map(\.name) ?? [] }
        return metrics.bounded(preferring: configured)
    }
}

extension LoopGateway {
    /// Adds the metrics of closed connections.
    fileprivate func includingClosed(_ metrics: GatewayMetrics) -> GatewayMetrics {
        var metrics = metrics
        for (route, traffic) in self.metrics.ended { metrics.traffic[route, default: TrafficMetrics()].add(traffic) }
        metrics.handshakes.add(self.metrics.handshakes)
        metrics.lifetimes.add(self.metrics.lifetimes)
        let taskMetrics = LoopTaskMetrics.shared(on: self.loop)
        metrics.messageSizes.add(taskMetrics.messageSizes)
        metrics.roundTrips.add(taskMetrics.roundTrips)
        metrics.addedLatencies.add(RelayLatency.shared(on: self.loop).distribution)
        return metrics
    }

    /// The metrics of this loop, collected in one turn.
    package var ownMetrics: GatewayMetrics {
        self.counted(self.liveIdentifiers(from: 0)[...], self.includingClosed(GatewayMetrics()))
    }

    /// Adds the metrics of some open connections.
    func counted(_ identifiers: ArraySlice<UInt64>, _ metrics: GatewayMetrics) -> GatewayMetrics {
        var metrics = metrics
        var reports: [ConnectionReport] = []
        for identifier in identifiers {
            guard let connection = self.live[identifier] else { continue }
            let route = connection.context.routeName ?? ""
            reports.removeAll(keepingCapacity: true)
            connection.report(at: self.loop.now, to: &reports)
            for report in reports {
                let group = GatewayMetrics.Group(
                    route: route, kind: report.kind, isAccepted: report.isAccepted, stage: report.stage)
                metrics.live[group, default: 0] += 1
                metrics.stalled += report.isStalled ? 1 : 0
                metrics.queuedBytes += report.queuedSendBytes + report.queuedReceiveBytes
                guard let record = report.record else { continue }
                let traffic = TrafficMetrics(record).since(connection.context.countedTraffic)
                metrics.traffic[route, default: TrafficMetrics()].add(traffic)
            }
        }
        return metrics
    }
}
