import WebSocketProtocol

extension ControlProblem {
    /// Why the opening handshake that was asked for must not be written, with the place of what asks for it.
    init(_ error: HandshakeUsageError) {
        switch error {
        case .malformedField(let field):
            self = .invalid(
                JSONPointer.member(field.name, of: "/headers"),
                "A header needs a token for its name, and a value on one line without spaces around it.")
        case .reservedField(let name):
            self = .invalid(
                JSONPointer.member(name, of: "/headers"), "\(name) is set by the handshake itself; leave it out.")
        case .malformedSubprotocol:
            self = .invalid("/subprotocols", "A subprotocol is to be a token (RFC 6455 §4.1).")
        case .repeatedSubprotocol(let name):
            self = .invalid("/subprotocols", "\(name) is offered twice; offer each subprotocol once (RFC 6455 §4.1).")
        case .subprotocolsGivenTwice:
            self = .invalid("/subprotocols", "Offer subprotocols here or in a header, not in both.")
        case .malformedAuthority: self = .invalid("/url", "The host or the port of url cannot be meant.")
        case .malformedTarget: self = .invalid("/url", "The path of url is to begin with /, and to be percent-encoded.")
        case .malformedOffer: self = .invalid("/compress", "Compression cannot be offered like this.")
        }
    }
}
