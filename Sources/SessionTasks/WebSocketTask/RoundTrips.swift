/// How long the last pings took to be answered, in microseconds. Of the last 16: more would cost each connection more
/// than they tell.
package struct RoundTrips: Sendable {
    package static let limit = 16

    /// The oldest is overwritten.
    private var recent = InlineArray<16, UInt32>(repeating: 0)
    /// Pings answered in all.
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func add(_ duration: Duration) {
        self.recent[Int(self.count % UInt64(Self.limit))] = UInt32(clamping: duration.clampedMicroseconds)
        self.count += 1
    }

    package var last: Duration? {
        guard self.count > 0 else { return nil }
        return .microseconds(self.recent[Int((self.count - 1) % UInt64(Self.limit))])
    }

    /// The smallest that `share` of the last ones do not exceed; `share` from 0 to 1.
    package func quantile(_ share: Double) -> Duration? {
        let kept = Int(min(self.count, UInt64(Self.limit)))
        guard kept > 0 else { return nil }
        let index = Int((share * Double(kept)).rounded(.up)) - 1
        let sorted = (0..<kept).map { self.recent[$0] }.sorted()
        return .microseconds(sorted[min(kept - 1, max(0, index))])
    }
}

extension Duration {
    fileprivate var clampedMicroseconds: Int64 {
        let (seconds, attoseconds) = self.components
        guard seconds < 4_000 else { return 4_000_000_000 }
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
