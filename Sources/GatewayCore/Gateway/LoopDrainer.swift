import StreamTransport

/// The end of one loop's part of the gateway: connections are asked to end by a schedule, and cut at its deadline.
final class LoopDrainer: TimerTarget {
    private let gateway: LoopGateway
    private let schedule: DrainSchedule
    private var whenEmpty: (() -> Void)?
    private let waiting: [UInt64]
    private var told = 0
    private let timer = LoopTimer()

    init(_ gateway: LoopGateway, settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        self.gateway = gateway
        self.whenEmpty = whenEmpty
        self.waiting = gateway.live.keys.sorted()
        self.schedule = DrainSchedule(
            settings, count: self.waiting.count, loop: gateway.index, of: gateway.shared.loopCount,
            began: gateway.loop.now)
    }

    func begin() {
        self.gateway.beginDrain { self.finish() }
        self.goOn()
    }

    /// Tells those whose turn it is; those that are gone count as told.
    private func goOn() {
        let due = self.schedule.due(at: self.gateway.loop.now)
        while self.told < due, self.whenEmpty != nil {
            self.gateway.drain(self.waiting[self.told])
            self.told += 1
        }
        guard self.whenEmpty != nil else { return }
        let next = self.schedule.next(after: self.told) ?? self.schedule.deadline
        self.gateway.loop.arm(self.timer, at: min(next, self.schedule.deadline), target: self)
    }

    func timerFired(_ timer: LoopTimer) {
        guard self.gateway.loop.now < self.schedule.deadline else { return self.gateway.abandonAll() }
        self.goOn()
    }

    private func finish() {
        self.gateway.loop.disarm(self.timer)
        self.gateway.drainer = nil
        let whenEmpty = self.whenEmpty
        self.whenEmpty = nil
        whenEmpty?()
    }
}
