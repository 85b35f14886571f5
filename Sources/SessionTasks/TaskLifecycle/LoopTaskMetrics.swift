import StreamTransport
import WebSocketProtocol

/// State shared by the tasks of one loop: masking keys and metrics. Used on the loop only.
package final class LoopTaskMetrics {
    let keys: MaskingKeys
    /// Payload of messages that were received, in bytes; of frames that are passed on many at a time, their mean.
    package var messageSizes: Distribution { self.sizes }
    /// From our pings to their Pongs, in microseconds.
    package private(set) var roundTrips = Distribution()
    /// Whether each connection records the round trips of its own pings: only if they can be queried.
    package var keepsRoundTrips = false
    private var sizes = Distribution()

    /// Taps by task; most tasks have none.
    private var taps: [UInt64: [TaskTap]] = [:]
    /// Result of the last lookup, so that a busy connection is looked up once.
    private var found: [TaskTap] = []
    private var foundAt: UInt64?

    private init(_ keys: MaskingKeys) {
        self.keys = keys
    }

    /// The loop's own.
    package static func shared(on loop: Loop) -> LoopTaskMetrics {
        // Asked for first: making one of the loop's objects must not ask for another.
        let keys = MaskingKeys.shared(on: loop)
        return loop.local(LoopTaskMetrics.self) { LoopTaskMetrics(keys) }
    }

    func received(messageOf bytes: Int) {
        self.sizes.add(UInt64(clamping: bytes))
    }

    func answered(after duration: Duration) {
        self.roundTrips.add(duration)
    }
}

extension LoopTaskMetrics {
    func add(_ tap: TaskTap, to record: TaskRecord) {
        self.taps[record.identifier, default: []].append(tap)
        self.foundAt = nil
    }

    /// - Returns: whether the task has other taps.
    func remove(_ tap: TaskTap, from record: TaskRecord) -> Bool {
        var rest = self.taps[record.identifier] ?? []
        rest.removeAll { $0 === tap }
        self.taps[record.identifier] = rest.isEmpty ? nil : rest
        (self.found, self.foundAt) = ([], nil)
        return !rest.isEmpty
    }

    private func taps(at record: TaskRecord) -> [TaskTap] {
        guard self.foundAt != record.identifier else { return self.found }
        self.found = self.taps[record.identifier] ?? []
        self.foundAt = record.identifier
        return self.found
    }

    /// Whether all taps of the task are full, so that bytes may be spliced.
    func areTapsFull(at record: TaskRecord) -> Bool {
        self.taps(at: record).allSatisfy(\.isFull)
    }

    func recordUntapped(_ record: TaskRecord) {
        for tap in self.taps(at: record) { tap.skipPiece() }
    }

    func recordPiece(
        _ record: TaskRecord, _ way: TapPiece.Way, _ content: TapPiece.Content, _ bytes: RawSpan,
        startsMessage: Bool = true, endsMessage: Bool = true
    ) {
        for tap in self.taps(at: record) {
            tap.addPiece(way, content, bytes, startsMessage: startsMessage, endsMessage: endsMessage)
        }
    }
}

/// How often values of each size occurred: a bucket for each power of two, so that counting costs a few instructions and
/// no memory. Values are whole: bytes, or microseconds.
package struct Distribution: Sendable {
    /// The largest bucket takes everything above 2^38.
    private static let bucketCount = 40

    private var buckets = InlineArray<40, UInt64>(repeating: 0)
    package private(set) var sum: UInt64 = 0
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func add(_ value: UInt64) {
        let index = value < 2 ? 0 : UInt64.bitWidth - (value - 1).leadingZeroBitCount
        self.buckets[min(index, Self.bucketCount - 1)] &+= 1
        self.sum &+= value
        self.count &+= 1
    }

    package mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let whole = UInt64(clamping: min(seconds, 1_000_000_000)) &* 1_000_000
        self.add(whole &+ UInt64(clamping: attoseconds / 1_000_000_000_000))
    }

    package mutating func add(_ other: Distribution) {
        for index in 0..<Self.bucketCount { self.buckets[index] &+= other.buckets[index] }
        self.sum &+= other.sum
        self.count &+= other.count
    }

    /// Values up to 2 to the power of `exponent`, that one included.
    package func count(upTo exponent: Int) -> UInt64 {
        (0...min(max(0, exponent), Self.bucketCount - 1)).reduce(0) { $0 &+ self.buckets[$1] }
    }
}
