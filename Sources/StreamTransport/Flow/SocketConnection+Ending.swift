extension SocketConnection {
    package func close(linger: Duration) {
        guard self.life == .open else { return }
        self.life = .closing(linger: linger)
        self.keep([])
        self.paused = false
        if self.output == .open { self.output = .finishing }
        self.armCloseTimer(linger)
        self.updateInterest()
        self.endTurnLater()
    }

    func armCloseTimer(_ linger: Duration) {
        let timer = self.closeTimer ?? LoopTimer()
        self.closeTimer = timer
        self.loop.arm(timer, after: linger, target: self)
    }

    func closeIfDone() {
        guard case .closing = self.life, self.waiting == 0, self.output == .finished || self.output == .broken else {
            return
        }
        if !self.inputOpen || self.output == .broken { self.end(.closed) }
    }

    package func reset() {
        guard self.isLive else { return }
        self.end(.abandoned)
    }

    /// Gives the descriptor back and leaves the telling to the end of the turn.
    func end(_ end: TransportEnd) {
        guard self.isLive else { return }
        if self.loop.scratch.owner === self {
            self.loop.scratch.owner = nil
            self.loop.scratch.count = 0
        }
        self.life = .ended(end)
        self.keep([])
        self.changeQueue { $0.removeAll() }
        if let timer = self.closeTimer { self.loop.disarm(timer) }
        self.rest = .untouched
        self.loop.restingOutputs.remove(self)
        self.unwatch()
        switch end {
        case .closed: self.loop.system.close(self.descriptor)
        case .abandoned, .failed: self.loop.system.reset(self.descriptor)
        }
        self.endTurnLater()
    }

    package func surrender() -> SurrenderedSocket? {
        guard !self.isOffering else { return nil }
        if self.loop.scratch.owner === self { self.flushScratch() }
        guard self.life == .open, self.waiting == 0, self.output == .open else { return nil }
        self.unwatch()
        // The new owner gets the options as they were asked for.
        self.stopResting()
        self.life = .surrendered
        self.told = nil
        let count = self.keptCount
        return SurrenderedSocket(descriptor: self.descriptor, unread: Array(self.takeKept().suffix(count)))
    }
}
