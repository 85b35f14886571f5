import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The closing handshake and the other ends, on the loop (RFC 6455 §7).
extension WebSocketTask {
    /// Sends a Close frame after everything sent before, and waits `closeTimeout` for the peer's. A peer that takes nothing
    /// of what comes before it for as long is given up. Ends a suspension, in which the answer would not be read.
    /// - Parameters:
    ///   - code: `nil` sends an empty Close frame. A code that must not be sent becomes 1000.
    ///   - reason: cut to 123 bytes at a character.
    package func close(_ code: CloseCode?, reason: [UInt8] = []) {
        self.loop.assertOnLoop()
        switch self.machine.phase {
        case .opening:
            self.cancelOnLoop()
        case .open:
            guard !self.isCloseQueued else { return }
            self.endSuspension()
            if let queues = self.queuesIfMade, !queues.outgoing.isEmpty {
                queues.outgoing.append(.init(number: self.nextNumber(), item: .close(code?.rawValue, reason)))
                self.waitForClose()
            } else {
                self.beginClose(code?.rawValue, reason: reason)
            }
        case .closing, .closeReceived, .draining, .ended:
            break
        }
    }

    func beginClose(_ code: UInt16?, reason: [UInt8]) {
        guard self.machine.beginClose(isRelayed: self.relay != nil) else { return }
        self.sendClose(code.map(CloseCode.init(rawValue:)), reason: reason)
        self.updateReading()
        self.waitForClose()
        self.processDeferredEnd()
    }

    /// Starts the peer's time to answer. It restarts whenever output ahead of our Close frame leaves and, if a relay
    /// limits the closing itself, with everything the peer still sends before its own.
    func waitForClose() {
        self.loop.arm(self.timer, after: self.options.closeTimeout, target: self)
    }

    private func sendClose(_ code: CloseCode?, reason: [UInt8]) {
        self.sendControl(.close, ClosePayload.encode(code, reason: reason))
        self.publishClose(code, reason: reason, byPeer: false)
    }

    /// The first Close frame says why the connection ends; the other one only answers it.
    private func publishClose(_ code: CloseCode?, reason: [UInt8], byPeer: Bool) {
        self.publish {
            guard $0.closeCode == nil else { return }
            $0.closeCode = code ?? .noStatusReceived
            $0.closeReason = reason.isEmpty ? nil : reason
            $0.isClosedByPeer = byPeer
        }
    }

    func closeReceived(_ code: CloseCode?, reason: [UInt8]) {
        let action = self.machine.closeReceived()
        guard action != .ignore else { return }
        self.reportPeerClose(code, reason: reason)
        self.publishClose(code, reason: reason, byPeer: true)
        // No more pings: the Close has its own deadline.
        self.loop.disarm(self.timer)
        if self.relay == nil {
            self.queuesIfMade?.closeObserver?(code, reason)
            self.failReceivers(.closed)
        }
        let answersNow = self.relay?.peerClosed(code, reason: reason) ?? true
        switch action {
        case .ignore: break
        case .answer: if answersNow { self.answerClose(code, reason: []) }
        case .endTransport: self.endTransport()
        }
    }

    /// Answers the peer's Close frame and ends the connection, after everything sent before (RFC 6455 §5.5.1). Only
    /// after `peerClosed`.
    package func answerClose(_ code: CloseCode?, reason: [UInt8]) {
        self.loop.assertOnLoop()
        guard self.transport != nil, self.machine.closeAnswered() else { return }
        self.sendControl(.close, ClosePayload.encode(code, reason: reason))
        self.endTransport()
    }

    /// The server ends the TCP connection first; the client waits for that, so that the server is not left with the
    /// waiting state (RFC 6455 §7.1.1).
    func endTransport() {
        // Our own Close has still to leave, and is given as long as the peer would have for its own.
        guard !self.awaitsFrameEnd else { return self.waitForClose() }
        guard let transport = self.transport else { return self.finish() }
        if self.engine.role == .server {
            transport.close(linger: self.options.closeTimeout)
            self.finish()
        } else {
            self.waitForClose()
            transport.resumeReading()
        }
    }

    /// Fails the connection: a Close frame with the rule's code, then the end, without waiting for an answer (RFC 6455
    /// §7.1.7).
    func fail(_ violation: PeerViolation) {
        let code = violation.closeCode
        if code == .messageTooBig {
            self.failure = .messageTooLong(limit: self.options.maximumMessageSize ?? 0)
        } else {
            self.failure = .protocolViolation(closeCode: code.rawValue, "\(violation.rule)")
        }
        self.end(sending: code, reason: [])
    }

    /// Fails the connection with this code: for a relay whose other side failed.
    package func fail(with code: CloseCode, reason: [UInt8]) {
        guard self.machine.isOpen else { return self.reset() }
        self.failure = self.failure ?? .cancelled
        self.end(sending: code, reason: reason)
    }

    func end(sending code: CloseCode?, reason: [UInt8]) {
        switch self.machine.failureAction {
        case .reset: return self.reset()
        case .sendClose: self.sendClose(code, reason: reason)
        case .endTransport: break
        }
        self.transport?.close(linger: .seconds(2))
        self.finish()
    }

    /// Ends at once with a reset, without a Close frame: an abnormal closure for the peer.
    package func reset() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        self.failure = self.failure ?? .cancelled
        self.transport?.reset()
        self.finish()
    }

    package func cancelOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        self.record.state = .canceling
        self.failure = .cancelled
        if self.machine.isOpening {
            self.transport?.reset()
            self.finish()
        } else {
            self.end(sending: nil, reason: [])
        }
    }

    // MARK: Deferred ends

    /// How long the end may wait for the receiver of the last message before it.
    private static let receiverTimeout = Duration.seconds(1)

    /// Processes an end of the connection. It is deferred while a receiver handles a message that came before, so that
    /// the message can still be answered: whether both came in one segment must make no difference.
    func endReceived(_ end: DeferredEnd) {
        guard self.relay == nil, let queues = self.queuesIfMade, queues.inbox.isBehind, self.machine.deferEnd() else {
            return self.act(on: end)
        }
        queues.heldEnd = end
        if case .close(let code, let reason) = end { self.publishClose(code, reason: reason, byPeer: true) }
        self.updateReading()
        self.waitForReceivers()
    }

    func waitForReceivers() {
        self.loop.arm(self.timer, after: Self.receiverTimeout, target: self)
    }

    func processDeferredEnd() {
        guard self.machine.takeDeferredEnd(), let end = self.queuesIfMade?.heldEnd.take() else { return }
        self.act(on: end)
    }

    private func act(on end: DeferredEnd) {
        switch end {
        case .close(let code, let reason): self.closeReceived(code, reason: reason)
        case .violation(let violation): self.fail(violation)
        }
    }
}

extension WebSocketTask: TimerTarget {
    private func giveUp() {
        self.failure = self.failure ?? .peerUnresponsive
        self.transport?.reset()
        self.finish()
    }

    package func timerFired(_ timer: LoopTimer) {
        if self.machine.isOpen, self.isCloseQueued { return self.giveUp() }
        switch self.machine.timerFired(isRelayed: self.relay != nil) {
        case .ignore: break
        case .timeOutOpening: self.openingTimedOut()
        case .keepAlive: self.keepAliveDue()
        case .processDeferredEnd: self.processDeferredEnd()
        case .waitOn: self.waitForClose()
        case .giveUp: self.giveUp()
        case .reset: self.reset()
        case .endTransport:
            self.transport?.close(linger: .zero)
            self.finish()
        }
    }
}
