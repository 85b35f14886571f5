import StreamTransport

/// State of an upgraded HTTP connection as a transport: its input, its end. Takes events and returns actions for the NIO
/// channel below.
package struct UpgradedMachine: Equatable, Sendable {
    package enum Input: Hashable, Sendable {
        case idle
        /// A read was requested, and its bytes have not arrived.
        case requested
        case finished
        /// The consumer was notified of the end.
        case reported
    }

    package enum State: Hashable, Sendable {
        case open
        case outputFinished
        /// Both directions finished and the channel is gone, but the consumer has not taken all input or not closed.
        case disconnected
        /// The channel was closed or reset; its end is to come.
        case closing
        /// To be reported, behind the input that came before.
        case ending(TransportEnd)
        case ended
    }

    package private(set) var state = State.open
    package private(set) var input = Input.idle
    package var gate = InputGate.paused

    package init() {}

    package var acceptsOutput: Bool {
        if case .open = self.state { true } else { false }
    }

    package var hasEnded: Bool {
        if case .ended = self.state { true } else { false }
    }
}

/// Input.
extension UpgradedMachine {
    /// - Parameter keepsBytes: received bytes were not offered, or left.
    package mutating func resume(keepsBytes: Bool) -> InputGate.ResumeAction {
        self.gate.resume(keepsBytes: keepsBytes || self.input == .finished)
    }

    /// The turn that was requested has come. Before the end a consumer that paused gets its last offer.
    package mutating func turnBegan() -> InputGate.TurnAction {
        if case .ending = self.state { _ = self.gate.resume(keepsBytes: true) }
        return self.gate.turnBegan()
    }

    /// - Returns: whether a read is to be requested of the channel.
    package mutating func requestRead() -> Bool {
        guard self.gate.admitsInput, case .idle = self.input else { return false }
        self.input = .requested
        return true
    }

    /// The bytes of a requested read arrived, or those that followed the head of an HTTP message.
    package mutating func bytesArrived() {
        if case .requested = self.input { self.input = .idle }
    }

    package mutating func peerFinished() {
        switch self.input {
        case .idle, .requested: self.input = .finished
        case .finished, .reported: break
        }
    }

    /// All received bytes were taken.
    /// - Returns: whether the consumer is to be notified of the end of input now.
    package mutating func reportInputEnd() -> Bool {
        guard case .finished = self.input, !self.gate.isClosed else { return false }
        self.input = .reported
        return true
    }
}

/// Output and the end.
extension UpgradedMachine {
    /// - Returns: whether this was new.
    package mutating func shutdownOutput() -> Bool {
        guard self.acceptsOutput else { return false }
        self.state = .outputFinished
        return true
    }

    package enum CloseAction: Hashable, Sendable {
        case ignore
        /// Close or reset the channel.
        case closeChannel
        /// The channel is gone: report the end in the next turn.
        case requestTurn
    }

    /// - Parameter end: the end to report if the channel is gone already.
    package mutating func close(_ end: TransportEnd) -> CloseAction {
        self.gate.close()
        switch self.state {
        case .open, .outputFinished, .closing:
            self.state = .closing
            return .closeChannel
        case .disconnected:
            self.state = .ending(end)
            return .requestTurn
        case .ending, .ended: return .ignore
        }
    }

    package enum ChannelEndAction: Hashable, Sendable {
        case ignore
        /// Offer the input; the consumer has yet to close.
        case offerInput
        /// Offer the input even to a consumer that paused, then report the end.
        case offerInputAndEnd
    }

    package mutating func channelEnded(_ end: TransportEnd) -> ChannelEndAction {
        switch (self.state, end) {
        case (.outputFinished, .closed):
            self.state = .disconnected
            self.peerFinished()
            return .offerInput
        case (.open, .closed):
            self.peerFinished()
            self.state = .ending(end)
            return .offerInputAndEnd
        case (.open, _), (.outputFinished, _), (.closing, _):
            self.state = .ending(end)
            return .offerInputAndEnd
        case (.disconnected, _), (.ending, _), (.ended, _): return .ignore
        }
    }

    /// - Returns: the end, once, if it has come and no turn is requested to offer the input before it.
    package mutating func takeEnd() -> TransportEnd? {
        guard case .ending(let end) = self.state else { return nil }
        switch self.gate {
        case .awaitingTurn, .pausedAwaitingTurn: return nil
        case .open, .offering, .offeringPaused, .offeringResumed, .paused, .closed: break
        }
        self.state = .ended
        self.gate.close()
        return end
    }
}
