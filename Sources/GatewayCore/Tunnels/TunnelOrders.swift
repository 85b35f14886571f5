/// What a tunnel wants done after an event: at most one order for each side.
package struct TunnelOrders: Hashable, Sendable {
    package var downstream: SideOrder?
    package var upstream: SideOrder?
    /// The first side began to end: start the closing timer, whose end is `closingTimedOut`. Said once in a tunnel's
    /// life.
    package var startsClosingTimer = false
    /// Both connections are over: the tunnel ended, for this reason. Said once, last.
    package var termination: TerminationReason?

    package init(
        downstream: SideOrder? = nil, upstream: SideOrder? = nil, startsClosingTimer: Bool = false,
        termination: TerminationReason? = nil
    ) {
        self.downstream = downstream
        self.upstream = upstream
        self.startsClosingTimer = startsClosingTimer
        self.termination = termination
    }

    package static let none = TunnelOrders()

    package subscript(side: TunnelSide) -> SideOrder? {
        get {
            switch side {
            case .downstream: self.downstream
            case .upstream: self.upstream
            }
        }
        set {
            switch side {
            case .downstream: self.downstream = newValue
            case .upstream: self.upstream = newValue
            }
        }
    }
}
