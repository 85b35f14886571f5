import GatewayConfiguration

/// State of one tunnel: two sides, two directions, one end. Takes events and returns actions for each side.
///
/// - A direction ends cleanly only if its source ended it: FIN, close_notify, an end mark, a regular Close. Any loss on
///   one side is a reset or an abnormal Close on the other.
/// - Between streams a finished direction is always carried as FIN or close_notify. Towards a WebSocket the half-close
///   policy decides.
/// - The first cause wins: later events change how the sides end, never the reason given.
package struct TunnelMachine: Hashable, Sendable {
    private enum SidePhase: Hashable, Sendable {
        case open
        /// WebSocket: we sent this Close and read until the peer's arrives.
        case closeSent(CloseSignal)
        /// WebSocket: its Close was forwarded to the other side, whose answer will be returned.
        case closeHeld(CloseSignal)
        /// An action ended this side; its transport has not ended yet.
        case ending
        case ended
    }

    private let halfClose: HalfClose
    private let kinds: TunnelSides<SideKind>
    private var phases = TunnelSides(downstream: SidePhase.open, upstream: SidePhase.open)
    /// By the side that a direction's bytes come from.
    private var directions = TunnelSides(downstream: TunnelDirection.open, upstream: TunnelDirection.open)
    /// Why the tunnel ends; `nil` until that is certain.
    package private(set) var termination: TerminationReason?
    /// The side that first finished a direction.
    private var firstFinisher: TunnelSide?
    private var closingTimerStarted = false

    package init(downstream: SideKind, upstream: SideKind, halfClose: HalfClose) {
        self.kinds = TunnelSides(downstream: downstream, upstream: upstream)
        self.halfClose = halfClose
    }

    package func kind(of side: TunnelSide) -> SideKind { self.kinds[side] }

    /// The direction whose bytes come from `side`.
    package func direction(from side: TunnelSide) -> TunnelDirection { self.directions[side] }

    /// Whether bytes read from `side` are forwarded to the other. Otherwise they are discarded, or are a violation
    /// (1002) if an end mark finished the direction.
    package func relays(from side: TunnelSide) -> Bool {
        switch self.phases[side.other] {
        // A side that sent Close may still receive pending data: our own Close is not sent yet.
        case .open, .closeHeld: self.directions[side] == .open
        case .closeSent, .ending, .ended: false
        }
    }

    /// Whether an empty binary message from `side` marks the end of its direction.
    package func watchesEndMark(from side: TunnelSide) -> Bool {
        self.halfClose == .signal && self.kinds[side] == .webSocket && self.kinds[side.other] == .stream
    }

    /// Both connections have ended.
    package var isOver: Bool {
        self.phases.downstream == .ended && self.phases.upstream == .ended
    }
}

/// Steps shared by the events.
extension TunnelMachine {
    /// Whether input from `side` is still used.
    private func isReading(_ side: TunnelSide) -> Bool {
        switch self.phases[side] {
        case .open, .closeSent: true
        case .closeHeld, .ending, .ended: false
        }
    }

    /// Adds an action for `side` and moves the side to the phase that follows.
    private mutating func issue(_ action: SideAction, _ side: TunnelSide, _ actions: inout TunnelActions) {
        actions[side] = action
        switch action {
        case .finishOutput, .sendEndMark: return
        case .sendClose(let signal), .sendEndMarkThenClose(let signal): self.phases[side] = .closeSent(signal)
        case .answerClose, .close, .fail, .reset: self.phases[side] = .ending
        }
        if !self.closingTimerStarted {
            self.closingTimerStarted = true
            actions.startsClosingTimer = true
        }
    }

    /// Ends `side` so that its peer sees an abnormal end, unless it is ending already.
    private mutating func end(_ side: TunnelSide, _ signal: CloseSignal, _ actions: inout TunnelActions) {
        switch (self.phases[side], self.kinds[side]) {
        case (.open, .webSocket): self.issue(.fail(signal), side, &actions)
        // A second Close may not be sent (RFC 6455 §5.5.1): without an answer the peer sees 1006.
        case (.open, .stream), (.closeSent, _): self.issue(.reset, side, &actions)
        // Echoing its own code would tell the peer that it received everything from the other side.
        case (.closeHeld, _): self.issue(.answerClose(signal), side, &actions)
        case (.ending, _), (.ended, _): break
        }
    }

    /// Sets the reason in the current phase, unless there is one.
    private mutating func recordTermination(_ party: TerminationParty, _ cause: TerminationCause) {
        guard self.termination == nil else { return }
        let isRelaying = self.phases.downstream == .open && self.phases.upstream == .open
        self.termination = TerminationReason(party, isRelaying ? .relaying : .closing, cause)
    }

    private mutating func fail(_ party: TerminationParty, _ cause: TerminationCause) {
        self.recordTermination(party, cause)
        for side in TunnelSide.allCases where self.directions[side] == .open {
            self.directions[side] = .failed
        }
    }

    private mutating func finishIfBothEnded(_ actions: inout TunnelActions) {
        guard self.isOver else { return }
        actions.termination = self.termination
    }
}

/// Clean ends of a direction.
extension TunnelMachine {
    /// The peer finished sending: FIN, under TLS after a close_notify. A WebSocket that does so without a Close is
    /// truncated.
    package mutating func inputFinished(_ side: TunnelSide) -> TunnelActions {
        guard self.kinds[side] == .stream else { return self.connectionFailed(side, .truncated) }
        return self.sourceFinished(side)
    }

    /// An empty binary message arrived. Does nothing unless `watchesEndMark`: it is then an ordinary message.
    package mutating func endMarkReceived(_ side: TunnelSide) -> TunnelActions {
        guard self.watchesEndMark(from: side) else { return .none }
        return self.sourceFinished(side)
    }

    private mutating func sourceFinished(_ side: TunnelSide) -> TunnelActions {
        guard self.directions[side] == .open, self.isReading(side) else { return .none }
        self.directions[side] = .finished
        self.firstFinisher = self.firstFinisher ?? side
        var actions = TunnelActions.none
        guard self.directions[side.other] == .open else {
            self.finishBoth(lastFinisher: side, &actions)
            return actions
        }
        guard self.phases[side.other] == .open else { return actions }
        switch (self.kinds[side.other], self.halfClose) {
        case (.stream, _): actions[side.other] = .finishOutput
        case (.webSocket, .hold): break
        case (.webSocket, .close): self.issue(.sendClose(.normal), side.other, &actions)
        case (.webSocket, .signal): actions[side.other] = .sendEndMark
        }
        return actions
    }

    /// Nothing more will come from either side; `lastFinisher`'s end was not yet passed on.
    private mutating func finishBoth(lastFinisher: TunnelSide, _ actions: inout TunnelActions) {
        self.recordTermination(TerminationParty(self.firstFinisher ?? lastFinisher), .clean(closeCode: nil))
        for side in TunnelSide.allCases where self.phases[side] == .open {
            switch self.kinds[side] {
            case .stream: self.issue(.close, side, &actions)
            case .webSocket where side == lastFinisher: self.issue(.sendClose(.normal), side, &actions)
            case .webSocket: self.issue(.sendEndMarkThenClose(.normal), side, &actions)
            }
        }
    }

    /// A Close frame was received from a WebSocket side. Its code and reason are sent unchanged to a WebSocket on the
    /// other side, whose Close is then the answer.
    package mutating func closeReceived(_ side: TunnelSide, _ signal: CloseSignal) -> TunnelActions {
        guard self.kinds[side] == .webSocket else { return .none }
        var actions = TunnelActions.none
        switch self.phases[side] {
        case .closeHeld, .ending, .ended: break
        case .open: self.closeBegun(by: side, signal, &actions)
        case .closeSent(let sent): self.closeAnswered(by: side, signal, to: sent, &actions)
        }
        return actions
    }

    private mutating func closeBegun(by side: TunnelSide, _ signal: CloseSignal, _ actions: inout TunnelActions) {
        self.recordTermination(TerminationParty(side), TerminationCause(signal))
        self.finishDirections(closedBy: side, signal)
        guard self.kinds[side.other] == .webSocket, self.phases[side.other] == .open else {
            self.issue(.answerClose(signal), side, &actions)
            self.endStream(side.other, after: signal, &actions)
            return
        }
        self.issue(.sendClose(signal), side.other, &actions)
        self.phases[side] = .closeHeld(signal)
    }

    private mutating func closeAnswered(
        by side: TunnelSide, _ signal: CloseSignal, to sent: CloseSignal, _ actions: inout TunnelActions
    ) {
        // Where we began, the side that finished first is the cause, unless the answer names a failure.
        let party = signal.isRegular ? self.firstFinisher ?? side : side
        self.recordTermination(TerminationParty(party), TerminationCause(signal))
        self.finishDirections(closedBy: side, signal)
        self.issue(.close, side, &actions)
        switch (self.kinds[side.other], self.phases[side.other]) {
        case (.stream, _): self.endStream(side.other, after: signal, &actions)
        case (.webSocket, .closeHeld): self.issue(.answerClose(signal), side.other, &actions)
        case (.webSocket, .open): self.issue(.sendClose(sent), side.other, &actions)
        case (.webSocket, .closeSent), (.webSocket, .ending), (.webSocket, .ended): break
        }
    }

    private mutating func finishDirections(closedBy side: TunnelSide, _ signal: CloseSignal) {
        let end: TunnelDirection = signal.isRegular ? .finished : .failed
        if self.directions[side] == .open { self.directions[side] = end }
        // Towards another WebSocket its own Close decides.
        guard self.kinds[side.other] == .stream, self.directions[side.other] == .open else { return }
        self.directions[side.other] = end
    }

    private mutating func endStream(_ side: TunnelSide, after signal: CloseSignal, _ actions: inout TunnelActions) {
        guard self.kinds[side] == .stream, self.phases[side] == .open else { return }
        self.issue(signal.isRegular ? .close : .reset, side, &actions)
    }
}

/// Abnormal ends: losses, violations, deadlines, requests of the gateway.
extension TunnelMachine {
    /// The connection of `side` is gone, without a clean end of its own.
    package mutating func connectionFailed(_ side: TunnelSide, _ failure: ConnectionFailure) -> TunnelActions {
        var actions = TunnelActions.none
        switch self.phases[side] {
        case .ended: return actions
        // Its Close was already received: the other side may still answer it.
        case .closeHeld, .ending: break
        case .open, .closeSent:
            self.fail(TerminationParty(side), TerminationCause(failure))
            self.end(side.other, .otherSideFailed, &actions)
        }
        self.phases[side] = .ended
        self.finishIfBothEnded(&actions)
        return actions
    }

    /// The transport of `side` ended as requested. Unrequested, it is a failure of the system.
    package mutating func connectionClosed(_ side: TunnelSide) -> TunnelActions {
        guard self.phases[side] == .ending else { return self.connectionFailed(side, .system) }
        self.phases[side] = .ended
        var actions = TunnelActions.none
        self.finishIfBothEnded(&actions)
        return actions
    }

    /// The peer of `side` sent no Pong in time, though the connection is open.
    package mutating func peerUnresponsive(_ side: TunnelSide) -> TunnelActions {
        var actions = TunnelActions.none
        guard self.isReading(side) else { return actions }
        self.fail(TerminationParty(side), .unresponsive)
        self.issue(.reset, side, &actions)
        self.end(side.other, .otherSideFailed, &actions)
        return actions
    }

    /// The peer of `side` broke a rule of WebSocket or of the framing, or exceeded a limit.
    ///
    /// A WebSocket that did so is closed with `closeCode`, and the other side ends abnormally (1011); the violation of
    /// a stream is reported to the WebSocket on the other side.
    package mutating func violated(_ side: TunnelSide, closeCode: UInt16) -> TunnelActions {
        var actions = TunnelActions.none
        guard self.isReading(side) else { return actions }
        self.fail(TerminationParty(side), .violation(closeCode: closeCode))
        self.end(side, CloseSignal(code: closeCode), &actions)
        self.end(side.other, self.kinds[side] == .stream ? CloseSignal(code: closeCode) : .otherSideFailed, &actions)
        return actions
    }

    /// No data for too long (1001, `idle timeout`); a stream is reset, as it did not finish.
    package mutating func idleTimedOut() -> TunnelActions {
        self.cut(.gateway, .timeout(.idle), .idleTimeout)
    }

    /// The tunnel is as old as it may get (1001, `maximum age`); a stream is reset, as it did not finish.
    package mutating func maximumAgeReached() -> TunnelActions {
        self.cut(.gateway, .timeout(.maximumAge), .maximumAge)
    }

    /// The client's token expired (1008, `token expired`); a stream is reset, as it did not finish.
    package mutating func tokenExpired() -> TunnelActions {
        self.cut(.gateway, .tokenExpired, .tokenExpired)
    }

    /// The closing timeout passed: everything still open is reset. Only a Close that waits for the other side's is
    /// still answered; call again if that does not end it.
    package mutating func closingTimedOut() -> TunnelActions {
        var actions = TunnelActions.none
        let silent = TunnelSide.allCases.first { side in
            if case .closeSent = self.phases[side] { true } else { false }
        }
        self.fail(silent.map { TerminationParty($0) } ?? .gateway, .timeout(.closing))
        for side in TunnelSide.allCases {
            switch self.phases[side] {
            case .closeHeld(let signal): self.issue(.answerClose(signal), side, &actions)
            case .open, .closeSent, .ending: self.issue(.reset, side, &actions)
            case .ended: break
            }
        }
        return actions
    }

    /// The gateway drains: one WebSocket side gets 1001, and after its answer the other side ends; data in flight from
    /// the first is still delivered. Two streams continue until `abandoned`.
    package mutating func drainBegan() -> TunnelActions {
        self.closeRequested(.goingAway, by: .operator, .drained, leavesStreams: true)
    }

    /// An orderly end was requested: as `drainBegan` with this Close; two streams are finished and closed.
    package mutating func stopRequested(_ signal: CloseSignal) -> TunnelActions {
        self.closeRequested(signal, by: .operator, .stopped, leavesStreams: false)
    }

    /// Everything still open is reset: the drain's hard deadline, a second signal, a command.
    package mutating func abandoned(_ party: TerminationParty, _ cause: TerminationCause) -> TunnelActions {
        var actions = TunnelActions.none
        self.fail(party, cause)
        for side in TunnelSide.allCases where self.phases[side] != .ended { self.issue(.reset, side, &actions) }
        return actions
    }

    private mutating func cut(
        _ party: TerminationParty, _ cause: TerminationCause, _ signal: CloseSignal
    ) -> TunnelActions {
        var actions = TunnelActions.none
        guard TunnelSide.allCases.contains(where: { self.isReading($0) }) else { return actions }
        self.fail(party, cause)
        for side in TunnelSide.allCases { self.end(side, signal, &actions) }
        return actions
    }

    private mutating func closeRequested(
        _ signal: CloseSignal, by party: TerminationParty, _ cause: TerminationCause, leavesStreams: Bool
    ) -> TunnelActions {
        var actions = TunnelActions.none
        guard self.phases.downstream == .open, self.phases.upstream == .open else { return actions }
        guard let side = TunnelSide.allCases.first(where: { self.kind(of: $0) == .webSocket }) else {
            guard !leavesStreams else { return actions }
            self.fail(party, cause)
            for side in TunnelSide.allCases { self.issue(.close, side, &actions) }
            return actions
        }
        self.recordTermination(party, cause)
        if self.directions[side.other] == .open { self.directions[side.other] = .failed }
        self.issue(.sendClose(signal), side, &actions)
        return actions
    }
}

/// Actions of a tunnel after an event: at most one for each side.
package struct TunnelActions: Hashable, Sendable {
    private var sides = TunnelSides<SideAction?>(downstream: nil, upstream: nil)
    /// The first side began to end: start the closing timer, which ends in `closingTimedOut`. At most once for
    /// each tunnel.
    package var startsClosingTimer = false
    /// The reason, once both connections have ended: the last action of the tunnel.
    package var termination: TerminationReason?

    package static let none = TunnelActions()

    package subscript(side: TunnelSide) -> SideAction? {
        get { self.sides[side] }
        set { self.sides[side] = newValue }
    }
}
