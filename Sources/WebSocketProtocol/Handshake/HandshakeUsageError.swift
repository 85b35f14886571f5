/// Our own caller asked for an opening handshake that must not be written.
public enum HandshakeUsageError: Error, Equatable, Sendable {
    /// The field would break the head: its name is no token, or its value has a control character (CR and LF among
    /// them) or whitespace around it.
    case malformedField(HTTPField)
    /// The field is the handshake's own, and would contradict it.
    case reservedField(String)
    /// A subprotocol must be a token (RFC 6455 §4.1).
    case malformedSubprotocol(String)
    /// Each subprotocol is offered once (RFC 6455 §4.1).
    case repeatedSubprotocol(String)
    /// Subprotocols were given both as a list and as a header field.
    case subprotocolsGivenTwice
    /// Host and port are empty, out of range, or have a character that neither has.
    case malformedAuthority(String)
    /// The target does not begin with `/`, or has a character that must be percent-encoded, or a fragment.
    case malformedTarget(String)
    /// A window outside 8 to 15 bits was offered.
    case malformedOffer(PermessageDeflateOffer)
}
