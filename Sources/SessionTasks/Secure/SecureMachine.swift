import StreamTransport

/// State of TLS over a transport: its handshake, its two directions, its input, its end. Takes events and returns actions
/// for the connection below.
///
/// - Before the handshake is over nothing is offered; its new owner then resumes.
/// - close_notify ends one direction only.
/// - The first failure wins. It is reported once, at the end of a turn.
package struct SecureMachine: Equatable, Sendable {
    package enum Phase: Hashable, Sendable {
        case handshaking
        /// The handshake waits for a decision of the connection's owner. Nothing is read meanwhile, and no time counts.
        case awaitingDecision
        case established
        /// The connection below was closed or reset; its end is to come.
        case closing
        /// To be reported.
        case failed(TransportFailure)
        case ended
    }

    package enum Direction: Hashable, Sendable {
        case open
        /// After close_notify, or after a request to send it.
        case finished
    }

    package private(set) var phase = Phase.handshaking
    package private(set) var input = Direction.open
    package private(set) var output = Direction.open
    package private(set) var gate = InputGate.paused
    package private(set) var early = EarlyData.none

    /// Early data of TLS 1.3, whose owner has the connection before its handshake is over.
    package enum EarlyData: Hashable, Sendable {
        case none
        /// The first output is sent with the first message of the handshake.
        /// - Parameter isReading: the owner wants input.
        case preparing(isReading: Bool)
        /// Until the handshake is over further output is kept.
        case sent(isReading: Bool)
    }

    package init() {}

    // MARK: What the state permits

    package var isEstablished: Bool {
        if case .established = self.phase { true } else { false }
    }

    package var isShakingHands: Bool {
        switch self.phase {
        case .handshaking, .awaitingDecision: true
        case .established, .closing, .failed, .ended: false
        }
    }

    /// Whether plaintext may be written; until the handshake is over it is kept.
    package var acceptsOutput: Bool {
        guard case .open = self.output else { return false }
        return self.isEstablished || self.isShakingHands
    }

    /// Whether the next record is decrypted: during the handshake, and while its plaintext may be offered.
    package var decrypts: Bool {
        switch self.phase {
        case .handshaking, .awaitingDecision: true
        case .established: self.gate.isOffering && self.gate.isReading
        case .closing, .failed, .ended: false
        }
    }
}

/// The handshake.
extension SecureMachine {
    package enum CompletionAction: Hashable, Sendable {
        /// The handshake was over before.
        case ignore
        /// Pause the connection below until its new owner resumes.
        case handOver
        /// The owner has the connection already. Pause the connection below, and if the owner wants input resume.
        case proceed(isReading: Bool)
    }

    package mutating func handshakeCompleted() -> CompletionAction {
        guard self.isShakingHands else { return .ignore }
        self.phase = .established
        switch self.early {
        case .none: return .handOver
        case .preparing(let isReading), .sent(let isReading):
            self.early = .none
            return .proceed(isReading: isReading)
        }
    }

    /// The owner gets the connection before the handshake.
    package mutating func earlyDataBegan() {
        guard self.isShakingHands, case .none = self.early else { return }
        self.early = .preparing(isReading: false)
    }

    /// - Returns: whether the handshake is to begin.
    package mutating func earlyDataSent() -> Bool {
        guard self.isShakingHands, case .preparing(let isReading) = self.early else { return false }
        self.early = .sent(isReading: isReading)
        return true
    }

    package var preparesEarlyData: Bool {
        if case .preparing = self.early { self.isShakingHands } else { false }
    }

    private mutating func setEarlyReading(_ isReading: Bool) {
        switch self.early {
        case .none: break
        case .preparing: self.early = .preparing(isReading: isReading)
        case .sent: self.early = .sent(isReading: isReading)
        }
    }

    /// - Returns: whether the connection below is to be paused, and the handshake's timer to be stopped.
    package mutating func decisionRequested() -> Bool {
        guard case .handshaking = self.phase else { return false }
        self.phase = .awaitingDecision
        return true
    }

    package enum DecisionAction: Hashable, Sendable {
        /// The handshake is over.
        case ignore
        case proceed
        /// Resume the connection below and start the timer again.
        case resumeAndProceed
    }

    package mutating func decisionMade() -> DecisionAction {
        switch self.phase {
        case .handshaking: return .proceed
        case .awaitingDecision:
            self.phase = .handshaking
            return .resumeAndProceed
        case .established, .closing, .failed, .ended: return .ignore
        }
    }
}

/// Input.
extension SecureMachine {
    /// - Returns: whether the connection below is to be paused too.
    package mutating func pause() -> Bool {
        guard self.isEstablished else {
            self.setEarlyReading(false)
            return false
        }
        self.gate.pause()
        return true
    }

    package enum ResumeAction: Hashable, Sendable {
        case ignore
        /// Resume the connection below.
        case read
        /// Call `turnBegan` in the next turn.
        case requestTurn
    }

    /// Bytes already decrypted or received are offered before the connection below is read.
    package mutating func resume() -> ResumeAction {
        guard self.isEstablished else {
            self.setEarlyReading(true)
            return .ignore
        }
        switch self.gate.resume(keepsBytes: true) {
        case .ignore: return .ignore
        // A turn that was requested reads afterwards.
        case .read: return self.gate.isOffering ? .read : .ignore
        case .readAndRequestTurn: return .requestTurn
        }
    }

    /// New input is decrypted and offered, if the consumer accepts any.
    package mutating func offerBegan() {
        self.gate.offerBegan()
    }

    package mutating func turnBegan() -> InputGate.TurnAction {
        self.gate.turnBegan()
    }

    package mutating func offerEnded(leavesBytes: Bool, budgetIsSpent: Bool) -> InputGate.OfferAction {
        self.gate.offerEnded(leavesBytes: leavesBytes, budgetIsSpent: budgetIsSpent)
    }

    /// The peer's close_notify was received.
    /// - Returns: whether the consumer is to be notified.
    package mutating func closeNotifyReceived() -> Bool {
        guard case .open = self.input else { return false }
        self.input = .finished
        return self.isEstablished
    }

    package enum InputEndAction: Hashable, Sendable {
        /// close_notify was received before.
        case ignore
        /// The peer closed during the handshake.
        case failHandshake
        /// Bytes may be missing.
        case failTruncated
    }

    /// The connection below has no more input.
    package func lowerInputClosed() -> InputEndAction {
        guard case .open = self.input else { return .ignore }
        return self.isShakingHands ? .failHandshake : .failTruncated
    }
}

/// Output and the end.
extension SecureMachine {
    /// - Returns: whether close_notify is to be sent now.
    package mutating func shutdownOutput() -> Bool {
        guard self.acceptsOutput else { return false }
        self.output = .finished
        return self.isEstablished
    }

    /// The connection below is closed, after `shutdownOutput`, or reset.
    /// - Returns: whether it was not before, nor has failed.
    package mutating func close() -> Bool {
        guard self.isEstablished || self.isShakingHands else { return false }
        self.phase = .closing
        self.output = .finished
        self.gate.close()
        return true
    }

    /// - Returns: whether this is the failure to report, with `takeFailure`.
    package mutating func fail(_ failure: TransportFailure) -> Bool {
        switch self.phase {
        case .handshaking, .awaitingDecision, .established, .closing: self.phase = .failed(failure)
        case .failed, .ended: return false
        }
        self.gate.close()
        return true
    }

    /// - Returns: the failure, once, if there is one.
    package mutating func takeFailure() -> TransportFailure? {
        guard case .failed(let failure) = self.phase else { return nil }
        self.phase = .ended
        return failure
    }

    /// The connection below has ended.
    /// - Returns: whether this is to be reported.
    package mutating func lowerEnded() -> Bool {
        switch self.phase {
        case .handshaking, .awaitingDecision, .established, .closing: break
        // The failure was first.
        case .failed, .ended: return false
        }
        self.phase = .ended
        self.gate.close()
        return true
    }
}
