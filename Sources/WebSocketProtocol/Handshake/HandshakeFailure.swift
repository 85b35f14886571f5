/// Why an opening handshake failed at the client.
public enum HandshakeFailure: Error, Equatable, Sendable {
    /// Any status but 101; a body may follow on the connection.
    case refused(ResponseHead)
    case invalid(ResponseHead, HandshakeViolation)

    public var response: ResponseHead {
        switch self {
        case .refused(let response), .invalid(let response, _): response
        }
    }
}

/// An invalid argument of the caller for an opening handshake.
public enum HandshakeUsageError: Error, Equatable, Sendable {
    /// The name is not a token, or the value contains control characters (including CR and LF) or surrounding
    /// whitespace.
    case malformedField(HTTPField)
    /// The handshake sets this field itself.
    case reservedField(String)
    /// A subprotocol must be a token (RFC 6455 §4.1).
    case malformedSubprotocol(String)
    /// Each subprotocol is offered once (RFC 6455 §4.1).
    case repeatedSubprotocol(String)
    /// Subprotocols were given both as a list and as a header field.
    case subprotocolsGivenTwice
    /// Host or port is empty, out of range, or contains invalid characters.
    case malformedAuthority(String)
    /// The target does not begin with `/`, has a fragment, or contains characters that must be percent-encoded.
    case malformedTarget(String)
    /// A window outside 8 to 15 bits was offered.
    case malformedOffer(PermessageDeflateOffer)
}

/// The rule that a server's 101 response violates (RFC 6455 §4.1).
public enum HandshakeViolation: Error, Equatable, Sendable {
    case wrongHTTPVersion
    /// `Upgrade` is not `websocket`.
    case missingUpgrade
    /// `Connection` does not contain `Upgrade`.
    case missingConnectionUpgrade
    /// `Sec-WebSocket-Accept` is missing, repeated, or does not match our key.
    case wrongAccept
    case severalSubprotocols
    case subprotocolNotOffered(String)
    case malformedExtensions
    case extensionNotOffered(String)
    /// The extension was accepted twice.
    case repeatedExtension(String)
    /// The parameters do not match any of our offers of this extension (RFC 7692 §7.1).
    case illegalExtensionParameters(String)

    /// One sentence for a human.
    public var explanation: String {
        switch self {
        case .wrongHTTPVersion: "The response is not HTTP/1.1, which an upgrade requires."
        case .missingUpgrade: "The response does not upgrade to websocket."
        case .missingConnectionUpgrade: "The response's Connection field lacks 'Upgrade'."
        case .wrongAccept: "Sec-WebSocket-Accept is missing or does not match our key."
        case .severalSubprotocols: "The server chose more than one subprotocol."
        case .subprotocolNotOffered(let name): "The server chose the subprotocol '\(name)', which was not offered."
        case .malformedExtensions: "Sec-WebSocket-Extensions is not a list of extensions."
        case .extensionNotOffered(let name): "The server accepted the extension '\(name)', which was not offered."
        case .repeatedExtension(let name): "The server accepted the extension '\(name)' twice."
        case .illegalExtensionParameters(let text): "The server accepted '\(text)', which matches none of our offers."
        }
    }
}
