/// How long the last pings took to be answered; p50 and p99 are of the last 16.
package struct RoundTripTimes: Codable, Sendable, Equatable {
    package var lastMs: Double
    package var p50Ms: Double
    package var p99Ms: Double
    /// Pings answered in all.
    package var count: UInt64

    package init(
        lastMs: Double, p50Ms: Double, p99Ms: Double, count: UInt64
    ) {
        self.lastMs = lastMs
        self.p50Ms = p50Ms
        self.p99Ms = p99Ms
        self.count = count
    }
}
