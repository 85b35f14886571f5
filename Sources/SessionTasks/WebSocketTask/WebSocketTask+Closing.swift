import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The closing handshake and the other ends, on the loop (RFC 6455 §7).
extension WebSocketTask {
    /// Sends a Close frame behind what was sent, and waits for the peer's for `closeTimeout`.
    /// - Parameters:
    ///   - code: `nil` sends an empty Close frame. A code that may not go over the wire is sent as 1000.
    ///   - reason: cut to 123 bytes at a character.
    package func close(_ code: CloseCode?, reason: [UInt8] = []) {
        switch self.phase {
        case .opening:
            self.cancelOnLoop()
        case .open:
            if let queues = self.queuesIfMade, !queues.outgoing.isEmpty {
                queues.outgoing.append(.init(number: self.nextNumber(), item: .close(code?.rawValue, reason)))
            } else {
                self.beginClose(code?.rawValue, reason: reason)
            }
        case .closing, .draining, .ended:
            break
        }
    }

    func beginClose(_ code: UInt16?, reason: [UInt8]) {
        guard self.phase == .open else { return }
        self.sendClose(code.map(CloseCode.init(rawValue:)), reason: reason)
        self.phase = .closing
        // A relay that stopped reading because its other side is behind goes on when that has caught up.
        if self.relay == nil { self.wantsReading = true }
        self.readingStopped = false
        self.updateReading()
        self.waitForClose()
        self.processDeferredEnd()
    }

    /// The peer's time to answer. It begins anew whenever some of what stands before our Close frame has left; where a
    /// relay bounds the closing by itself, also with all that the peer still has to say before its own.
    func waitForClose() {
        self.loop.arm(self.timer, after: self.options.closeTimeout, target: self)
    }

    private func sendClose(_ code: CloseCode?, reason: [UInt8]) {
        self.sendControl(.close, ClosePayload.encode(code, reason: reason))
        self.publishClose(code, reason: reason)
    }

    /// The first Close frame says why the connection ends; the other one only answers it.
    private func publishClose(_ code: CloseCode?, reason: [UInt8]) {
        self.publish {
            guard $0.closeCode == nil else { return }
            $0.closeCode = code ?? .noStatusReceived
            $0.closeReason = reason.isEmpty ? nil : reason
        }
    }

    func closeReceived(_ code: CloseCode?, reason: [UInt8]) {
        self.closeCameFromPeer = true
        self.reportPeerClose(code, reason: reason)
        self.publishClose(code, reason: reason)
        let wasOpen = self.phase == .open
        self.phase = .draining
        // No ping is due any more; whoever answers the Close bounds the wait.
        self.loop.disarm(self.timer)
        if self.relay == nil {
            self.queuesIfMade?.closeObserver?(code, reason)
            self.failReceivers(.closed)
        }
        self.mustAnswerClose = wasOpen
        let answers = self.relay?.peerClosed(code, reason: reason) ?? true
        guard wasOpen else { return self.endTransport() }
        if answers { self.answerClose(code, reason: []) }
    }

    /// Answers the peer's Close frame and ends the connection, behind what was sent (RFC 6455 §5.5.1). Only after
    /// `peerClosed`.
    package func answerClose(_ code: CloseCode?, reason: [UInt8]) {
        guard self.phase == .draining, self.mustAnswerClose, self.transport != nil else { return }
        self.mustAnswerClose = false
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

    /// Fails the connection with this code: what a relay orders when its other side failed.
    package func fail(with code: CloseCode, reason: [UInt8]) {
        guard self.phase == .open else { return self.reset() }
        self.failure = self.failure ?? .cancelled
        self.end(sending: code, reason: reason)
    }

    func end(sending code: CloseCode?, reason: [UInt8]) {
        // Inside a frame a Close would be payload.
        guard !self.isInsideFrame else { return self.reset() }
        if self.phase == .open { self.sendClose(code, reason: reason) }
        self.phase = .draining
        self.transport?.close(linger: .seconds(2))
        self.finish()
    }

    /// Ends at once with a reset, without a Close frame: an abnormal closure for the peer.
    package func reset() {
        guard self.phase != .ended else { return }
        self.failure = self.failure ?? .cancelled
        self.transport?.reset()
        self.finish()
    }

    package func cancelOnLoop() {
        guard self.phase != .ended else { return }
        self.record.state = .canceling
        self.failure = .cancelled
        if self.phase == .opening {
            self.transport?.reset()
            self.finish()
        } else {
            self.end(sending: nil, reason: [])
        }
    }

    // MARK: Behind a message

    /// How long a message may be in hand before what came behind it ends the connection all the same.
    private static let receiverTimeout = Duration.seconds(1)

    /// Acts on what ends the connection. While somebody has a message before it in hand it is held, so that the message
    /// can still be answered: what came in one segment must not be treated otherwise than what came one after the other.
    func endCame(_ end: DeferredEnd) {
        guard self.phase == .open, self.relay == nil, let queues = self.queuesIfMade, queues.inbox.isBehind else {
            return self.act(on: end)
        }
        queues.heldEnd = end
        self.hasDeferredEnd = true
        if case .close(let code, let reason) = end { self.publishClose(code, reason: reason) }
        self.updateReading()
        self.waitForReceivers()
    }

    func waitForReceivers() {
        self.loop.arm(self.timer, after: Self.receiverTimeout, target: self)
    }

    func processDeferredEnd() {
        guard self.hasDeferredEnd, let queues = self.queuesIfMade, let end = queues.heldEnd else { return }
        self.hasDeferredEnd = false
        queues.heldEnd = nil
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
    package func timerFired(_ timer: LoopTimer) {
        switch self.phase {
        case .opening: self.openingTimedOut()
        case .open: self.hasDeferredEnd ? self.processDeferredEnd() : self.keepAliveDue()
        // A relay that is behind does not let the peer come to its Close.
        case .closing where self.relay != nil && !self.wantsReading: self.waitForClose()
        case .closing:
            self.failure = self.failure ?? .peerUnresponsive
            self.transport?.reset()
            self.finish()
        // How long the peer's Close may wait for its answer is the relay's to bound.
        case .draining where self.mustAnswerClose: break
        case .draining where self.isInsideFrame: self.reset()
        case .draining:
            self.transport?.close(linger: .zero)
            self.finish()
        case .ended: break
        }
    }
}
