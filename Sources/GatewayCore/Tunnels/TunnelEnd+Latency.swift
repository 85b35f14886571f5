import StreamTransport

/// How long what one side reads takes until it has left on the other.
extension TunnelEnd {
    /// - Returns: when the read was that is made now, if this is one that is looked at.
    func readBegins() -> MonotonicInstant? {
        self.reads &+= 1
        guard self.reads % AddedLatency.interval == 1 else { return nil }
        let loop = self.link.loop
        return AddedLatency.shared(on: loop).isWanted ? loop.system.now() : nil
    }

    /// What was read at `readAt` is written to the other side.
    func passed(_ readAt: MonotonicInstant, to other: TunnelEnd) {
        let loop = self.link.loop
        let latency = AddedLatency.shared(on: loop)
        let queued = other.link.queuedBytes
        guard queued > 0 else { return latency.left(readAt, at: loop.system.now()) }
        latency.waits(other, readAt, until: other.link.sentBytes &+ UInt64(queued), at: loop.system.now())
        other.awaitsDeparture = true
        other.link.awaitProgress()
    }

    func lookForDeparture() {
        let loop = self.link.loop
        let sent = self.link.queuedBytes == 0 ? .max : self.link.sentBytes
        self.awaitsDeparture = AddedLatency.shared(on: loop).progressed(self, sent: sent, at: loop.system.now())
    }

    func forgetDepartures() {
        guard self.awaitsDeparture else { return }
        self.awaitsDeparture = false
        AddedLatency.shared(on: self.link.loop).forget(self)
    }
}
