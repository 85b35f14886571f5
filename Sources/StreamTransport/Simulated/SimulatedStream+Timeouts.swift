/// How a connection notices that nothing comes through: user timeout, retransmission limit, keep-alive.
extension SimulatedStream {
    /// Linux gives up after fifteen retransmissions (`tcp_retries2`), which takes 924.6 s.
    private static let retransmissionLimit = Duration.seconds(924)

    /// Bytes of ours arrived.
    func acknowledged() {
        self.unacknowledgedSince = self.outbound.isEmpty ? nil : self.network.now
        self.lastHeard = self.network.now
        self.watchers.notify()
    }

    /// How long bytes may stay under way. Without a user timeout a closed window is waited on for ever, a silent
    /// network is not.
    private var acknowledgementLimit: Duration? {
        self.options.userTimeout ?? (self.isPathStalled ? Self.retransmissionLimit : nil)
    }

    private var isPathStalled: Bool {
        self.pathStalledUntil > self.network.now
    }

    private var pathStalledUntil: MonotonicInstant {
        max(self.stalledUntil, self.peer?.stalledUntil ?? self.stalledUntil)
    }

    func awaitAcknowledgement() {
        guard !self.awaitsAcknowledgement, self.life == .established, let since = self.unacknowledgedSince,
            let limit = self.acknowledgementLimit
        else { return }
        self.awaitsAcknowledgement = true
        self.network.planPatiently(at: since.advanced(by: limit)) { [weak self] in self?.checkAcknowledgement() }
    }

    private func checkAcknowledgement() {
        self.awaitsAcknowledgement = false
        guard self.life == .established, let since = self.unacknowledgedSince, let limit = self.acknowledgementLimit
        else {
            return
        }
        guard since.advanced(by: limit) <= self.network.now else { return self.awaitAcknowledgement() }
        self.timeOut()
    }

    private func timeOut() {
        self.network.note(.timedOut, self.number, self.outbound.count)
        self.fail(.timedOut)
    }

    /// Holds up everything that this end sends, until `end`.
    func stall(until end: MonotonicInstant) {
        self.network.note(.stalled, self.number, Int(self.network.now.duration(to: end).clampedNanoseconds))
        self.stalledUntil = max(self.stalledUntil, end)
        if end != .distantFuture { self.network.planPatiently(at: end) { self.deliver() } }
        for end in [self, self.peer] {
            end?.awaitAcknowledgement()
            end?.expectSilence()
        }
    }

    /// Plans what keep-alive finds if the stall outlives it. Probes over a network that answers change nothing and are
    /// not simulated.
    func expectSilence() {
        guard self.life == .established, self.family == .tcp, let patience = self.keepAlivePatience else { return }
        let heard = self.lastHeard
        let verdict = max(heard.advanced(by: patience), self.network.now)
        guard verdict < self.pathStalledUntil else { return }
        self.network.planPatiently(at: verdict) { [weak self] in
            guard let self, self.life == .established, self.isPathStalled else { return }
            // Keep-alive rests while bytes are under way: those have a limit of their own.
            guard self.outbound.isEmpty else { return }
            // The peer was heard meanwhile, or the options are others: whose verdict this was.
            guard self.lastHeard == heard, self.keepAlivePatience == patience else { return self.expectSilence() }
            self.timeOut()
        }
    }

    /// From the last sign of life to the verdict; a user timeout takes the place of the number of probes (tcp(7)).
    private var keepAlivePatience: Duration? {
        guard let idle = self.options.keepAliveIdle else { return nil }
        let interval = max(self.options.keepAliveInterval, .seconds(1))
        guard let limit = self.options.userTimeout else {
            return idle + interval * Int(max(1, self.options.keepAliveProbes))
        }
        var patience = idle + interval
        if patience < limit {
            let missing = (limit - patience).clampedNanoseconds
            let step = interval.clampedNanoseconds
            patience += interval * Int(missing / step + (missing % step == 0 ? 0 : 1))
        }
        return patience
    }
}
