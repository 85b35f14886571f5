import StreamTransport

/// When each connection of a drain at a rate is told to end: the i-th at `i / rate` after the beginning, plus its own
/// jitter. The jitter of one moves no other, so the rate holds whatever the jitter is.
package struct DrainTimetable: Sendable {
    /// One connection of the drain: its place in the order in which they were found, and its time.
    private struct Turn {
        let index: Int
        /// Since the beginning, pauses not counted.
        let offset: Int64
    }

    /// The slowest is one connection in 1000 s: a longer pause is no drain.
    package static let rates = 0.001...100_000.0

    /// By time.
    private let turns: [Turn]
    private var position = 0
    private var began: MonotonicInstant
    private var paused: MonotonicInstant?

    /// - Parameters:
    ///   - count: connections to be told.
    ///   - rate: connections each second, in `rates`; beyond them the nearest of them.
    ///   - jitter: each is told up to so much later, by chance.
    package init(
        count: Int, rate: Double, jitter: Duration, began: MonotonicInstant,
        using generator: inout some RandomNumberGenerator
    ) {
        let rate = min(max(rate, Self.rates.lowerBound), Self.rates.upperBound)
        let most = max(0, jitter.clampedNanoseconds)
        var turns: [Turn] = []
        turns.reserveCapacity(max(0, count))
        for index in 0..<max(0, count) {
            let regular = Int64(exactly: (Double(index) / rate * 1e9).rounded()) ?? .max
            let delay = most > 0 ? Int64.random(in: 0...most, using: &generator) : 0
            let (offset, overflow) = regular.addingReportingOverflow(delay)
            turns.append(Turn(index: index, offset: overflow ? .max : offset))
        }
        turns.sort { ($0.offset, $0.index) < ($1.offset, $1.index) }
        self.turns = turns
        self.began = began
    }

    /// When the next one is to be told; `nil` when all were, or while it is paused.
    package var next: MonotonicInstant? {
        guard self.paused == nil, self.position < self.turns.count else { return nil }
        return self.instant(of: self.turns[self.position])
    }

    /// Whether there is nobody left to be told.
    package var isComplete: Bool { self.position == self.turns.count }

    /// Takes one whose time has come.
    /// - Returns: its place among those that were found; `nil` if the time of none has come.
    package mutating func takeDue(at now: MonotonicInstant) -> Int? {
        guard let next = self.next, next <= now else { return nil }
        defer { self.position += 1 }
        return self.turns[self.position].index
    }

    /// When the last one is told. While it is paused, as if it went on at `now`.
    package func end(at now: MonotonicInstant) -> MonotonicInstant {
        guard let last = self.turns.last else { return self.began }
        return self.instant(of: last).advanced(by: self.paused?.duration(to: now) ?? .zero)
    }

    /// How many of those that are still to be told have their time at `deadline` or after it.
    package func count(from deadline: MonotonicInstant, at now: MonotonicInstant) -> Int {
        let shift = self.paused?.duration(to: now) ?? .zero
        return self.turns[self.position...].count { self.instant(of: $0).advanced(by: shift) >= deadline }
    }

    private func instant(of turn: Turn) -> MonotonicInstant {
        self.began.advanced(by: .nanoseconds(turn.offset))
    }

    // MARK: Pauses

    /// Nobody is told until `resume`.
    package mutating func pause(at now: MonotonicInstant) {
        if self.paused == nil { self.paused = now }
    }

    /// Goes on; every time that is still to come is later by the pause.
    package mutating func resume(at now: MonotonicInstant) {
        guard let paused = self.paused else { return }
        self.paused = nil
        self.began = self.began.advanced(by: paused.duration(to: now))
    }
}
