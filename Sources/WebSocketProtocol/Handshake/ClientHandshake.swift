/// The client's side of the opening handshake.
public struct ClientHandshake: Equatable, Sendable {
    /// Why a response does not open the WebSocket.
    public enum Failure: Error, Equatable, Sendable {
        /// Another status than 101.
        case refused(ResponseHead)
        /// A 101 that breaks a rule of RFC 6455 §4.1.
        case invalid(ResponseHead, String)
    }

    public struct Agreement: Equatable, Sendable {
        public let subprotocol: String?
        public let deflate: PermessageDeflateParameters?
    }

    public let authority: String
    public let target: String
    public let subprotocols: [String]
    public let offers: [PermessageDeflateOffer]
    public let fields: [HTTPField]

    public init(
        authority: String, target: String, subprotocols: [String] = [], offers: [PermessageDeflateOffer] = [],
        fields: [HTTPField] = []
    ) {
        self.authority = authority
        self.target = target
        self.subprotocols = subprotocols
        self.offers = offers
        self.fields = fields
    }

    /// - Parameter nonce: 16 random bytes.
    public func rendered(nonce: [UInt8]) -> [UInt8] {
        var head = Array("GET \(self.target) HTTP/1.1\r\n".utf8)
        var all = [
            HTTPField("Host", self.authority), HTTPField("Upgrade", "websocket"), HTTPField("Connection", "Upgrade"),
            HTTPField("Sec-WebSocket-Key", Base64.encode(nonce)), HTTPField("Sec-WebSocket-Version", "13"),
        ]
        if !self.subprotocols.isEmpty {
            all.append(HTTPField("Sec-WebSocket-Protocol", self.subprotocols.joined(separator: ", ")))
        }
        if !self.offers.isEmpty {
            all.append(HTTPField("Sec-WebSocket-Extensions", self.offers.map(\.named.rendered).joined(separator: ", ")))
        }
        for field in all + self.fields where field.isWellFormed { field.append(to: &head) }
        return head + Array("\r\n".utf8)
    }

    public func check(_ head: ResponseHead, nonce: [UInt8]) -> Result<Agreement, Failure> {
        guard head.status == 101 else { return .failure(.refused(head)) }
        guard head.fields.list("Upgrade", contains: "websocket"), head.fields.list("Connection", contains: "upgrade") else {
            return .failure(.invalid(head, "the response does not upgrade to websocket"))
        }
        guard head.fields.values("Sec-WebSocket-Accept") == [AcceptKey.answering(Base64.encode(nonce))] else {
            return .failure(.invalid(head, "Sec-WebSocket-Accept is wrong"))
        }
        let chosen = head.fields.values("Sec-WebSocket-Protocol")
        guard chosen.count <= 1, chosen.allSatisfy({ self.subprotocols.contains($0) }) else {
            return .failure(.invalid(head, "the subprotocol was not offered"))
        }
        guard let extensions = try? ExtensionGrammar.parse(head.fields.values("Sec-WebSocket-Extensions")) else {
            return .failure(.invalid(head, "Sec-WebSocket-Extensions is malformed"))
        }
        guard let first = extensions.first else { return .success(Agreement(subprotocol: chosen.first, deflate: nil)) }
        guard extensions.count == 1, let agreed = PermessageDeflateParameters(first),
            self.offers.contains(where: { agreed.answers($0) })
        else { return .failure(.invalid(head, "an extension was not offered like this")) }
        return .success(Agreement(subprotocol: chosen.first, deflate: agreed))
    }
}
