/// The server's side of the opening handshake: is this request one that we can accept?
public enum ServerHandshake {
    /// Checks everything that RFC 6455 §4.2.1 demands of a client's request.
    ///
    /// Whether we want to serve it (path, origin, admission) is decided beside this.
    /// - Returns: else 405 for another method, 505 for HTTP/2 and later, 426 where the request asks for no WebSocket of
    ///   version 13, and 400 for every other rule broken.
    public static func evaluate(_ head: RequestHead) -> Result<OpeningRequest, HandshakeRefusal> {
        do throws(HandshakeRefusal) {
            return .success(try self.check(head))
        } catch {
            return .failure(error)
        }
    }

    /// As `evaluate`.
    package static func check(_ head: RequestHead) throws(HandshakeRefusal) -> OpeningRequest {
        guard head.version.major < 2 else { throw .wrongHTTPVersion }
        guard head.method == "GET" else { throw .wrongMethod }
        let host = try self.host(head)
        let resource = try ResourceName.read(head.target)
        try self.checkUpgrade(head)
        try self.checkHasNoBody(head)
        let key = try self.key(head)
        guard !head.fields.only("Origin").isRepeated else { throw .malformed("There is more than one Origin field.") }
        return OpeningRequest(
            head: head, resourceName: resource.name, host: resource.authority ?? host, key: key,
            subprotocols: try self.subprotocols(head), extensions: try self.extensions(head))
    }

    private static func host(_ head: RequestHead) throws(HandshakeRefusal) -> String {
        let field = head.fields.only("Host")
        guard let host = field.first else { throw .malformed("The Host field is missing.") }
        guard field.occursOnce else { throw .malformed("There is more than one Host field.") }
        guard Authority.isWellFormed(host) else { throw .malformed("The Host field does not name a host.") }
        return host
    }

    private static func checkUpgrade(_ head: RequestHead) throws(HandshakeRefusal) {
        guard head.fields.list("Upgrade", contains: "websocket") else {
            throw .upgradeRequired("This is a WebSocket endpoint; connect with a WebSocket client.")
        }
        guard head.fields.list("Connection", contains: "upgrade") else {
            throw .upgradeRequired(
                "The Connection field lacks 'Upgrade'; a proxy in between may have removed it, let it pass upgrades.")
        }
        // Such an upgrade is to be ignored: RFC 9110 §7.8.
        guard head.version >= .http11 else {
            throw .upgradeRequired("HTTP/1.0 cannot be upgraded; use HTTP/1.1, also in proxies in between.")
        }
        let version = head.fields.only("Sec-WebSocket-Version")
        guard !version.isRepeated else {
            throw .malformed("There is more than one Sec-WebSocket-Version field.")
        }
        guard version.first == "13" else {
            throw .upgradeRequired("Only version 13 of the WebSocket protocol is spoken here; ask for it.")
        }
    }

    /// What follows the head is taken for frames, so there must not be a body that a proxy in between sees differently.
    private static func checkHasNoBody(_ head: RequestHead) throws(HandshakeRefusal) {
        let lengths = head.fields.values("Content-Length")
        guard lengths.allSatisfy({ $0 == "0" }), head.fields["Transfer-Encoding"] == nil else {
            throw .malformed("An opening handshake has no body; leave out Content-Length and Transfer-Encoding.")
        }
    }

    private static func key(_ head: RequestHead) throws(HandshakeRefusal) -> String {
        let field = head.fields.only("Sec-WebSocket-Key")
        guard let key = field.first else {
            throw .malformed("The Sec-WebSocket-Key field is missing.")
        }
        guard field.occursOnce else {
            throw .malformed("There is more than one Sec-WebSocket-Key field.")
        }
        guard Base64.decodedCount(key) == 16 else {
            throw .malformed("Sec-WebSocket-Key must be 16 bytes in Base64, 24 characters in all.")
        }
        return key
    }

    private static func subprotocols(_ head: RequestHead) throws(HandshakeRefusal) -> [String] {
        guard head.fields["Sec-WebSocket-Protocol"] != nil else { return [] }
        let offered = head.fields.list("Sec-WebSocket-Protocol")
        guard !offered.isEmpty, offered.allSatisfy(\.isToken) else {
            throw .malformed("Sec-WebSocket-Protocol is not a list of names.")
        }
        return offered
    }

    private static func extensions(_ head: RequestHead) throws(HandshakeRefusal) -> [NamedExtension] {
        do {
            return try ExtensionGrammar.parse(head.fields.values("Sec-WebSocket-Extensions"))
        } catch {
            throw .malformed("Sec-WebSocket-Extensions is not a list of extensions.")
        }
    }
}
