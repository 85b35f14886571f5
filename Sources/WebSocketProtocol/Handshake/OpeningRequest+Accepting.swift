extension OpeningRequest {
    /// Accepts, choosing the first subprotocol of the client's list that is among `subprotocols`, if there is one.
    ///
    /// The rest is as in `acceptance(subprotocol:deflate:fields:)`.
    public func acceptance(
        subprotocols: [String], deflate policy: DeflatePolicy?, fields: [HTTPField] = []
    ) -> HandshakeAcceptance {
        let preferred = self.subprotocols.first { subprotocols.contains($0) }
        return self.acceptance(subprotocol: preferred, deflate: policy, fields: fields)
    }

    /// Accepts the request.
    ///
    /// - Parameters:
    ///   - subprotocol: left out of the response if the client did not offer it, for it would have to fail the
    ///     connection.
    ///   - policy: how to answer an offer of permessage-deflate; `nil` declines it.
    ///   - fields: further fields of the response, such as cookies. Malformed ones and the handshake's own are left
    ///     out.
    /// - Source: RFC 6455 §4.2.2.
    public func acceptance(
        subprotocol: String?, deflate policy: DeflatePolicy?, fields: [HTTPField] = []
    ) -> HandshakeAcceptance {
        let chosen = subprotocol.flatMap { self.subprotocols.contains($0) ? $0 : nil }
        let deflate = policy?.choose(among: self.extensions)
        var response: [UInt8] = []
        response.reserveCapacity(224)
        response.append(
            contentsOf: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".utf8)
        response.append(contentsOf: "Sec-WebSocket-Accept: ".utf8)
        AcceptKey.append(answering: self.key, to: &response)
        response.append(contentsOf: "\r\n".utf8)
        if let chosen { HTTPField("Sec-WebSocket-Protocol", chosen).append(to: &response) }
        if let deflate { HTTPField("Sec-WebSocket-Extensions", deflate.named.rendered).append(to: &response) }
        for field in fields where field.isWellFormed && !ReservedFields.inResponse(field.name) {
            field.append(to: &response)
        }
        response.append(contentsOf: "\r\n".utf8)
        return HandshakeAcceptance(response: response, subprotocol: chosen, deflate: deflate)
    }
}
