/// The server's yes, and what both sides have agreed on with it.
public struct HandshakeAcceptance: Equatable, Sendable {
    /// The whole 101 response; frames follow it at once.
    public let response: [UInt8]
    /// The subprotocol chosen, if any.
    public let subprotocol: String?
    /// Compression, if agreed on.
    public let deflate: PermessageDeflateParameters?
}
