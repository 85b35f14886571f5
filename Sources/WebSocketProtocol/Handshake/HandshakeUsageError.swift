/// Our own caller asked for an opening handshake that must not be written.
public enum HandshakeUsageError: Error, Equatable, Sendable {
    /// The field would break the head: its name is no token, or its value has a control character (CR and LF among
    /// them) or whitespace around it.
    case malformedField(HTTPField)
    /// The field is the handshake's own, and would contradict it.
    case reservedField(String)
    /// The subprotocol chosen is not among those that the client offered (RFC 6455 §4.2.2).
    case subprotocolNotOffered(String)
    /// A subprotocol must be a token (RFC 6455 §4.1).
    case malformedSubprotocol(String)
    /// Each subprotocol is offered once (RFC 6455 §4.1).
    case repeatedSubprotocol(String)
    /// Subprotocols were given both as a list and as a header field.
    case subprotocolsGivenTwice
    /// The host is empty or has a character that no host has.
    case malformedHost(String)
    /// The port is outside 1 to 65535.
    case malformedPort(Int)
    /// The target does not begin with `/`, or has a character that must be percent-encoded, or a fragment.
    case malformedTarget(String)
    /// The nonce has to be 16 bytes; this many were given.
    case malformedNonce(byteCount: Int)
    /// A window outside 8 to 15 bits was offered.
    case malformedOffer(PermessageDeflateOffer)
}
