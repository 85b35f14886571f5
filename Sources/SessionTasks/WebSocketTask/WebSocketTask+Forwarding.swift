import ByteKernels
import StreamTransport
import WebSocketProtocol

/// Data frames that go from one WebSocket to another as they are, on the loop. A frame may be under way for long, and
/// nothing of our own can be put inside it: pings, pongs and Close wait for its end.
extension WebSocketTask {
    /// Whether data frames of this connection mean the same on another: no extension was agreed, and none has come yet.
    package var mayForwardFrames: Bool {
        self.phase == .open && self.share == nil && self.engine.isBetweenMessages
    }

    /// From now on `relay` is given whole frames, and `forward` writes those of the other WebSocket. Only where
    /// `mayForwardFrames`.
    package func startForwarding(to relay: any FrameRelay) {
        self.relay = relay
        let sender: Role = self.role == .server ? .client : .server
        let input = FrameForwarder(
            from: sender, maximumMessageSize: self.options.maximumMessageSize, keys: self.keys)
        self.forwarding = FrameForwarding(relay, input: input)
    }

    /// Pulls frames out of `bytes` until they are used up, nobody wants more for now, or the task has had its share of the
    /// turn.
    func pullFrames(_ bytes: inout MutableRawSpan, _ forwarding: FrameForwarding) -> Int {
        var used = 0
        while used < bytes.byteCount, self.takesInput, !self.loop.budgetIsSpent {
            if let message = forwarding.input.nextWholeMessage(&bytes, at: &used) {
                self.record.countReceived(bytes: message.payloadCount, messages: 1, at: self.loop.now)
                self.tally.received(messageOf: message.payloadCount)
                self.pass(message, bytes.bytes.extracting(message.range), forwarding)
                continue
            }
            guard let event = forwarding.input.next(&bytes, at: &used) else { break }
            self.loop.spend(event.work)
            switch event {
            case .frames(let run):
                self.record.countReceived(bytes: run.payloadCount, messages: run.messageCount, at: self.loop.now)
                self.record.countMoreFramesReceived(run.frameCount - run.messageCount)
                if run.messageCount > 0 { self.tally.received(messageOf: run.payloadCount / run.messageCount) }
                self.pass(run, bytes.bytes.extracting(run.range), forwarding)
            case .ping(let payload):
                self.record.countMoreFramesReceived()
                self.answerPing(payload)
            case .pong(let payload):
                self.record.countMoreFramesReceived()
                self.pongReceived(payload)
            case .close(let code, let reason):
                self.record.countMoreFramesReceived()
                self.closeReceived(code, reason: reason)
            case .violation(let violation): self.fail(violation)
            }
        }
        return used
    }

    private func pass(_ run: FrameRun, _ bytes: RawSpan, _ forwarding: FrameForwarding) {
        if self.isTapped { self.tally.passed(self.record, .received, .frames, bytes) }
        forwarding.relay.received(run, bytes)
    }

    // MARK: Frames out

    /// Writes frames of the other WebSocket at once. Ignored unless the task is open or has yet to answer the peer's
    /// Close. While our own Close waits, only the rest of the frame that it waits for is written.
    /// - Parameter bytes: those of the run.
    /// - Returns: the bytes that wait in the transport now; 0 where it was ignored.
    package func forward(_ run: FrameRun, _ bytes: RawSpan) -> Int {
        guard let forwarding = self.forwarding, let transport = self.transport else { return 0 }
        if self.awaitsFrameEnd {
            guard let rest = run.rest else { return 0 }
            // A frame that goes on is waited for.
            self.waitForClose()
            return self.write(rest, bytes.extracting(0..<rest.range.count), forwarding, to: transport)
        }
        guard self.phase == .open || self.owesClose else { return 0 }
        return self.write(run, bytes, forwarding, to: transport)
    }

    private func write(
        _ run: FrameRun, _ bytes: RawSpan, _ forwarding: FrameForwarding, to transport: any Transport
    ) -> Int {
        if forwarding.ping != nil, transport.queuedBytes == 0 {
            let now = self.loop.now
            self.keepAlive?.asked(at: now)
        }
        let queued = transport.writeThrough(bytes)
        if self.isTapped { self.tally.passed(self.record, .sent, .frames, bytes) }
        self.record.countSent(bytes: run.payloadCount, messages: run.messageCount, at: self.loop.now)
        self.record.countMoreFramesSent(run.frameCount - run.messageCount)
        self.isInsideMessage = !run.endsMessage
        forwarding.isInsideFrame = !run.endsFrame
        if run.endsFrame, forwarding.holdsSome || self.queuesIfMade != nil { self.sendHeld(forwarding) }
        return queued
    }

    private func sendHeld(_ forwarding: FrameForwarding) {
        while let held = forwarding.popHeld() {
            self.sendControl(held.opcode, held.payload)
            switch held.opcode {
            case .ping: self.pingLeft()
            case .close: self.closeLeft()
            case .pong, .continuation, .text, .binary: break
            }
        }
        self.sendWaiting()
    }

    private func closeLeft() {
        switch self.phase {
        case .closing: self.waitForClose()
        case .draining: self.endTransport()
        case .opening, .open, .ended: break
        }
    }

    /// Whether a part of a frame went out whose rest is still to come.
    var isInsideFrame: Bool {
        self.forwarding?.isInsideFrame ?? false
    }

    /// Whether our Close waits for the rest of a frame.
    package var awaitsFrameEnd: Bool {
        self.forwarding?.close != nil
    }

    /// The other WebSocket is gone: a frame that it left unfinished will never end, and a Close that waits for that
    /// never leave.
    package func forwardingEnded() {
        if self.isInsideFrame, self.awaitsFrameEnd { self.reset() }
    }
}

extension ForwardingEvent {
    /// What it costs, in units of `TurnBudget`.
    fileprivate var work: Int {
        guard case .frames(let run) = self else { return TurnBudget.frame }
        return run.frameCount * TurnBudget.forwardedFrame + run.range.count
    }
}
