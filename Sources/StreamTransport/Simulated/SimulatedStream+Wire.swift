import DequeModule

/// What travels from one end of a TCP connection to the other.
///
/// Segments of one direction arrive in the order in which they were sent, each after the connection's latency and its
/// own jitter; a segment that finds the receiver's buffer full waits until it is read.
extension SimulatedStream {
    func transmit(_ count: Int) {
        var left = count
        while left > 0 {
            let size = min(left, max(1, self.network.chance.count(in: self.network.faults.segmentSize)))
            self.emit(Segment(bytes: size, arrival: self.nextArrival()))
            left -= size
        }
        if self.unacknowledgedSince == nil { self.unacknowledgedSince = self.network.now }
        self.awaitAcknowledgement()
        self.countTowardsReset(count)
    }

    func transmitFIN() {
        self.emit(Segment(bytes: nil, arrival: self.nextArrival()))
    }

    private func emit(_ segment: Segment) {
        self.segments.append(segment)
        self.network.plan(at: segment.arrival) { self.deliver() }
    }

    private func nextArrival() -> MonotonicInstant {
        var delay = self.latency + self.network.chance.duration(in: self.network.faults.jitter)
        if self.network.chance.happens(self.network.faults.stall) {
            let stall = self.network.chance.duration(in: self.network.faults.stallDuration)
            self.network.note(.stalled, self.number, Int(stall.clampedNanoseconds))
            delay += stall
        }
        self.lastArrival = max(self.lastArrival, self.network.now.advanced(by: delay))
        return self.lastArrival
    }

    private func countTowardsReset(_ count: Int) {
        guard let left = self.bytesUntilReset else { return }
        self.bytesUntilReset = left - count
        guard left < count, let peer = self.peer else { return }
        self.bytesUntilReset = nil
        let ends = [self, peer]
        self.network.plan(at: self.lastArrival) {
            for end in ends { end.resetArrived() }
        }
    }

    /// Hands over what has arrived.
    func deliver() {
        guard let receiver = self.peer, self.network.now >= self.stalledUntil else { return }
        while let segment = self.segments.first, segment.arrival <= self.network.now {
            guard let bytes = segment.bytes else {
                self.segments.removeFirst()
                receiver.finDidArrive()
                continue
            }
            guard receiver.takesInput else {
                self.segments.removeAll()
                return receiver.refuseInput()
            }
            let moved = min(bytes, receiver.receiveCapacity - receiver.received.count)
            guard moved > 0 else {
                self.network.note(.windowClosed, self.number, self.outbound.count)
                self.awaitsWindow = true
                break
            }
            self.hand(moved, of: bytes, to: receiver)
        }
        if let due = self.resetDue, due <= self.network.now {
            self.resetDue = nil
            receiver.resetArrived()
        }
        self.severIfDone()
    }

    private func hand(_ moved: Int, of bytes: Int, to receiver: SimulatedStream) {
        if moved == bytes {
            self.segments.removeFirst()
        } else {
            self.segments[0].bytes = bytes - moved
        }
        self.outbound.move(moved, to: &receiver.received)
        self.network.note(.arrived, receiver.number, moved)
        receiver.lastHeard = self.network.now
        self.acknowledged()
        receiver.watchers.notify()
    }

    /// Linux keeps taking bytes after `SHUT_RD` alone; with both directions shut, or closed, it answers them with a
    /// reset.
    private var takesInput: Bool {
        self.life == .established && !self.isOrphan && !(self.inputShut && self.outputShut)
    }

    private func refuseInput() {
        let wasOpen = self.life == .established && !self.isOrphan
        self.sendReset()
        guard wasOpen else { return }
        self.error = SystemError.reset.number
        self.watchers.notify()
    }

    private func finDidArrive() {
        guard self.life == .established else { return }
        self.network.note(.finArrived, self.number, 0)
        self.finArrived = true
        self.inputShut = true
        self.lastHeard = self.network.now
        self.watchers.notify()
    }

    /// Sends a reset after what is on its way already, and is over.
    func sendReset() {
        // Nothing is left to reset when both directions ended cleanly.
        let isFinished = self.outputShut && self.finArrived && self.outbound.isEmpty
        self.life = .over
        self.inputShut = true
        self.outputShut = true
        self.unacknowledgedSince = nil
        guard !isFinished, self.resetDue == nil else { return self.severIfDone() }
        self.network.note(.resetSent, self.number, 0)
        let due = self.nextArrival()
        self.resetDue = due
        self.network.plan(at: due) { self.deliver() }
    }

    /// Linux: refused while connecting, a broken pipe after the peer's FIN (only writes see it), else a reset.
    func resetArrived() {
        defer { self.sever() }
        guard self.life != .over else { return }
        self.network.note(.resetArrived, self.number, self.received.count)
        switch self.life {
        case .connecting: self.fail(.refused)
        case .established, .over: self.fail(self.finArrived && !self.outputShut ? .brokenPipe : .reset)
        }
    }

    /// Lets go of the other end once neither can tell the other anything.
    func severIfDone() {
        guard let peer = self.peer, self.isOrphan, peer.isOrphan else { return }
        let isQuiet = self.segments.isEmpty && peer.segments.isEmpty && self.resetDue == nil && peer.resetDue == nil
        if isQuiet { self.sever() }
    }
}
