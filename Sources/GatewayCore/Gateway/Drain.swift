import GatewayConfiguration
import StreamTransport

/// Phase of a gateway on one loop.
enum DrainPhase {
    case serving
    case draining(LoopDrainer)
    /// New connections are drained at once.
    case drained
}

/// Drains the gateway on one loop: asks connections to close by a schedule, and resets them at its deadline.
final class LoopDrainer: TimerTarget {
    private let gateway: LoopGateway
    private let schedule: DrainSchedule
    private var whenEmpty: [() -> Void]
    /// Connections open at the beginning, in the order of acceptance.
    private let identifiers: [UInt64]
    /// Number of connections that were asked to close, or had ended before.
    private var notified = 0
    private let timer = LoopTimer()

    init(_ gateway: LoopGateway, settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        self.gateway = gateway
        self.whenEmpty = [whenEmpty]
        self.identifiers = gateway.live.keys.sorted()
        self.schedule = DrainSchedule(
            settings, count: self.identifiers.count, loop: gateway.index, of: gateway.shared.loopCount,
            began: gateway.loop.now)
    }

    /// Calls `whenEmpty` too when the last connection is over.
    func notify(_ whenEmpty: @escaping () -> Void) {
        self.whenEmpty.append(whenEmpty)
    }

    func begin() {
        self.gateway.live.isEmpty ? self.finish() : self.drainDue()
    }

    /// Asks the connections that are due to close.
    private func drainDue() {
        let due = self.schedule.due(at: self.gateway.loop.now)
        while self.notified < due, !self.gateway.live.isEmpty {
            self.gateway.drain(self.identifiers[self.notified])
            self.notified += 1
        }
        guard !self.gateway.live.isEmpty else { return }
        let next = self.schedule.next(after: self.notified) ?? self.schedule.deadline
        self.gateway.loop.arm(self.timer, at: min(next, self.schedule.deadline), target: self)
    }

    func timerFired(_ timer: LoopTimer) {
        guard self.gateway.loop.now < self.schedule.deadline else { return self.gateway.abandonAll() }
        self.drainDue()
    }

    /// No connection is left.
    func finish() {
        self.gateway.loop.disarm(self.timer)
        self.gateway.drained()
        for call in self.whenEmpty { call() }
        self.whenEmpty = []
    }
}

/// Schedule by which open connections are asked to close, so that clients do not all reconnect at once.
package struct DrainSchedule: Hashable, Sendable {
    package let began: MonotonicInstant
    /// Connections still open then are reset.
    package let deadline: MonotonicInstant
    /// Number of connections to notify.
    package let count: Int
    private let spread: Int64
    private let loop: Int64
    private let loops: Int64

    /// - Parameters:
    ///   - count: connections of one loop, open at `began`; they are notified evenly over the spread.
    ///   - loop: index among the loops that drain at the same time: they alternate, so that the total is even too. The
    ///     first of the first loop is notified at once.
    package init(_ settings: DrainSettings, count: Int, loop: Int = 0, of loops: Int = 1, began: MonotonicInstant) {
        self.loops = Int64(max(loops, 1))
        self.loop = Int64(min(max(loop, 0), max(loops, 1) - 1))
        self.began = began
        self.deadline = began.advanced(by: max(settings.timeout, .zero))
        self.count = max(count, 0)
        self.spread = max(min(settings.closeSpread, settings.timeout), .zero).clampedNanoseconds
    }

    /// Number of connections due by now.
    package func due(at now: MonotonicInstant) -> Int {
        let elapsed = self.began.duration(to: now).clampedNanoseconds
        guard elapsed >= 0, self.count > 0 else { return 0 }
        guard elapsed < self.spread else { return self.count }
        // Wide enough that no product overflows, and rounded as in `instant(of:)`.
        let scaled = elapsed.multipliedFullWidth(by: Int64(self.count) * self.loops)
        let (quotient, _) = self.spread.dividingFullWidth(scaled)
        return quotient < self.loop ? 0 : min(Int((quotient - self.loop) / self.loops) + 1, self.count)
    }

    /// Time of the next notification.
    /// - Parameter notified: number of connections notified.
    /// - Returns: `nil` when all were.
    package func next(after notified: Int) -> MonotonicInstant? {
        guard notified >= 0, notified < self.count else { return nil }
        let scaled = self.spread.multipliedFullWidth(by: Int64(notified) * self.loops + self.loop)
        let (quotient, remainder) = (Int64(self.count) * self.loops).dividingFullWidth(scaled)
        return self.began.advanced(by: .nanoseconds(quotient + (remainder > 0 ? 1 : 0)))
    }
}

/// Times at which the connections of a rate-limited drain are notified: the i-th at `i / rate` after the beginning,
/// plus its own jitter. Jitter of one does not move others, so the rate holds whatever the jitter is.
package struct DrainTimes: Sendable {
    /// One connection of the drain: its index among those that were found, and its time.
    private struct Turn {
        let index: Int
        /// Since the beginning, pauses not counted.
        let offset: Int64
    }

    /// Permitted rates, in connections per second.
    package static let rates = 0.001...100_000.0

    /// By time.
    private let turns: [Turn]
    private var position = 0
    private var began: MonotonicInstant
    private var paused: MonotonicInstant?

    /// - Parameters:
    ///   - count: number of connections.
    ///   - rate: connections per second, clamped to `rates`.
    ///   - jitter: upper bound of the random delay of each.
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

    /// Time of the next notification; `nil` when all were made, or while paused.
    package var next: MonotonicInstant? {
        guard self.paused == nil, self.position < self.turns.count else { return nil }
        return self.instant(of: self.turns[self.position])
    }

    /// Whether all were notified.
    package var isComplete: Bool { self.position == self.turns.count }

    /// Takes the next connection that is due.
    /// - Returns: its index among those that were found; `nil` if none is due.
    package mutating func takeDue(at now: MonotonicInstant) -> Int? {
        guard let next = self.next, next <= now else { return nil }
        defer { self.position += 1 }
        return self.turns[self.position].index
    }

    /// Time of the last notification. While paused, as if resumed at `now`.
    package func end(at now: MonotonicInstant) -> MonotonicInstant {
        guard let last = self.turns.last else { return self.began }
        return self.instant(of: last).advanced(by: self.paused?.duration(to: now) ?? .zero)
    }

    /// Number of pending notifications at or after `deadline`.
    package func count(from deadline: MonotonicInstant, at now: MonotonicInstant) -> Int {
        let shift = self.paused?.duration(to: now) ?? .zero
        return self.turns[self.position...].count { self.instant(of: $0).advanced(by: shift) >= deadline }
    }

    private func instant(of turn: Turn) -> MonotonicInstant {
        self.began.advanced(by: .nanoseconds(turn.offset))
    }

    // MARK: Pauses

    /// Stops notifying until `resume`.
    package mutating func pause(at now: MonotonicInstant) {
        if self.paused == nil { self.paused = now }
    }

    /// Resumes; all pending times move by the length of the pause.
    package mutating func resume(at now: MonotonicInstant) {
        guard let paused = self.paused else { return }
        self.paused = nil
        self.began = self.began.advanced(by: paused.duration(to: now))
    }
}
