extension OpeningRequest {
    /// Accepts the request.
    ///
    /// - Parameters:
    ///   - subprotocol: one of those offered; `nil` to choose none.
    ///   - policy: how to answer an offer of permessage-deflate; `nil` declines it.
    ///   - fields: further fields of the response, such as cookies.
    /// - Throws: for a subprotocol that was not offered, and for a field that is malformed or the handshake's own.
    /// - Source: RFC 6455 §4.2.2.
    public func accept(
        subprotocol: String? = nil, deflate policy: DeflatePolicy? = nil, fields: [HTTPField] = []
    ) throws(HandshakeUsageError) -> ServerAcceptance {
        try ReservedFields.check(fields, others: ["Sec-WebSocket-Protocol"])
        if let subprotocol, !self.subprotocols.contains(subprotocol) { throw .subprotocolNotOffered(subprotocol) }
        let deflate = policy?.choose(among: self.extensions)

        var response = Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".utf8)
        HTTPField("Sec-WebSocket-Accept", AcceptKey.answering(self.key)).append(to: &response)
        if let subprotocol { HTTPField("Sec-WebSocket-Protocol", subprotocol).append(to: &response) }
        if let deflate { HTTPField("Sec-WebSocket-Extensions", deflate.named.rendered).append(to: &response) }
        for field in fields { field.append(to: &response) }
        response.append(contentsOf: "\r\n".utf8)
        return ServerAcceptance(response: response, subprotocol: subprotocol, deflate: deflate)
    }

    /// The first subprotocol of the client's list that is among `supported`; `nil` when none is.
    public func preferredSubprotocol(among supported: [String]) -> String? {
        self.subprotocols.first { supported.contains($0) }
    }
}
