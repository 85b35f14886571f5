import GatewayCore

/// Everything that can happen to a tunnel.
enum TunnelEvent: Hashable, Sendable {
    case finished(TunnelSide)
    case endMark(TunnelSide)
    case close(TunnelSide, UInt16?)
    case fault(TunnelSide, ConnectionFailure)
    case closed(TunnelSide)
    case unresponsive(TunnelSide)
    case violated(TunnelSide, UInt16)
    case idle, age, expiry, closingTimedOut, drain, stop, abandoned

    static let all: [TunnelEvent] =
        TunnelSide.allCases.flatMap { side -> [TunnelEvent] in
            [.finished(side), .endMark(side), .closed(side), .unresponsive(side), .violated(side, 1009)]
                + [nil, 1000, 1001, 1011, 4000].map { .close(side, $0) }
                + [.reset, .truncated].map { .fault(side, $0) }
        } + [.idle, .age, .expiry, .closingTimedOut, .drain, .stop, .abandoned]

    func apply(to machine: inout TunnelMachine) -> TunnelActions {
        switch self {
        case .finished(let side): machine.inputFinished(side)
        case .endMark(let side): machine.endMarkReceived(side)
        case .close(let side, let code): machine.closeReceived(side, CloseSignal(code: code))
        case .fault(let side, let fault): machine.connectionFailed(side, fault)
        case .closed(let side): machine.connectionClosed(side)
        case .unresponsive(let side): machine.peerUnresponsive(side)
        case .violated(let side, let code): machine.violated(side, closeCode: code)
        case .idle: machine.idleTimedOut()
        case .age: machine.maximumAgeReached()
        case .expiry: machine.tokenExpired()
        case .closingTimedOut: machine.closingTimedOut()
        case .drain: machine.drainBegan()
        case .stop: machine.stopRequested(.goingAway)
        case .abandoned: machine.abandoned(.operator, .stopped)
        }
    }

    /// The side that is lost or at fault with this event.
    var culprit: TunnelSide? {
        switch self {
        case .fault(let side, _), .unresponsive(let side), .violated(let side, _): side
        case .finished, .endMark, .close, .closed, .idle, .age, .expiry, .closingTimedOut, .drain, .stop, .abandoned:
            nil
        }
    }
}
