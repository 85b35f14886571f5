/// An opening request that passed every check of RFC 6455 §4.2.1.
public struct OpeningRequest: Equatable, Sendable {
    public let key: String
    public let origin: String?
    /// In the client's order of preference.
    public let subprotocols: [String]
    public let extensions: [NamedExtension]
}

/// The server's side of the opening handshake.
public enum ServerHandshake {
    /// Checks a request.
    public static func evaluate(_ head: RequestHead) -> Result<OpeningRequest, HandshakeRefusal> {
        guard head.version == .http11 else { return refuse(505, "Use HTTP/1.1.") }
        guard head.method == "GET" else { return refuse(405, "Use GET to open a WebSocket.", [HTTPField("Allow", "GET")]) }
        guard head.fields.values("Host").count == 1 else { return refuse(400, "Send exactly one Host field.") }
        guard head.fields.list("Upgrade", contains: "websocket"), head.fields.list("Connection", contains: "upgrade") else {
            return refuse(
                426, "This is a WebSocket endpoint; connect to it with a WebSocket client.",
                [HTTPField("Upgrade", "websocket"), HTTPField("Connection", "Upgrade"), HTTPField("Sec-WebSocket-Version", "13")])
        }
        let keys = head.fields.values("Sec-WebSocket-Key")
        guard keys.count == 1, let key = keys.first, Base64.decodedCount(key) == 16 else {
            return refuse(400, "Send exactly one Sec-WebSocket-Key of 16 bytes in Base64.")
        }
        guard head.fields.values("Sec-WebSocket-Version") == ["13"] else {
            return refuse(426, "Use version 13 of the WebSocket protocol.", [HTTPField("Sec-WebSocket-Version", "13")])
        }
        let extensions: [NamedExtension]
        do throws(ExtensionSyntaxViolation) {
            extensions = try ExtensionGrammar.parse(head.fields.values("Sec-WebSocket-Extensions"))
        } catch {
            return refuse(400, "Sec-WebSocket-Extensions is malformed.")
        }
        return .success(
            OpeningRequest(
                key: key, origin: head.fields["Origin"], subprotocols: head.fields.list("Sec-WebSocket-Protocol"),
                extensions: extensions))
    }

    private static func refuse(
        _ status: Int, _ text: String, _ fields: [HTTPField] = []
    ) -> Result<OpeningRequest, HandshakeRefusal> {
        .failure(HandshakeRefusal(status: status, explanation: text, fields: fields))
    }
}

/// The 101 with what was agreed on.
public struct HandshakeAcceptance: Equatable, Sendable {
    public let subprotocol: String?
    public let deflate: PermessageDeflateParameters?
    /// The response as it goes out.
    public let response: [UInt8]
}

extension OpeningRequest {
    /// Accepts, choosing the first of `subprotocols` that the client offered.
    public func acceptance(subprotocols: [String], deflate: DeflatePolicy?) -> HandshakeAcceptance {
        self.acceptance(subprotocol: subprotocols.first { self.subprotocols.contains($0) }, deflate: deflate)
    }

    /// Accepts with this subprotocol, left out if the client did not offer it.
    public func acceptance(subprotocol: String?, deflate: DeflatePolicy?) -> HandshakeAcceptance {
        let chosen = subprotocol.flatMap { self.subprotocols.contains($0) ? $0 : nil }
        let agreed = deflate?.choose(among: self.extensions)
        var head = Array("HTTP/1.1 101 Switching Protocols\r\n".utf8)
        var fields = [
            HTTPField("Upgrade", "websocket"), HTTPField("Connection", "Upgrade"),
            HTTPField("Sec-WebSocket-Accept", AcceptKey.answering(self.key)),
        ]
        if let chosen { fields.append(HTTPField("Sec-WebSocket-Protocol", chosen)) }
        if let agreed { fields.append(HTTPField("Sec-WebSocket-Extensions", agreed.named.rendered)) }
        for field in fields { field.append(to: &head) }
        return HandshakeAcceptance(subprotocol: chosen, deflate: agreed, response: head + Array("\r\n".utf8))
    }
}
