import ByteKernels

extension SocketConnection {
    package var queuedBytes: Int {
        self.queue.count + (self.loop.scratch.owner === self ? self.loop.scratch.count : 0)
    }

    var takesOutput: Bool {
        self.output == .open && self.life == .open
    }

    package func write(_ bytes: RawSpan) {
        guard self.takesOutput, bytes.byteCount > 0 else { return }
        self.write(reserving: bytes.byteCount) { target in
            target.copy(bytes, at: 0)
            return bytes.byteCount
        }
    }

    package func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) {
        guard self.takesOutput, count > 0 else { return }
        guard self.claimScratch(count) else { return self.queueFilled(count, fill) }
        let start = self.loop.scratch.count
        let used = self.loop.scratch.buffer.lend(start..<(start + count)) { max(0, min(count, fill(&$0))) }
        self.loop.scratch.count = start + used
        self.writtenBytes &+= UInt64(used)
    }

    private func queueFilled(_ count: Int, _ fill: (inout MutableRawSpan) -> Int) {
        var piece = [UInt8](repeating: 0, count: count)
        let used = piece.withMutableRawSpan { max(0, min(count, fill(&$0))) }
        piece.removeLast(count - used)
        self.writtenBytes &+= UInt64(used)
        self.queue.append(piece)
        self.endTurnLater()
    }

    /// Makes room for `count` bytes in the loop's scratch, if this connection may use it: nothing of its own waits
    /// before.
    func claimScratch(_ count: Int) -> Bool {
        guard self.queue.isEmpty else { return false }
        if let owner = self.loop.scratch.owner, owner !== self { owner.flushScratch() }
        if self.loop.scratch.room < count {
            self.flushScratch()
            guard self.queue.isEmpty, count <= self.loop.scratch.buffer.capacity, self.takesOutput else { return false }
        }
        if self.loop.scratch.owner == nil {
            self.loop.scratch.owner = self
            self.endTurnLater()
        }
        return true
    }

    package func writeThrough(_ bytes: RawSpan) {
        guard self.takesOutput, bytes.byteCount > 0 else { return }
        if self.loop.scratch.owner === self { self.flushScratch() }
        self.writtenBytes &+= UInt64(bytes.byteCount)
        guard self.takesOutput else { return }
        self.sendOrQueue(bytes)
    }

    func sendOrQueue(_ bytes: RawSpan) {
        guard self.queue.isEmpty else { return self.queue.append(bytes) }
        let taken = self.loop.system.send(self.descriptor, bytes)
        if taken >= 0 { self.sentBytes &+= UInt64(taken) }
        guard taken < bytes.byteCount else { return }
        if taken < 0, !self.mayRetry(taken) { return }
        self.queue.append(bytes.extracting(max(0, taken)..<bytes.byteCount))
        self.updateInterest()
    }

    /// Sends what this turn gathered in the loop's scratch.
    func flushScratch() {
        guard self.loop.scratch.owner === self else { return }
        let count = self.loop.scratch.count
        self.loop.scratch.owner = nil
        self.loop.scratch.count = 0
        guard count > 0, self.isLive else { return }
        self.loop.scratch.buffer.read(0..<count) { self.sendOrQueue($0) }
    }

    package func awaitProgress() {
        guard self.life == .open, !self.owesProgress else { return }
        self.owesProgress = true
        self.endTurnLater()
    }

    func drainQueue() {
        guard !self.queue.isEmpty else { return }
        let taken = self.queue.drain { self.loop.system.send(self.descriptor, pieces: $0, skipping: $1) }
        if taken < 0 {
            _ = self.mayRetry(taken)
            return
        }
        self.sentBytes &+= UInt64(taken)
        if case .closing(let linger) = self.life { self.armCloseTimer(linger) }
        self.updateInterest()
        if self.life == .open { self.consumer?.outputProgressed() }
        self.endTurnLater()
    }

    /// - Returns: whether the send merely has to wait. Otherwise the output is broken; the end is told once what the
    ///   peer sent before was read.
    func mayRetry(_ result: Int) -> Bool {
        let error = SystemError(Int32(truncatingIfNeeded: -result))
        if error == .wouldBlock || error == .interrupted || error == .noBuffers { return true }
        self.output = .broken
        self.queue.removeAll()
        switch error {
        case .reset, .brokenPipe:
            self.sawReset = true
            if !self.reads { self.end(.failed(.reset)) }
        case .timedOut: self.end(.failed(.peerUnresponsive))
        default: self.end(.failed(.system(error)))
        }
        return false
    }

    package func shutdownOutput() {
        guard self.takesOutput else { return }
        self.output = .finishing
        self.endTurnLater()
    }
}
