import GatewayConfiguration
import GatewayCore

/// A tunnel machine and the observations of its two peers, to which the rules apply.
struct WatchedTunnel: Hashable {
    struct Peer: Hashable {
        var outputFinished = false
        var endMarkSent = false
        var closeSent = false
        var closeReceived = false
        var isEnding = false
        var isGone = false
    }

    var machine: TunnelMachine
    private var downstream = Peer()
    private var upstream = Peer()
    private var timerStarted = false
    private(set) var ended = false

    init(_ downstream: SideKind, _ upstream: SideKind, _ halfClose: HalfClose) {
        self.machine = TunnelMachine(downstream: downstream, upstream: upstream, halfClose: halfClose)
    }

    private subscript(side: TunnelSide) -> Peer {
        get { side == .downstream ? self.downstream : self.upstream }
        set { if side == .downstream { self.downstream = newValue } else { self.upstream = newValue } }
    }

    /// Lets the event happen.
    /// - Returns: the rules that were broken, in words.
    mutating func apply(_ event: TunnelEvent) -> [String] {
        let before = self
        let actions = event.apply(to: &self.machine)
        if case .close(let side, _) = event, self.machine.kind(of: side) == .webSocket {
            self[side].closeReceived = true
        }
        switch event {
        case .closed(let side), .fault(let side, _): self[side].isGone = true
        case .finished(let side) where self.machine.kind(of: side) == .webSocket: self[side].isGone = true
        default: break
        }
        var broken = self.timerViolations(actions) + self.endViolations(before, actions)
        for side in TunnelSide.allCases {
            guard let action = actions[side] else { continue }
            if let violation = self.apply(action, side) { broken.append("\(side): \(violation)") }
        }
        broken += self.lossViolations(before, event, actions)
        for side in TunnelSide.allCases {
            let was = before.machine.direction(from: side)
            if was != .open, was != self.machine.direction(from: side) {
                broken.append("direction from \(side) changed again")
            }
        }
        return broken
    }

    private mutating func timerViolations(_ actions: TunnelActions) -> [String] {
        if actions.startsClosingTimer, self.timerStarted { return ["closing timer started twice"] }
        if actions.startsClosingTimer { self.timerStarted = true }
        return []
    }

    private mutating func endViolations(_ before: WatchedTunnel, _ actions: TunnelActions) -> [String] {
        var broken: [String] = []
        if before.machine.termination != nil, before.machine.termination != self.machine.termination {
            broken.append("the reason changed")
        }
        if let termination = actions.termination {
            if before.ended { broken.append("ended twice") }
            if termination != self.machine.termination { broken.append("ended for another reason") }
            self.ended = true
        }
        let isOver = self.downstream.isGone && self.upstream.isGone
        if isOver != self.ended { broken.append(isOver ? "over but not ended" : "ended but not over") }
        if isOver, TunnelSide.allCases.contains(where: { self.machine.direction(from: $0) == .open }) {
            broken.append("a direction is open after the end")
        }
        return broken
    }

    private mutating func apply(_ action: SideAction, _ side: TunnelSide) -> String? {
        var peer = self[side]
        defer { self[side] = peer }
        let isStream = self.machine.kind(of: side) == .stream
        if peer.isGone { return "\(action) to a connection that is gone" }
        if peer.isEnding, action != .reset { return "\(action) to a connection that is ending" }
        switch action {
        case .finishOutput:
            defer { peer.outputFinished = true }
            return isStream && !peer.outputFinished ? nil : "\(action) out of place"
        case .sendEndMark:
            defer { peer.endMarkSent = true }
            return !isStream && !peer.endMarkSent && !peer.closeSent ? nil : "\(action) out of place"
        case .sendClose, .sendEndMarkThenClose:
            defer { peer.closeSent = true }
            if !self.timerStarted { return "\(action) without a timer" }
            return !isStream && !peer.closeSent && !peer.closeReceived ? nil : "\(action) out of place"
        case .answerClose, .fail, .close, .reset:
            defer { peer.isEnding = true }
            return self.timerStarted
                ? self.endActionViolation(action, peer, isStream: isStream) : "\(action) without a timer"
        }
    }

    private func endActionViolation(_ action: SideAction, _ peer: Peer, isStream: Bool) -> String? {
        let fits: Bool =
            switch action {
            case .answerClose: !isStream && peer.closeReceived && !peer.closeSent
            case .fail: !isStream && !peer.closeSent && !peer.closeReceived
            case .close: isStream || peer.closeSent && peer.closeReceived
            case .reset, .finishOutput, .sendEndMark, .sendClose, .sendEndMarkThenClose: true
            }
        return fits ? nil : "\(action) out of place"
    }

    /// A loss on one side is never a clean end on the other.
    private func lossViolations(_ before: WatchedTunnel, _ event: TunnelEvent, _ actions: TunnelActions) -> [String] {
        guard let side = event.culprit else { return [] }
        let lost = before[side]
        let other = before[side.other]
        guard !lost.isGone, !lost.isEnding, !lost.closeReceived else { return [] }
        guard !other.isGone, !other.isEnding, !other.closeReceived else { return [] }
        switch actions[side.other] {
        case .reset: return []
        case .fail(let signal) where !signal.isRegular: return []
        default: return ["\(event) became \(String(describing: actions[side.other])) on the other side"]
        }
    }
}
