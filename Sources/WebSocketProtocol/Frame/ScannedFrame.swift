/// What a scanner found in the bytes it was given.
package enum ScannedFrame: Equatable, Sendable {
    case data(FramePiece)
    /// With the payload unmasked in a copy, and where the whole frame stands.
    case ping([UInt8], Range<Int>)
    case pong([UInt8], Range<Int>)
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8], Range<Int>)
    /// The peer broke a rule; nothing is scanned any more.
    case violation(PeerViolation)
}
