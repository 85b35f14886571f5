import ControlAPI
import GatewayCore
import StreamTransport

/// One drain on its way.
actor DrainRun {
    /// Longest sleep of a drain that has nothing to do before: one that is paused, without a deadline.
    private static let longestSleep = Duration.seconds(3600)

    private let gateway: Gateway
    private let order: BulkOrder
    private let keys: [ConnectionKey]
    private let pace: DrainPace
    private let deadline: MonotonicInstant?
    private let anchor: TimeAnchor
    private var timetable: DrainTimetable
    private(set) var drain: Drain
    /// Until the next one is to be told; ended early by whatever changes that.
    private var sleeping: Task<Void, Never>?

    init(
        id: String, _ order: BulkOrder, _ keys: [ConnectionKey], pace: DrainPace, gateway: Gateway, anchor: TimeAnchor
    ) {
        let now = gateway.now
        var generator = SystemRandomNumberGenerator()
        self.drain = Drain(id: id, state: "running", total: keys.count, startedAt: anchor.text(now))
        self.order = order
        self.keys = keys
        self.pace = pace
        self.deadline = pace.deadline.map { now.advanced(by: $0) }
        self.gateway = gateway
        self.anchor = anchor
        self.timetable = pace.timetable(for: keys.count, from: now, using: &generator)
        self.drain.deadlineAt = self.deadline.map { anchor.text($0) }
    }

    private var isOver: Bool { self.drain.state == "cancelled" || self.drain.state == "ended" }
    private var isLate: Bool { self.deadline.map { self.gateway.now >= $0 } ?? false }

    func run() async {
        self.tell(.drainStarted)
        var told = self.gateway.now
        while !self.isOver, !self.isLate, !self.timetable.isComplete {
            guard let index = self.timetable.takeDue(at: self.gateway.now) else {
                await self.sleep()
                continue
            }
            _ = await self.order.end(self.keys[index], of: self.gateway)
            self.drain.told += 1
            if told.duration(to: self.gateway.now) >= .seconds(1) {
                told = self.gateway.now
                self.tell(.drainProgressed)
            }
        }
        await self.awaitEnds()
        if self.drain.state == "cancelled" { _ = await self.left() }
        self.foresee()
        if !self.isOver { self.drain.state = "ended" }
        self.drain.endedAt = self.anchor.text(self.gateway.now)
        self.tell(.drainEnded)
    }

    /// Until the next one is to be told, or the deadline.
    private func sleep() async {
        let next = [self.timetable.next, self.deadline].compactMap(\.self).min()
        let pause = min(next.map { self.gateway.now.duration(to: $0) } ?? Self.longestSleep, Self.longestSleep)
        guard pause > .zero else { return }
        let sleep = Task { _ = try? await Task.sleep(for: pause, tolerance: .milliseconds(1)) }
        self.sleeping = sleep
        await sleep.value
    }

    /// Says when the last one will be told, and for how many that is too late.
    private func foresee() {
        let now = self.gateway.now
        self.drain.lastToldAt = self.anchor.text(self.timetable.end(at: now))
        let late = self.deadline.map { self.timetable.count(from: $0, at: now) } ?? 0
        self.drain.untold = late
        self.drain.warning = late > 0 ? self.pace.warning(late: late, of: self.keys.count) : nil
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
        if self.drain.endedAt == nil {
            _ = await self.left()
            if self.drain.endedAt == nil { self.foresee() }
        }
        return self.drain
    }

    private func tell(_ kind: GatewayEvent.Kind) {
        var event = GatewayEvent(kind)
        event.drain = self.drain.id
        event.count = kind == .drainStarted ? self.drain.total : self.drain.told
        self.gateway.journal?.publish(event)
    }

    // MARK: Steering

    /// - Returns: whether that was possible.
    func pause() -> Bool {
        guard self.move(from: "running", to: "paused") else { return false }
        self.timetable.pause(at: self.gateway.now)
        return true
    }

    func resume() -> Bool {
        guard self.move(from: "paused", to: "running") else { return false }
        self.timetable.resume(at: self.gateway.now)
        return true
    }

    func cancel() -> Bool {
        guard !self.isOver else { return false }
        self.drain.state = "cancelled"
        self.sleeping?.cancel()
        return true
    }

    private func move(from old: String, to new: String) -> Bool {
        guard self.drain.state == old else { return false }
        self.drain.state = new
        self.sleeping?.cancel()
        return true
    }
}
