import ByteKernels

/// Bulk that goes from one socket to another without coming into the process, where nobody wants to see it.
extension SocketConnection {
    /// In place of a read.
    /// - Returns: whether it was one; else nothing happened.
    func passOn(atMost room: Int) -> Bool {
        guard self.life == .open, self.keptCount == 0, let consumer = self.told, let target = consumer.unseenTarget,
            target.mayTakePassed(on: self.loop)
        else { return false }
        guard let passed = self.loop.system.pass(self.descriptor, to: target.descriptor, atMost: room) else {
            return false
        }
        self.readLong = passed.received >= self.loop.passesFrom
        if passed.received > 0 {
            target.took(passed)
            consumer.passedUnseen(passed.received, queued: target.queuedBytes)
        } else if passed.received == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -passed.received)))
        }
        return true
    }

    /// Nothing may stand before what passes, neither in the queue nor in the loop's scratch.
    private func mayTakePassed(on loop: Loop) -> Bool {
        guard self.loop === loop else { return false }
        if loop.scratch.owner === self { self.flushScratch() }
        return self.waiting == 0 && self.takesOutput
    }

    /// Counts what passed, and queues what the kernel did not take.
    private func took(_ passed: PassedBytes) {
        self.written &+= UInt64(passed.received)
        self.countSent(max(0, passed.sent))
        guard passed.sent < passed.received else { return }
        let mayRetry = passed.sent >= 0 || self.mayRetry(passed.sent)
        var rest = passed.received - max(0, passed.sent)
        while rest > 0 {
            let count = self.loop.takePassed(atMost: rest)
            guard count > 0 else { break }
            rest -= count
            if mayRetry { self.queuePassed(count) }
        }
        // The system keeps what it was given; were that ever untrue, the peer must not take what follows for the whole.
        if rest > 0 { self.end(.failed(.system(.noBuffers))) }
        self.updateInterest()
    }

    private func queuePassed(_ count: Int) {
        self.loop.receiveBuffer.read(0..<count) { bytes in self.changeQueue { $0.append(bytes) } }
    }
}
