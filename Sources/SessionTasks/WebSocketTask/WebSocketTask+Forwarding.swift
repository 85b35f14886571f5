import ByteKernels
import StreamTransport
import WebSocketProtocol

/// Data frames that go from one WebSocket to another as they are, on the loop. A frame may take long to arrive, and
/// nothing of our own can be put inside it: pings, pongs and Close wait for its end.
extension WebSocketTask {
    /// Whether data frames of this connection mean the same on another: no extension was agreed, and none has come yet.
    package var mayForwardFrames: Bool {
        self.machine.isOpen && self.deflateContext == nil && self.engine.isBetweenMessages
    }

    /// From now on `relay` is given whole frames, and `forward` writes those of the other WebSocket. Only where
    /// `mayForwardFrames`.
    package func startForwarding(to relay: any FrameRelay) {
        self.loop.assertOnLoop()
        self.relay = relay
        let sender: Role = self.role == .server ? .client : .server
        let input = FrameForwarder(
            from: sender, maximumMessageSize: self.options.maximumMessageSize, keys: self.keys)
        self.forwarding = FrameForwarding(relay, input: input)
    }

    /// Forwards frames from `bytes` until they are used up, the consumer pauses, or the task has used its share of the
    /// turn.
    func pullFrames(_ bytes: inout MutableRawSpan, _ forwarding: FrameForwarding) -> Int {
        var used = 0
        while used < bytes.byteCount, self.machine.acceptsInput, !self.loop.budgetIsSpent {
            if let message = forwarding.input.nextWholeMessage(&bytes, at: &used) {
                self.record.countReceived(bytes: message.payloadCount, messages: 1, at: self.loop.now)
                self.metrics.received(messageOf: message.payloadCount)
                self.pass(message, bytes.bytes.extracting(message.range), forwarding)
                continue
            }
            guard let event = forwarding.input.next(&bytes, at: &used) else { break }
            self.loop.spend(event.work)
            switch event {
            case .frames(let run):
                self.record.countReceived(bytes: run.payloadCount, messages: run.messageCount, at: self.loop.now)
                self.record.countMoreFramesReceived(run.frameCount - run.messageCount)
                if run.messageCount > 0 { self.metrics.received(messageOf: run.payloadCount / run.messageCount) }
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
        if self.isTapped { self.metrics.recordPiece(self.record, .received, .frames, bytes) }
        forwarding.relay.received(run, bytes)
    }

    // MARK: Frames out

    /// Writes frames of the other WebSocket at once. Ignored unless the task is open or has yet to answer the peer's
    /// Close. While our own Close waits, only the rest of the frame that it waits for is written.
    /// - Parameter bytes: those of the run.
    /// - Returns: the bytes that wait in the transport now; 0 where it was ignored.
    package func forward(_ run: FrameRun, _ bytes: RawSpan) -> Int {
        self.loop.assertOnLoop()
        guard let forwarding = self.forwarding, let transport = self.transport else { return 0 }
        if self.awaitsFrameEnd {
            guard let rest = run.rest else { return 0 }
            // A forwarded frame extends the wait.
            self.waitForClose()
            return self.write(rest, bytes.extracting(0..<rest.range.count), forwarding, to: transport)
        }
        guard self.machine.acceptsData else { return 0 }
        return self.write(run, bytes, forwarding, to: transport)
    }

    private func write(
        _ run: FrameRun, _ bytes: RawSpan, _ forwarding: FrameForwarding, to transport: any Transport
    ) -> Int {
        if forwarding.ping != nil, transport.queuedBytes == 0 {
            let now = self.loop.now
            self.keepAlive?.responseExpected(at: now)
        }
        let queued = transport.writeThrough(bytes)
        if self.isTapped { self.metrics.recordPiece(self.record, .sent, .frames, bytes) }
        self.record.countSent(bytes: run.payloadCount, messages: run.messageCount, at: self.loop.now)
        self.record.countMoreFramesSent(run.frameCount - run.messageCount)
        self.machine.framesSent(endsFrame: run.endsFrame, endsMessage: run.endsMessage)
        if run.endsFrame, forwarding.hasDeferredFrames || self.queuesIfMade != nil { self.sendHeld(forwarding) }
        return queued
    }

    private func sendHeld(_ forwarding: FrameForwarding) {
        while let held = forwarding.popDeferred() {
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
        switch self.machine.phase {
        case .closing: self.waitForClose()
        case .draining: self.endTransport()
        case .opening, .open, .closeReceived, .ended: break
        }
    }

    /// Whether our Close waits for the rest of a frame.
    package var awaitsFrameEnd: Bool {
        self.forwarding?.close != nil
    }

    /// The other WebSocket is gone: a frame that it left unfinished will never end, and a Close that waits for that
    /// never leave.
    package func forwardingEnded() {
        if self.machine.isInsideFrame, self.awaitsFrameEnd { self.reset() }
    }
}

extension ForwardingEvent {
    /// Work in units of `TurnBudget`.
    fileprivate var work: Int {
        guard case .frames(let run) = self else { return TurnBudget.frame }
        return run.frameCount * TurnBudget.forwardedFrame + run.range.count
    }
}

/// State of a task that forwards data frames as they arrive: the relay that receives the peer's frames, and own control
/// frames that wait while a frame from the other WebSocket is partly sent. At most one control frame of each kind
/// waits.
final class FrameForwarding {
    let relay: any FrameRelay
    var input: FrameForwarder
    /// The answer to the latest Ping alone: a peer need not be answered more than that one (RFC 6455 §5.5.3).
    private(set) var pong: [UInt8]?
    private(set) var ping: [UInt8]?
    private(set) var close: [UInt8]?
    /// Whether any of the three waits.
    private(set) var hasDeferredFrames = false

    init(_ relay: any FrameRelay, input: FrameForwarder) {
        self.relay = relay
        self.input = input
    }

    /// Keeps a control frame for the end of the frame that is partly sent.
    func deferFrame(_ opcode: Opcode, _ payload: [UInt8]) {
        switch opcode {
        case .pong: self.pong = payload
        case .ping: self.ping = payload
        case .close: self.close = payload
        case .continuation, .text, .binary: return
        }
        self.hasDeferredFrames = true
    }

    /// Takes the next waiting frame in the order of sending; the Close is last, because nothing may follow it (RFC 6455
    /// §5.5.1).
    func popDeferred() -> (opcode: Opcode, payload: [UInt8])? {
        if let payload = self.pong.take() { return (.pong, payload) }
        if let payload = self.ping.take() { return (.ping, payload) }
        self.hasDeferredFrames = false
        return self.close.take().map { (.close, $0) }
    }
}

/// A relay between two WebSockets that receives data frames unchanged, header and payload, once the task forwards them.
package protocol FrameRelay: WebSocketRelay {
    /// Frames to be written to the other WebSocket unchanged. `bytes` are those of the run, valid only during the call.
    func received(_ run: FrameRun, _ bytes: RawSpan)
}

/// Position of a piece of payload in its message.
package struct FramePosition: Hashable, Sendable {
    package var kind: MessageKind
    /// The first piece of its message.
    package var startsMessage: Bool
    /// The last piece of its frame.
    package var endsFrame: Bool
    /// The last piece of its message.
    package var endsMessage: Bool
}

/// Payload forwarded as it arrives.
struct RelayedPayload: PayloadConsumer {
    let relay: any WebSocketRelay
    let transport: any Transport

    @inline(__always)
    func take(_ mark: FramePosition, _ payload: RawSpan, by task: WebSocketTask) {
        self.relay.received(mark, payload, by: task, over: self.transport)
    }
}

/// Takes a WebSocket's frames as they come, on its loop, in place of the task's queue of messages: no message is
/// assembled.
package protocol WebSocketRelay: OutputSource {
    /// The opening handshake is done; frames may be sent from now on.
    func webSocketOpened()
    /// Payload of a data frame, or a part of it, come by `task` over `transport`, which are given so that an answer need
    /// not look them up again. `bytes` are valid only during the call.
    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport)
    /// The peer's Close frame was received.
    /// - Returns: whether the task is to answer it at once (unless our Close had gone out before). A relay that says no
    ///   answers later with `answerClose`, or ends the task another way.
    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool
    /// The kernel took queued bytes.
    func outputProgressed()
    /// Called once, last.
    func webSocketEnded(_ end: WebSocketEnd)
}
