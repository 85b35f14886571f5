/// What a forwarder found in the bytes it was given.
package enum ForwardingEvent: Equatable, Sendable {
    /// Ready to be written to the other WebSocket, in place.
    case frames(FrameRun)
    /// To be answered here with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer broke a rule; nothing is forwarded any more.
    case violation(PeerViolation)
}
