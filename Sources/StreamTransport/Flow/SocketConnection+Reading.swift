import ByteKernels

extension SocketConnection {
    package func pauseReading() {
        self.paused = true
    }

    package func resumeReading() {
        guard self.paused, self.life == .open else { return }
        self.paused = false
        self.resumedWhileOffering = true
        if self.keptCount > 0 { self.offerKeptLater() }
        self.updateInterest()
    }

    func offerKeptLater() {
        self.owesKept = true
        guard !self.awaitsNextTurn else { return }
        self.awaitsNextTurn = true
        self.loop.inNextTurn(self)
    }

    func offerKept() {
        self.owesKept = false
        guard self.life == .open, !self.paused, self.keptCount > 0 else { return }
        let count = self.keptCount
        var bytes = self.takeKept()
        let total = bytes.count
        self.isOffering = true
        defer { self.isOffering = false }
        self.resumedWhileOffering = false
        let used = bytes.withMutableRawSpan {
            var offered = $0._mutatingExtracting((total - count)..<total)
            return self.told?.bytesReceived(&offered) ?? count
        }
        guard used < count, self.life == .open else { return }
        self.keep(bytes, last: count - max(0, used))
        self.offerLeftLater()
    }

    /// What a consumer left because its share of the turn was used up, or before a new owner resumed, comes again
    /// unasked; else it waits for what the consumer wants more of.
    private func offerLeftLater() {
        if self.resumedWhileOffering || self.loop.budgetIsSpent, !self.paused { self.offerKeptLater() }
    }

    func readOnce() {
        // What was left comes before what is new, and before the end: there may be no room beside it, and nothing comes
        // after the end. It is offered when all who are ready have had their turn.
        if self.owesKept { return }
        let start = self.keptCount
        let room = min(max(self.mostRead, 1), Loop.receiveCapacity - start)
        if self.readLong, self.passOn(atMost: room) { return }
        guard room > 0 else {
            // A consumer that neither takes nor pauses at a full buffer can never go on.
            assertionFailure("consumer left \(start) bytes without pausing")
            return self.end(.failed(.system(.noBuffers)))
        }
        let count = self.loop.receive(self.descriptor, at: start..<(start + room))
        if count > 0 {
            self.readLong = count >= self.loop.passesFrom
            self.offer(start + count, kept: start)
        } else if count == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -count)))
        }
    }

    func offer(_ total: Int, kept start: Int) {
        if case .closing = self.life { return }
        if start > 0 { self.putKeptInFront() }
        self.resumedWhileOffering = false
        self.isOffering = true
        let used = self.loop.offer(total, to: self.told)
        self.isOffering = false
        guard used < total, self.life == .open else { return }
        self.keep(self.loop.receiveBuffer.read(max(0, used)..<total) { [UInt8]($0) })
        self.offerLeftLater()
    }

    private func putKeptInFront() {
        let count = self.keptCount
        let before = self.takeKept()
        self.loop.receiveBuffer.lend(0..<count) { buffer in
            before.withRawSpan { buffer.copy($0.extracting((before.count - count)..<before.count), at: 0) }
        }
    }

    func inputEnded() {
        self.inputOpen = false
        if self.sawReset { return self.end(.failed(.reset)) }
        self.updateInterest()
        switch self.life {
        case .open: self.told?.inputClosed()
        case .closing: self.closeIfDone()
        case .ended, .told, .surrendered: break
        }
    }

    func readFailed(_ error: SystemError) {
        switch error {
        case .wouldBlock, .interrupted: break
        case .reset, .brokenPipe: self.end(.failed(.reset))
        case .timedOut: self.end(.failed(.peerUnresponsive))
        case .hostUnreachable, .networkUnreachable: self.end(.failed(.unreachable(error)))
        default: self.end(.failed(.system(error)))
        }
    }

    package func shutdownInput() {
        guard self.isLive, self.inputOpen, !self.refusesInput else { return }
        self.refusesInput = true
        self.keep([])
        // TCP cannot tell the peer (RFC 9293 §3.6), and would hide its FIN from us; on a Unix socket its writes fail.
        if case .unix = self.peerAddress { _ = self.loop.system.shutdownInput(self.descriptor) }
        self.updateInterest()
    }

    /// Whether what arrives is to be read.
    var reads: Bool {
        self.inputOpen && !self.paused && !(self.refusesInput && self.life == .open)
    }
}
