/// The small steps that every event is made of.
extension TunnelMachine {
    func phase(_ side: TunnelSide) -> SidePhase {
        switch side {
        case .downstream: self.downstreamPhase
        case .upstream: self.upstreamPhase
        }
    }

    mutating func setPhase(_ side: TunnelSide, _ phase: SidePhase) {
        switch side {
        case .downstream: self.downstreamPhase = phase
        case .upstream: self.upstreamPhase = phase
        }
    }

    mutating func setDirection(from side: TunnelSide, _ direction: TunnelDirection) {
        switch side {
        case .downstream: self.towardUpstream = direction
        case .upstream: self.towardDownstream = direction
        }
    }

    /// Whether what comes from `side` still matters.
    func isReading(_ side: TunnelSide) -> Bool {
        switch self.phase(side) {
        case .open, .closeSent: true
        case .closeHeld, .ending, .ended: false
        }
    }

    /// Gives `side` an order and moves it to the phase that follows.
    mutating func order(_ order: SideOrder, _ side: TunnelSide, _ orders: inout TunnelOrders) {
        orders[side] = order
        switch order {
        case .finishOutput, .sendEndMark: return
        case .sendClose(let signal), .sendEndMarkThenClose(let signal): self.setPhase(side, .closeSent(signal))
        case .answerClose, .close, .fail, .reset: self.setPhase(side, .ending)
        }
        if !self.closingTimerStarted {
            self.closingTimerStarted = true
            orders.startsClosingTimer = true
        }
    }

    /// Ends `side` so that its peer knows it is no clean end, unless it is ending already.
    mutating func end(_ side: TunnelSide, _ signal: CloseSignal, _ orders: inout TunnelOrders) {
        switch (self.phase(side), self.kind(of: side)) {
        case (.open, .webSocket): self.order(.fail(signal), side, &orders)
        // A second Close may not be sent (RFC 6455 §5.5.1): without an answer the peer sees 1006.
        case (.open, .stream), (.closeSent, _): self.order(.reset, side, &orders)
        // Answered with its own code the peer would believe that it got everything the other side had to say.
        case (.closeHeld, _): self.order(.answerClose(signal), side, &orders)
        case (.ending, _), (.ended, _): break
        }
    }

    /// Settles the reason, if none is, in the phase the tunnel is in.
    mutating func settle(_ party: TerminationParty, _ cause: TerminationCause) {
        guard self.termination == nil else { return }
        let isRelaying = self.downstreamPhase == .open && self.upstreamPhase == .open
        self.termination = TerminationReason(party, isRelaying ? .relaying : .closing, cause)
    }

    mutating func fail(_ party: TerminationParty, _ cause: TerminationCause) {
        self.settle(party, cause)
        for side in TunnelSide.allCases where self.direction(from: side) == .open {
            self.setDirection(from: side, .failed)
        }
    }

    mutating func concludeIfOver(_ orders: inout TunnelOrders) {
        guard self.isOver else { return }
        orders.termination = self.termination
    }
}

extension CloseSignal {
    var cause: TerminationCause {
        guard let code = self.code, !self.isRegular else { return .clean(closeCode: self.code) }
        return .abnormalClose(closeCode: code)
    }
}
