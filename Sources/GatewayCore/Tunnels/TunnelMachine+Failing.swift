/// Ends that are not clean: losses, violations, deadlines, orders from above.
extension TunnelMachine {
    /// The connection of `side` is gone, without a clean end of its own.
    package mutating func connectionFaulted(_ side: TunnelSide, _ fault: ConnectionFault) -> TunnelOrders {
        var orders = TunnelOrders.none
        switch self.phase(side) {
        case .ended: return orders
        // It has said its last word already: the other side may still answer that.
        case .closeHeld, .ending: break
        case .open, .closeSent:
            self.fail(TerminationParty(side), fault.cause)
            self.end(side.other, .otherSideFailed, &orders)
        }
        self.setPhase(side, .ended)
        self.concludeIfOver(&orders)
        return orders
    }

    /// The transport of `side` ended as it was told to. Untold, it is a fault of the system.
    package mutating func connectionClosed(_ side: TunnelSide) -> TunnelOrders {
        guard self.phase(side) == .ending else { return self.connectionFaulted(side, .system) }
        self.setPhase(side, .ended)
        var orders = TunnelOrders.none
        self.concludeIfOver(&orders)
        return orders
    }

    /// The peer of `side` does not answer, though its connection still stands: no pong in time.
    package mutating func peerUnresponsive(_ side: TunnelSide) -> TunnelOrders {
        var orders = TunnelOrders.none
        guard self.isReading(side) else { return orders }
        self.fail(TerminationParty(side), .unresponsive)
        self.order(.reset, side, &orders)
        self.end(side.other, .otherSideFailed, &orders)
        return orders
    }

    /// The peer of `side` broke a rule of WebSocket or of the framing, or went beyond a limit.
    ///
    /// A WebSocket that did so is told `closeCode`, and the other side ends abnormally (1011); what a stream did wrong
    /// is told to the WebSocket on the other side.
    package mutating func violated(_ side: TunnelSide, closeCode: UInt16) -> TunnelOrders {
        var orders = TunnelOrders.none
        guard self.isReading(side) else { return orders }
        self.fail(TerminationParty(side), .violation(closeCode: closeCode))
        self.end(side, CloseSignal(code: closeCode), &orders)
        self.end(side.other, self.kind(of: side) == .stream ? CloseSignal(code: closeCode) : .otherSideFailed, &orders)
        return orders
    }

    /// No data for too long (1001, `idle timeout`); a stream is reset, as it did not finish.
    package mutating func idleTimedOut() -> TunnelOrders {
        self.cut(.gateway, .timeout(.idle), CloseSignal(code: 1001, reason: Array("idle timeout".utf8)))
    }

    /// The tunnel is as old as it may get (1001, `maximum age`); a stream is reset, as it did not finish.
    package mutating func maximumAgeReached() -> TunnelOrders {
        self.cut(.gateway, .timeout(.maximumAge), CloseSignal(code: 1001, reason: Array("maximum age".utf8)))
    }

    /// The time to close is over: whatever still stands is reset. Only a Close that waits for the other side's is still
    /// answered; call again if that does not end it.
    package mutating func closingTimedOut() -> TunnelOrders {
        var orders = TunnelOrders.none
        let silent = TunnelSide.allCases.first { side in
            if case .closeSent = self.phase(side) { true } else { false }
        }
        self.fail(silent.map { TerminationParty($0) } ?? .gateway, .timeout(.closing))
        for side in TunnelSide.allCases {
            switch self.phase(side) {
            case .closeHeld(let signal): self.order(.answerClose(signal), side, &orders)
            case .open, .closeSent, .ending: self.order(.reset, side, &orders)
            case .ended: break
            }
        }
        return orders
    }

    /// The gateway drains: one WebSocket side is told 1001, and when it has answered, the other side ends: what is
    /// under way from the first is still delivered. Two streams know no such word; they go on until `abandoned`.
    package mutating func drainBegan() -> TunnelOrders {
        self.closeRequested(.goingAway, by: .operator, .drained, leavesStreams: true)
    }

    /// Someone in charge wants an orderly end: as `drainBegan` with this Close; two streams are finished and closed.
    package mutating func stopRequested(_ signal: CloseSignal) -> TunnelOrders {
        self.closeRequested(signal, by: .operator, .stopped, leavesStreams: false)
    }

    /// Everything still open is reset: the drain's hard deadline, a second signal, a command.
    package mutating func abandoned(_ party: TerminationParty, _ cause: TerminationCause) -> TunnelOrders {
        var orders = TunnelOrders.none
        self.fail(party, cause)
        for side in TunnelSide.allCases where self.phase(side) != .ended { self.order(.reset, side, &orders) }
        return orders
    }

    private mutating func cut(
        _ party: TerminationParty, _ cause: TerminationCause, _ signal: CloseSignal
    ) -> TunnelOrders {
        var orders = TunnelOrders.none
        guard TunnelSide.allCases.contains(where: { self.isReading($0) }) else { return orders }
        self.fail(party, cause)
        for side in TunnelSide.allCases { self.end(side, signal, &orders) }
        return orders
    }

    private mutating func closeRequested(
        _ signal: CloseSignal, by party: TerminationParty, _ cause: TerminationCause, leavesStreams: Bool
    ) -> TunnelOrders {
        var orders = TunnelOrders.none
        guard self.downstreamPhase == .open, self.upstreamPhase == .open else { return orders }
        guard let side = TunnelSide.allCases.first(where: { self.kind(of: $0) == .webSocket }) else {
            guard !leavesStreams else { return orders }
            self.fail(party, cause)
            for side in TunnelSide.allCases { self.order(.close, side, &orders) }
            return orders
        }
        self.settle(party, cause)
        if self.direction(from: side.other) == .open { self.setDirection(from: side.other, .failed) }
        self.order(.sendClose(signal), side, &orders)
        return orders
    }
}
