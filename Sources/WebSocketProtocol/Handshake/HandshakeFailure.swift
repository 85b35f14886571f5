/// Why a response does not open the WebSocket.
public enum HandshakeFailure: Error, Equatable, Sendable {
    /// Any status but 101; the body, if any, follows on the connection.
    case refused(ResponseHead)
    /// A 101 that we must not trust.
    case invalid(ResponseHead, ResponseViolation)

    /// The response in question.
    public var response: ResponseHead {
        switch self {
        case .refused(let response), .invalid(let response, _): response
        }
    }
}

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

/// The rule that a server's 101 response breaks (RFC 6455 §4.1).
public enum ResponseViolation: Error, Equatable, Sendable {
    /// A 101 in a version of HTTP that knows no upgrade.
    case wrongHTTPVersion
    /// `Upgrade` is missing or something else than `websocket`.
    case missingUpgrade
    /// `Connection` does not hold `Upgrade`.
    case missingConnectionUpgrade
    /// `Sec-WebSocket-Accept` is missing, there twice, or does not answer our key.
    case wrongAccept
    /// There is more than one subprotocol.
    case severalSubprotocols
    /// The subprotocol is not among those that we offered.
    case subprotocolNotOffered(String)
    /// `Sec-WebSocket-Extensions` cannot be read.
    case malformedExtensions
    /// The extension is not among those that we offered.
    case extensionNotOffered(String)
    /// The extension is accepted twice.
    case repeatedExtension(String)
    /// The parameters do not answer any of our offers of this extension (RFC 7692 §7.1).
    case illegalExtensionParameters(String)

    /// What is wrong with the response, for a person, in one sentence.
    public var explanation: String {
        switch self {
        case .wrongHTTPVersion: "The response upgrades in a version of HTTP that cannot."
        case .missingUpgrade: "The response does not upgrade to websocket."
        case .missingConnectionUpgrade: "The response's Connection field lacks 'Upgrade'."
        case .wrongAccept: "Sec-WebSocket-Accept is missing or does not answer our key."
        case .severalSubprotocols: "The server chose more than one subprotocol."
        case .subprotocolNotOffered(let name): "The server chose the subprotocol '\(name)', which was not offered."
        case .malformedExtensions: "Sec-WebSocket-Extensions is not a list of extensions."
        case .extensionNotOffered(let name): "The server accepted the extension '\(name)', which was not offered."
        case .repeatedExtension(let name): "The server accepted the extension '\(name)' twice."
        case .illegalExtensionParameters(let text): "The server accepted '\(text)', which answers none of our offers."
        }
    }
}
