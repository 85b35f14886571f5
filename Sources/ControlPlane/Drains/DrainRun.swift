import ControlAPI
import GatewayCore

/// One drain on its way.
///
/// - `rate`: connections each second, in `rates`.
actor DrainRun {
    /// The slowest is one connection in 1000 s: a longer pause is no drain, and the time between two stays a number.
    static let rates = 0.001...100_000.0

    private let gateway: Gateway
    private let order: BulkOrder
    private let keys: [ConnectionKey]
    private let rate: Double
    private let jitter: Duration
    private let deadline: ContinuousClock.Instant?
    private let timeOfDay: @Sendable () -> String
    private(set) var drain: Drain
    /// What is slept between two connections; a cancelled drain does not sleep on.
    private var sleeping: Task<Void, Never>?

    init(
        _ drain: Drain, _ order: BulkOrder, _ keys: [ConnectionKey], rate: Double, jitter: Duration,
        deadline: Duration?, gateway: Gateway, timeOfDay: @escaping @Sendable () -> String
    ) {
        self.drain = drain
        self.order = order
        self.keys = keys
        self.rate = rate
        self.jitter = jitter
        self.deadline = deadline.map { ContinuousClock.now.advanced(by: $0) }
        self.gateway = gateway
        self.timeOfDay = timeOfDay
    }

    private var isOver: Bool { self.drain.state == "cancelled" || self.drain.state == "ended" }
    private var isLate: Bool { self.deadline.map { ContinuousClock.now >= $0 } ?? false }

    func run() async {
        self.tell(.drainStarted)
        var told = ContinuousClock.now
        for key in self.keys {
            await self.whilePaused()
            guard !self.isOver, !self.isLate else { break }
            _ = await self.order.end(key, of: self.gateway)
            self.drain.told += 1
            if told.duration(to: .now) >= .seconds(1) {
                told = .now
                self.tell(.drainProgressed)
            }
            await self.pace()
        }
        await self.awaitEnds()
        if self.drain.state == "cancelled" { _ = await self.left() }
        if !self.isOver { self.drain.state = "ended" }
        self.drain.endedAt = self.timeOfDay()
        self.tell(.drainEnded)
    }

    private func pace() async {
        var pause = Duration.seconds(1 / self.rate)
        if self.jitter > .zero { pause += self.jitter * Double.random(in: 0...1) }
        if let deadline = self.deadline { pause = min(pause, ContinuousClock.now.duration(to: deadline)) }
        guard pause > .zero else { return }
        let sleep = Task { [pause] in _ = try? await Task.sleep(for: pause) }
        self.sleeping = sleep
        await sleep.value
    }

    /// Waits until those that were told are gone, and cuts them at the deadline.
    private func awaitEnds() async {
        while !self.isOver {
            let left = await self.left()
            if left.isEmpty { return }
            if self.isLate {
                for key in left where await self.gateway.abort(key) { self.drain.cut += 1 }
                self.drain.remaining = 0
                return
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Those that are still there, which it counts.
    private func left() async -> [ConnectionKey] {
        let live = Set(await self.gateway.liveNumbers())
        let left = self.keys.filter { live.contains($0.number) }
        // Meanwhile it may have come to its end, whose count stands.
        if self.drain.endedAt == nil { self.drain.remaining = left.count }
        return left
    }

    /// As it is now; once it is over, as it was then.
    func shown() async -> Drain {
        if self.drain.endedAt == nil { _ = await self.left() }
        return self.drain
    }

    private func whilePaused() async {
        while self.drain.state == "paused", !self.isLate { try? await Task.sleep(for: .milliseconds(20)) }
    }

    private func tell(_ kind: GatewayEvent.Kind) {
        var event = GatewayEvent(kind)
        event.drain = self.drain.id
        event.count = kind == .drainStarted ? self.drain.total : self.drain.told
        self.gateway.journal?.publish(event)
    }

    // MARK: Steering

    /// - Returns: whether that was possible.
    func pause() -> Bool { self.move(from: "running", to: "paused") }
    func resume() -> Bool { self.move(from: "paused", to: "running") }

    func cancel() -> Bool {
        guard !self.isOver else { return false }
        self.drain.state = "cancelled"
        self.sleeping?.cancel()
        return true
    }

    private func move(from old: String, to new: String) -> Bool {
        guard self.drain.state == old else { return false }
        self.drain.state = new
        return true
    }
}
