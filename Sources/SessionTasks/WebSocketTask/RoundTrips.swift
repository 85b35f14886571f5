/// How long the last pings took to be answered, in microseconds. Of the last 16: more would cost each connection more
/// than they tell.
package struct RoundTrips: Sendable, Hashable {
    package static let limit = 16

    /// Shared until it changes; the oldest is overwritten.
    private var recent: [UInt32] = []
    private var next = 0
    /// Pings answered in all.
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func add(_ duration: Duration) {
        let microseconds = UInt32(clamping: duration.clampedMicroseconds)
        if self.recent.count < Self.limit {
            if self.recent.isEmpty { self.recent.reserveCapacity(4) }
            self.recent.append(microseconds)
        } else {
            self.recent[self.next] = microseconds
        }
        self.next = (self.next + 1) % Self.limit
        self.count += 1
    }

    package var last: Duration? {
        guard !self.recent.isEmpty else { return nil }
        return .microseconds(self.recent[(self.next + Self.limit - 1) % Self.limit % self.recent.count])
    }

    /// The smallest that `share` of the last ones do not exceed; `share` from 0 to 1.
    package func quantile(_ share: Double) -> Duration? {
        guard !self.recent.isEmpty else { return nil }
        let index = Int((share * Double(self.recent.count)).rounded(.up)) - 1
        return .microseconds(self.recent.sorted()[min(self.recent.count - 1, max(0, index))])
    }
}

extension Duration {
    fileprivate var clampedMicroseconds: Int64 {
        let (seconds, attoseconds) = self.components
        guard seconds < 4_000 else { return 4_000_000_000 }
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
