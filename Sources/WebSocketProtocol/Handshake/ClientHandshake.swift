/// The client's side of the opening handshake: what to ask for, the request, and the judgement of its answer.
public struct ClientHandshake: Equatable, Sendable {
    /// Host, and port unless it is the usual one, as they go into the Host field; an IPv6 address in brackets.
    public let authority: String
    /// Path and query, percent-encoded.
    public let target: String
    /// Offered, in our order of preference.
    public let subprotocols: [String]
    /// Offers of permessage-deflate, in our order of preference. See `DeflatePolicy.offers`.
    public let offers: [PermessageDeflateOffer]
    /// Further fields, such as Origin and Cookie. A Host among them counts instead of `authority`, and a
    /// Sec-WebSocket-Protocol instead of `subprotocols`; both are then written as they are.
    public let fields: [HTTPField]

    /// Takes what it is given; `validate()` tells what of it cannot be written.
    public init(
        authority: String, target: String, subprotocols: [String] = [], offers: [PermessageDeflateOffer] = [],
        fields: [HTTPField] = []
    ) {
        self.authority = authority
        self.target = target.isEmpty ? "/" : target
        self.subprotocols = subprotocols
        self.offers = offers
        self.fields = fields
    }

    /// - Parameters:
    ///   - host: a name or an address; an IPv6 address with or without brackets, its zone is left out.
    ///   - port: `nil` for the usual one.
    ///   - isSecure: whether the usual port is 443 (`wss`) or 80 (`ws`).
    ///   - target: empty counts as `/`.
    /// - Throws: whatever `validate()` finds.
    public init(
        host: String, port: Int? = nil, isSecure: Bool, target: String, subprotocols: [String] = [],
        offers: [PermessageDeflateOffer] = [], fields: [HTTPField] = []
    ) throws(HandshakeUsageError) {
        self.init(
            authority: Authority.rendered(host: host, port: port, isSecure: isSecure), target: target,
            subprotocols: subprotocols, offers: offers, fields: fields)
        try self.validate()
    }

    /// `Sec-WebSocket-Key` for a nonce.
    static func key(_ nonce: [UInt8]) -> String { Base64.encode(nonce) }

    /// What the server may choose from.
    var offeredSubprotocols: [String] {
        let own = HTTPFields(self.fields).list("Sec-WebSocket-Protocol")
        return own.isEmpty ? self.subprotocols : own
    }
}
