/// The client's side of the opening handshake: the request, and the judgement of its answer.
public struct ClientHandshake: Equatable, Sendable {
    /// The whole request; no frame may follow it before the answer is there.
    public let request: [UInt8]
    /// `Sec-WebSocket-Key` of the request.
    public let key: String
    /// Offered, in our order of preference.
    public let subprotocols: [String]
    /// Offers of permessage-deflate, in our order of preference.
    public let offers: [PermessageDeflateOffer]

    /// - Parameters:
    ///   - host: a name or an address; an IPv6 address with or without brackets, a zone is left out.
    ///   - port: written into Host unless it is the usual one; `nil` for the usual one.
    ///   - isSecure: whether the usual port is 443 (`wss`) or 80 (`ws`).
    ///   - target: path and query, percent-encoded; empty counts as `/`.
    ///   - nonce: 16 bytes of chance, new for every handshake (RFC 6455 §4.1).
    ///   - subprotocols: tokens, each once, in order of preference.
    ///   - offers: offers of permessage-deflate; none by default. See `DeflatePolicy.offers`.
    ///   - fields: further fields, such as Origin and Cookie, written as they are. A Host among them replaces ours; a
    ///     Sec-WebSocket-Protocol among them stands for `subprotocols`.
    /// - Throws: for whatever must not be written; nothing from the caller can add a line to the request.
    public init(
        host: String, port: Int? = nil, isSecure: Bool, target: String = "/", nonce: [UInt8],
        subprotocols: [String] = [],
        offers: [PermessageDeflateOffer] = [], fields: [HTTPField] = []
    ) throws(HandshakeUsageError) {
        guard nonce.count == 16 else { throw .malformedNonce(byteCount: nonce.count) }
        try ReservedFields.check(fields)
        try Self.check(offers)
        self.key = Base64.encode(nonce)
        self.offers = offers
        self.subprotocols = try Self.subprotocols(subprotocols, in: fields)

        var request = Array("GET ".utf8)
        request += try Self.checked(target: target).utf8
        request += Array(" HTTP/1.1\r\n".utf8)
        let hostField = try Self.hostField(host: host, port: port, isSecure: isSecure, fields: fields)
        hostField.append(to: &request)
        request += Array("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n".utf8)
        HTTPField("Sec-WebSocket-Key", self.key).append(to: &request)
        if !subprotocols.isEmpty {
            HTTPField("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", ")).append(to: &request)
        }
        if !offers.isEmpty {
            let list = offers.map(\.named.rendered).joined(separator: ", ")
            HTTPField("Sec-WebSocket-Extensions", list).append(to: &request)
        }
        for field in fields where !field.name.matchesIgnoringCase("Host") { field.append(to: &request) }
        self.request = request + Array("\r\n".utf8)
    }
}
