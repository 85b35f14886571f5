/// Allows an average rate, with bursts of one second's worth.
struct RateMeter: Sendable {
    private let interval: Duration
    private let burst: Duration
    /// When the next event would be on time, if all came evenly.
    private var next: Duration

    init(rate: Int, now: Duration) {
        self.interval = .seconds(1) / max(1, rate)
        self.burst = max(.seconds(1), self.interval)
        self.next = now
    }

    mutating func allows(at now: Duration) -> Bool {
        let base = max(self.next, now)
        guard base - now + self.interval <= self.burst else { return false }
        self.next = base + self.interval
        return true
    }
}
