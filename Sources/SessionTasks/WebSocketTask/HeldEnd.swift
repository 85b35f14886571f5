import WebSocketProtocol

/// What ends a connection and came behind a message that somebody still has in hand.
enum HeldEnd {
    case close(CloseCode?, reason: [UInt8])
    case violation(PeerViolation)
}
