/// The life of one tunnel: two sides, two directions, one end. Told what happens, it says what to do on each side.
///
/// - A direction ends cleanly only if its source ended it: FIN, close_notify, an end mark, a regular Close. Any loss on
///   one side is a reset or an abnormal Close on the other.
/// - Between streams a finished direction is always carried as FIN or close_notify. Towards a WebSocket the half-close
///   policy decides.
/// - The first cause wins: later events change how the sides end, never the reason given.
package struct TunnelMachine: Hashable, Sendable {
    enum SidePhase: Hashable, Sendable {
        case open
        /// WebSocket: we sent this Close and still read until its own comes.
        case closeSent(CloseSignal)
        /// WebSocket: its Close was passed on to the other side, whose answer will be the answer.
        case closeHeld(CloseSignal)
        /// Told to end; the transport's last word is still to come.
        case ending
        case ended
    }

    package let halfClose: HalfClose
    package let downstreamKind: SideKind
    package let upstreamKind: SideKind
    /// From downstream to upstream, and back.
    package internal(set) var towardUpstream = TunnelDirection.open
    package internal(set) var towardDownstream = TunnelDirection.open
    /// Why the tunnel ends, as soon as that is certain.
    package internal(set) var termination: TerminationReason?

    var downstreamPhase = SidePhase.open
    var upstreamPhase = SidePhase.open
    /// Who finished a direction first.
    var firstFinisher: TunnelSide?
    var closingTimerStarted = false

    package init(downstream: SideKind, upstream: SideKind, halfClose: HalfClose) {
        self.downstreamKind = downstream
        self.upstreamKind = upstream
        self.halfClose = halfClose
    }

    package func kind(of side: TunnelSide) -> SideKind {
        switch side {
        case .downstream: self.downstreamKind
        case .upstream: self.upstreamKind
        }
    }

    /// The direction whose bytes come from `side`.
    package func direction(from side: TunnelSide) -> TunnelDirection {
        switch side {
        case .downstream: self.towardUpstream
        case .upstream: self.towardDownstream
        }
    }

    /// Whether bytes read from `side` are to be written to the other. Where not, they are thrown away, or are a
    /// violation (1002) if the direction is `.finished` by an end mark.
    package func relays(from side: TunnelSide) -> Bool {
        switch self.phase(side.other) {
        // Who sent Close may still be told what was under way: our own Close has not left.
        case .open, .closeHeld: self.direction(from: side) == .open
        case .closeSent, .ending, .ended: false
        }
    }

    /// Whether an empty binary message from `side` marks the end of its direction.
    package func watchesEndMark(from side: TunnelSide) -> Bool {
        self.halfClose == .signal && self.kind(of: side) == .webSocket && self.kind(of: side.other) == .stream
    }

    /// Both connections are over.
    package var isOver: Bool {
        self.downstreamPhase == .ended && self.upstreamPhase == .ended
    }
}
