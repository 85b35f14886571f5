/// Directions that end well.
extension TunnelMachine {
    /// The peer finished sending: FIN, under TLS behind a close_notify. A WebSocket that does so without a Close is
    /// truncated.
    package mutating func inputFinished(_ side: TunnelSide) -> TunnelOrders {
        guard self.kind(of: side) == .stream else { return self.connectionFaulted(side, .truncated) }
        return self.sourceFinished(side)
    }

    /// An empty binary message came where `watchesEndMark` says so; elsewhere it is a message like any other and this
    /// does nothing.
    package mutating func endMarkReceived(_ side: TunnelSide) -> TunnelOrders {
        guard self.watchesEndMark(from: side) else { return .none }
        return self.sourceFinished(side)
    }

    private mutating func sourceFinished(_ side: TunnelSide) -> TunnelOrders {
        guard self.direction(from: side) == .open, self.isReading(side) else { return .none }
        self.setDirection(from: side, .finished)
        self.firstFinisher = self.firstFinisher ?? side
        var orders = TunnelOrders.none
        guard self.direction(from: side.other) == .open else {
            self.finishBoth(lastFinisher: side, &orders)
            return orders
        }
        guard self.phase(side.other) == .open else { return orders }
        switch (self.kind(of: side.other), self.halfClose) {
        case (.stream, _): orders[side.other] = .finishOutput
        case (.webSocket, .hold): break
        case (.webSocket, .close): self.order(.sendClose(.normal), side.other, &orders)
        case (.webSocket, .signal): orders[side.other] = .sendEndMark
        }
        return orders
    }

    /// Nothing more will come from either side; `lastFinisher`'s end was not yet passed on.
    private mutating func finishBoth(lastFinisher: TunnelSide, _ orders: inout TunnelOrders) {
        self.settle(TerminationParty(self.firstFinisher ?? lastFinisher), .clean(closeCode: nil))
        for side in TunnelSide.allCases where self.phase(side) == .open {
            switch self.kind(of: side) {
            case .stream: self.order(.close, side, &orders)
            case .webSocket where side == lastFinisher: self.order(.sendClose(.normal), side, &orders)
            case .webSocket: self.order(.sendEndMarkThenClose(.normal), side, &orders)
            }
        }
    }

    /// A Close frame came from a WebSocket side. Its code and reason go to a WebSocket on the other side unchanged,
    /// whose own Close comes back as the answer.
    package mutating func closeReceived(_ side: TunnelSide, _ signal: CloseSignal) -> TunnelOrders {
        guard self.kind(of: side) == .webSocket else { return .none }
        var orders = TunnelOrders.none
        switch self.phase(side) {
        case .closeHeld, .ending, .ended: break
        case .open: self.closeBegun(by: side, signal, &orders)
        case .closeSent(let sent): self.closeAnswered(by: side, signal, to: sent, &orders)
        }
        return orders
    }

    private mutating func closeBegun(by side: TunnelSide, _ signal: CloseSignal, _ orders: inout TunnelOrders) {
        self.settle(TerminationParty(side), signal.cause)
        self.finishDirections(closedBy: side, signal)
        guard self.kind(of: side.other) == .webSocket, self.phase(side.other) == .open else {
            self.order(.answerClose(signal), side, &orders)
            self.endStream(side.other, after: signal, &orders)
            return
        }
        self.order(.sendClose(signal), side.other, &orders)
        self.setPhase(side, .closeHeld(signal))
    }

    private mutating func closeAnswered(
        by side: TunnelSide, _ signal: CloseSignal, to sent: CloseSignal, _ orders: inout TunnelOrders
    ) {
        // Where we began, the side that finished first is the cause, unless the answer names a fault.
        let party = signal.isRegular ? self.firstFinisher ?? side : side
        self.settle(TerminationParty(party), signal.cause)
        self.finishDirections(closedBy: side, signal)
        self.order(.close, side, &orders)
        switch (self.kind(of: side.other), self.phase(side.other)) {
        case (.stream, _): self.endStream(side.other, after: signal, &orders)
        case (.webSocket, .closeHeld): self.order(.answerClose(signal), side.other, &orders)
        case (.webSocket, .open): self.order(.sendClose(sent), side.other, &orders)
        case (.webSocket, .closeSent), (.webSocket, .ending), (.webSocket, .ended): break
        }
    }

    private mutating func finishDirections(closedBy side: TunnelSide, _ signal: CloseSignal) {
        let end: TunnelDirection = signal.isRegular ? .finished : .failed
        if self.direction(from: side) == .open { self.setDirection(from: side, end) }
        // Towards another WebSocket its own Close decides.
        guard self.kind(of: side.other) == .stream, self.direction(from: side.other) == .open else { return }
        self.setDirection(from: side.other, end)
    }

    private mutating func endStream(_ side: TunnelSide, after signal: CloseSignal, _ orders: inout TunnelOrders) {
        guard self.kind(of: side) == .stream, self.phase(side) == .open else { return }
        self.order(signal.isRegular ? .close : .reset, side, &orders)
    }
}
