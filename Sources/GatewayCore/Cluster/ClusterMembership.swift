import Cluster
import StreamTransport
import Synchronization

/// This gateway's membership in the cluster of its configuration.
final class ClusterMembership: Sendable {
    let bus: RedisBus

    /// - Parameters:
    ///   - limits: of the conversation with other nodes.
    ///   - instance: another one each time that the gateway starts.
    ///   - load: what the node says of itself.
    init(
        _ cluster: RoomCluster, limits: GatewayCluster.Limits, instance: String, version: String, log: TunnelLog,
        loop: Loop, load: @escaping @Sendable () -> NodeLoad
    ) {
        var settings = RedisBusSettings(
            nodeName: cluster.node, instance: instance, version: version, startTime: Machine.wallClockMilliseconds())
        settings.keyPrefix = cluster.prefix
        settings.maximumHandled = limits.servedCalls
        let processor = ProcessorMeter()
        self.bus = RedisBus(
            address: cluster.address, client: cluster.client, settings: settings, redisCounters: cluster.counters,
            loop: loop,
            load: {
                var load = load()
                load.processorShare = processor.share()
                return load
            },
            wallClock: { Machine.wallClockMilliseconds() &* 1_000_000 },
            observe: { log.cluster($0, node: cluster.node) })
        self.bus.start()
    }

    func leave() async { await self.bus.stop() }
}

/// Share of one core that the process used since the last question.
private final class ProcessorMeter: Sendable {
    private struct Reading {
        var used: Duration
        var time: Int64
    }

    private let last: Mutex<Reading>

    init() {
        self.last = Mutex(Reading(used: Machine.processorTime ?? .zero, time: Machine.wallClockMilliseconds()))
    }

    func share() -> Double {
        let now = Reading(used: Machine.processorTime ?? .zero, time: Machine.wallClockMilliseconds())
        return self.last.withLock { last in
            defer { last = now }
            guard now.time > last.time else { return 0 }
            return max(0, (now.used - last.used) / .milliseconds(now.time - last.time))
        }
    }
}
