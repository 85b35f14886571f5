import Synchronization

/// Counters of Redis clients, for metrics. All loops share one; any thread may read it.
package final class RedisCounters: Sendable {
    /// Upper bounds of the histogram's buckets, in microseconds; one more bucket is for longer times.
    package static let bounds: [Int64] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000,
    ]

    package struct Values: Equatable, Sendable {
        /// Commands that were given to a connection.
        package var commands = 0
        /// Of those the ones that were not answered, or with an error.
        package var failures = 0
        /// Commands that no connection accepted.
        package var refused = 0
        /// Connections that became ready, the first ones included.
        package var connections = 0
        /// Connections that ended by themselves, and attempts that failed.
        package var losses = 0
        package var messages = 0
        /// Of messages' payloads.
        package var messageBytes = 0
        /// Time from giving the last answered command to its connection until its reply.
        package var lastLatency: Duration = .zero
        /// Sum of these times.
        package var totalLatency: Duration = .zero
        /// Commands answered within each of `bounds` and above the one before; the last is for those above all.
        package var histogram: [Int] = []

        /// `.zero` before the first reply.
        package var meanLatency: Duration {
            let replies = self.histogram.reduce(0, +)
            return replies == 0 ? .zero : self.totalLatency / replies
        }
    }

    private let commands = Atomic<Int>(0)
    private let failures = Atomic<Int>(0)
    private let refused = Atomic<Int>(0)
    private let connections = Atomic<Int>(0)
    private let losses = Atomic<Int>(0)
    private let messages = Atomic<Int>(0)
    private let messageBytes = Atomic<Int>(0)
    private let lastLatency = Atomic<Int64>(0)
    private let totalLatency = Atomic<Int64>(0)
    private let buckets = RedisCounters.bounds.indices.map { _ in Bucket() } + [Bucket()]

    private final class Bucket: Sendable {
        let count = Atomic<Int>(0)
    }

    package init() {}

    /// Not a snapshot: the counters change while they are read.
    package var values: Values {
        var values = Values()
        values.commands = self.commands.load(ordering: .relaxed)
        values.failures = self.failures.load(ordering: .relaxed)
        values.refused = self.refused.load(ordering: .relaxed)
        values.connections = self.connections.load(ordering: .relaxed)
        values.losses = self.losses.load(ordering: .relaxed)
        values.messages = self.messages.load(ordering: .relaxed)
        values.messageBytes = self.messageBytes.load(ordering: .relaxed)
        values.lastLatency = .nanoseconds(self.lastLatency.load(ordering: .relaxed))
        values.totalLatency = .nanoseconds(self.totalLatency.load(ordering: .relaxed))
        values.histogram = self.buckets.map { $0.count.load(ordering: .relaxed) }
        return values
    }

    func submitted() { self.commands.add(1, ordering: .relaxed) }
    func wasRefused() { self.refused.add(1, ordering: .relaxed) }
    func connected() { self.connections.add(1, ordering: .relaxed) }
    func lost() { self.losses.add(1, ordering: .relaxed) }
    func failed() { self.failures.add(1, ordering: .relaxed) }

    func received(_ payload: [UInt8]) {
        self.messages.add(1, ordering: .relaxed)
        self.messageBytes.add(payload.count, ordering: .relaxed)
    }

    /// - Parameter nanoseconds: from submitting the command until now.
    func replied(after nanoseconds: Int64) {
        self.lastLatency.store(nanoseconds, ordering: .relaxed)
        self.totalLatency.wrappingAdd(nanoseconds, ordering: .relaxed)
        let index = Self.bounds.firstIndex { nanoseconds <= $0 * 1000 } ?? Self.bounds.count
        self.buckets[index].count.add(1, ordering: .relaxed)
    }
}
