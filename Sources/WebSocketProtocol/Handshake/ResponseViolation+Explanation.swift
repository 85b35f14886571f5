extension ResponseViolation {
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
