/// What the engine found in the bytes it was given.
public enum WebSocketEvent: Equatable, Sendable {
    case data(DataChunk)
    /// To be answered with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer broke a rule; nothing is decoded any more.
    case violation(PeerViolation)
}
