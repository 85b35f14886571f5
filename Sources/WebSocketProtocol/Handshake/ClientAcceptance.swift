/// A good answer to our opening handshake, and what both sides have agreed on with it.
public struct ClientAcceptance: Equatable, Sendable {
    /// The response as it came.
    public let response: ResponseHead
    /// The subprotocol that the server chose, if any.
    public let subprotocol: String?
    /// Compression, if agreed on.
    public let deflate: PermessageDeflateParameters?
}
