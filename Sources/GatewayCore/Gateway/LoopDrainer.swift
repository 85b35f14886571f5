import StreamTransport

/// The end of one loop's part of the gateway.
final class LoopDrainer: TimerTarget {
    private let gateway: LoopGateway
    private let settings: DrainSettings
    private var whenEmpty: (() -> Void)?
    private var waiting: [UInt64] = []
    private let spreadTimer = LoopTimer()
    private let deadlineTimer = LoopTimer()
    private var step = Duration.zero

    init(_ gateway: LoopGateway, settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        self.gateway = gateway
        self.settings = settings
        self.whenEmpty = whenEmpty
    }

    func begin() {
        self.gateway.beginDrain { self.finish() }
        guard self.whenEmpty != nil else { return }
        self.waiting = self.gateway.live.keys.sorted()
        self.step = self.settings.closeSpread / max(1, self.waiting.count)
        self.gateway.loop.arm(self.deadlineTimer, after: self.settings.timeout, target: self)
        self.drainNext()
    }

    private func drainNext() {
        // Many connections in a short spread: several at a time, so that the timer need not be finer than a millisecond.
        let batch = max(1, Int(Duration.milliseconds(1) / max(self.step, .nanoseconds(1))))
        for identifier in self.waiting.prefix(batch) { self.gateway.drain(identifier) }
        self.waiting.removeFirst(min(batch, self.waiting.count))
        guard !self.waiting.isEmpty, self.whenEmpty != nil else { return }
        self.gateway.loop.arm(self.spreadTimer, after: self.step * batch, target: self)
    }

    func timerFired(_ timer: LoopTimer) {
        if timer === self.spreadTimer { self.drainNext() } else { self.gateway.abandonAll() }
    }

    private func finish() {
        self.gateway.loop.disarm(self.spreadTimer)
        self.gateway.loop.disarm(self.deadlineTimer)
        let whenEmpty = self.whenEmpty
        self.whenEmpty = nil
        whenEmpty?()
    }
}
