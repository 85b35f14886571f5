import RedisEngine
import StreamTransport
import Synchronization

/// How a node takes part in a cluster.
package struct RedisBusSettings: Sendable {
    /// Of all keys and channels. Default: `sluice`.
    package var keyPrefix = "sluice"
    /// Name of the node, unique in the cluster: 1 to 255 bytes.
    package var nodeName: String
    /// Another one each time that the node starts: 1 to 255 bytes.
    package var instance: String
    package var version: String
    /// Milliseconds since 1970.
    package var startTime: Int64
    /// Time after which a node that does not renew its lease counts as gone. Default: 10 seconds.
    package var lease = Duration.seconds(10)
    /// Default: 3 seconds.
    package var renewalInterval = Duration.seconds(3)
    /// Calls of this node that are unanswered; a further one fails with `busy`. Default: 1024.
    package var maximumCalls = 1024
    /// Calls of other nodes that are handled at once; further ones are refused. Default: 256.
    package var maximumHandled = 256
    /// Announcements of other nodes that are handled at once, besides calls; further ones are lost. Default: 256.
    package var maximumAnnouncements = 256

    package init(nodeName: String, instance: String, version: String, startTime: Int64) {
        self.nodeName = nodeName
        self.instance = instance
        self.version = version
        self.startTime = startTime
    }
}

/// Event of a node's membership in the cluster.
package enum RedisBusEvent: Equatable, Sendable {
    /// The node has a lease of its name. Called once after each loss.
    case registered
    /// Another instance has this name. The node tries again with each renewal.
    case nameTaken(instance: String)
    /// Redis can be reached, but refuses the lease with each renewal; mostly the user may not execute a command. Called
    /// once for each reason.
    case refused(String)
    case away(String)
    case reported(String)
}

/// Messages of other nodes, for metrics.
package final class RedisBusCounters: Sendable {
    package let calls = Atomic<Int>(0)
    package let announcements = Atomic<Int>(0)
    /// Calls and announcements above the limit of those handled at once.
    package let refused = Atomic<Int>(0)
    /// Messages that this version does not know.
    package let malformed = Atomic<Int>(0)
    /// Answers to calls that had ended.
    package let late = Atomic<Int>(0)

    package init() {}
}

/// Finds and asks the nodes of a cluster by Redis. Calls come from any task; everything happens on one loop.
package final class RedisBus: ClusterBus {
    package let nodeName: String
    package let counters = RedisBusCounters()
    private let core: LoopIsolated<BusCore>

    /// - Parameters:
    ///   - load: asked on the loop with each renewal.
    ///   - wallClock: nanoseconds since 1970.
    ///   - observe: called on the loop.
    package init(
        address: RedisAddress, client: RedisClientSettings, settings: RedisBusSettings,
        redisCounters: RedisCounters = RedisCounters(), loop: Loop,
        load: @escaping @Sendable () -> NodeLoad, wallClock: @escaping @Sendable () -> Int64,
        observe: @escaping @Sendable (RedisBusEvent) -> Void
    ) {
        self.nodeName = settings.nodeName
        let client = RedisClient(
            address: address, settings: client, scripts: NodeRegistry.scripts + [KeptValues.keep],
            counters: redisCounters, loop: loop)
        let core = BusCore(
            client, settings, self.counters, load: load, wallClock: wallClock, observe: observe)
        self.core = LoopIsolated(core, on: loop)
    }

    package func start() {
        self.core.execute { $0.start() }
    }

    /// Removes the node's record, if Redis answers within 2 seconds, and ends the connection. Calls fail with `away`.
    package func stop() async {
        await withCheckedContinuation { continuation in
            self.core.execute { core in core.stop { continuation.resume() } }
        }
    }

    package func serve(
        reached: @escaping @Sendable () -> Void = {},
        _ handler: @escaping @Sendable (ClusterMessage) async -> [UInt8]
    ) {
        self.core.execute { core in
            core.handler = handler
            core.reached = reached
        }
    }

    package func nodes() async throws(ClusterError) -> [NodeRecord] {
        try await self.ask { core, completion in core.list(completion) }
    }

    package func call(_ node: String, _ message: [UInt8], timeout: Duration) async throws(ClusterError) -> [UInt8] {
        guard message.count <= BusEnvelope.messageLimit else { throw .tooLarge(limit: BusEnvelope.messageLimit) }
        let withdrawal = LoopIsolated(BusCore.CallCancellation(), on: self.core.loop)
        let result: Result<[UInt8], ClusterError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.core.execute { core in
                    core.call(node, message, timeout: timeout, withdrawal.value) { continuation.resume(returning: $0) }
                }
            }
        } onCancel: {
            self.core.execute { core in core.withdraw(withdrawal.value) }
        }
        return try result.get()
    }

    package func announce(_ message: [UInt8]) async throws(ClusterError) {
        guard message.count <= BusEnvelope.messageLimit else { throw .tooLarge(limit: BusEnvelope.messageLimit) }
        try await self.ask { core, completion in core.announce(message, completion) }
    }

    package func keep(
        _ values: [KeptValue], now: Int64, latest: Int64, limit: Int
    ) async throws(ClusterError) {
        let arguments = KeptValues.arguments(values, now: now, latest: latest, limit: limit)
        try await self.ask { core, completion in core.keep(arguments, completion) }
    }

    package func kept(limit: Int) async throws(ClusterError) -> [[UInt8]] {
        var (values, cursor) = ([[UInt8]](), "0")
        repeat {
            let page = try await self.ask { [cursor] core, completion in core.kept(from: cursor, completion) }
            values += page.values
            cursor = page.next
        } while cursor != "0" && values.count < limit
        return values
    }

    private func ask<Answer: Sendable>(
        _ body: @escaping @Sendable (BusCore, @escaping @Sendable (Result<Answer, ClusterError>) -> Void) -> Void
    ) async throws(ClusterError) -> Answer {
        let result = await withCheckedContinuation { continuation in
            self.core.execute { core in body(core) { continuation.resume(returning: $0) } }
        }
        return try result.get()
    }
}
