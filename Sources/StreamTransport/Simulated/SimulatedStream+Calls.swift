/// The system calls on a connection, with the answers that Linux gives.
extension SimulatedStream {
    func receive(into buffer: inout MutableRawSpan) -> Int {
        guard !self.received.isEmpty else { return self.receiveNothing() }
        guard buffer.byteCount > 0 else { return 0 }
        guard !self.network.chance.happens(self.network.faults.spuriousWouldBlock) else {
            return SystemError.wouldBlock.asResult
        }
        var count = min(buffer.byteCount, self.received.count)
        if self.network.chance.happens(self.network.faults.shortRead) {
            count = self.network.chance.count(in: 1...count)
        }
        self.received.take(count, into: &buffer)
        self.network.note(.received, self.number, count)
        self.openWindow()
        return count
    }

    private func receiveNothing() -> Int {
        if self.finArrived { return 0 }
        if self.error != 0 { return -Int(self.takeError()) }
        return self.inputShut ? 0 : SystemError.wouldBlock.asResult
    }

    private func openWindow() {
        guard let sender = self.peer else { return }
        if self.family == .unix { return sender.watchers.notify() }
        guard sender.awaitsWindow else { return }
        sender.awaitsWindow = false
        self.network.plan(after: self.latency) { sender.deliver() }
    }

    /// - Parameter append: copies the first `count` bytes to the end of the queue given.
    func send(_ count: Int, _ append: (inout ByteQueue, Int) -> Void) -> Int {
        guard self.life != .connecting else { return SystemError.wouldBlock.asResult }
        if self.error != 0, self.family == .tcp { return -Int(self.takeError()) }
        guard !self.outputShut, self.family == .tcp || self.peer != nil else { return SystemError.brokenPipe.asResult }
        guard count > 0 else { return 0 }
        var taken = min(count, self.roomForOutput)
        guard taken > 0, !self.network.chance.happens(self.network.faults.spuriousWouldBlock) else {
            return SystemError.wouldBlock.asResult
        }
        if self.network.chance.happens(self.network.faults.shortWrite) {
            taken = self.network.chance.count(in: 1...taken)
        }
        self.network.note(.sent, self.number, taken)
        if self.family == .unix, let receiver = self.peer {
            append(&receiver.received, taken)
            receiver.watchers.notify()
        } else {
            append(&self.outbound, taken)
            self.transmit(taken)
        }
        return taken
    }

    func shutdownOutput() -> SystemError? {
        guard self.life == .established else { return .notConnected }
        guard !self.outputShut else { return nil }
        self.outputShut = true
        self.network.note(.finSent, self.number, 0)
        if self.family == .unix {
            self.peer?.inputShut = true
            self.peer?.watchers.notify()
        } else {
            self.transmitFIN()
        }
        self.watchers.notify()
        return nil
    }

    func shutdownInput() -> SystemError? {
        guard self.life == .established else { return .notConnected }
        self.inputShut = true
        self.network.note(.inputShut, self.number, 0)
        if self.family == .unix {
            self.peer?.outputShut = true
            self.peer?.watchers.notify()
        }
        self.watchers.notify()
        return nil
    }

    /// The last descriptor is gone. Bytes that the kernel took still arrive; bytes that nobody read are answered with a
    /// reset (RFC 2525 §2.17), which Linux does for both families.
    func close() {
        self.isOrphan = true
        let unread = !self.received.isEmpty
        self.received.removeAll()
        self.network.note(.closed, self.number, unread ? 1 : 0)
        switch (self.life, self.family) {
        case (.over, _): break
        case (.connecting, _): self.life = .over
        case (.established, .unix): self.closeUnix(unread: unread)
        case (.established, .tcp) where unread: self.sendReset()
        case (.established, .tcp): _ = self.shutdownOutput()
        }
        self.severIfDone()
    }

    private func closeUnix(unread: Bool) {
        self.life = .over
        self.peer?.endedByUnixPeer(unread ? .reset : nil)
        self.sever()
    }

    private func endedByUnixPeer(_ failure: SystemError?) {
        self.life = .over
        self.inputShut = true
        self.outputShut = true
        self.error = failure?.number ?? 0
        self.watchers.notify()
    }

    /// Closes with a reset. On a Unix socket there is no such thing, and it is a close.
    func reset() {
        guard self.family == .tcp, self.life == .established else { return self.close() }
        self.isOrphan = true
        self.received.removeAll()
        self.network.note(.closed, self.number, 2)
        self.sendReset()
    }
}

extension SystemError {
    /// As a transfer's result: negated.
    var asResult: Int {
        -Int(self.number)
    }
}
