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
        guard !head.fields.single("Origin").isRepeated else { throw .malformed("There is more than one Origin field.") }
        return OpeningRequest(
            head: head, resourceName: resource.name, host: resource.authority ?? host, key: key,
            subprotocols: try self.subprotocols(head), extensions: try self.extensions(head))
    }

    private static func host(_ head: RequestHead) throws(HandshakeRefusal) -> String {
        let field = head.fields.single("Host")
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
        let version = head.fields.single("Sec-WebSocket-Version")
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
        let field = head.fields.single("Sec-WebSocket-Key")
        guard let key = field.first else {
            throw .malformed("The Sec-WebSocket-Key field is missing.")
        }
        guard field.occursOnce else {
            throw .malformed("There is more than one Sec-WebSocket-Key field.")
        }
        guard Base64.decodedByteCount(key) == 16 else {
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

    private static func extensions(_ head: RequestHead) throws(HandshakeRefusal) -> [WebSocketExtension] {
        do {
            return try ExtensionGrammar.parse(head.fields.values("Sec-WebSocket-Extensions"))
        } catch {
            throw .malformed("Sec-WebSocket-Extensions is not a list of extensions.")
        }
    }
}

/// A client's opening handshake that has passed every check of RFC 6455 §4.2.1, waiting for our decision.
public struct OpeningRequest: Equatable, Sendable {
    /// The request as it came.
    public let head: RequestHead
    /// Path and query as they were written, percent-encoding included; begins with `/`.
    public let resourceName: String
    /// Host and port as the client names them.
    public let host: String
    /// `Sec-WebSocket-Key`.
    public let key: String
    /// In the client's order of preference.
    public let subprotocols: [String]
    /// All extensions offered, in the client's order of preference.
    public let extensions: [WebSocketExtension]

    init(
        head: RequestHead, resourceName: String, host: String, key: String, subprotocols: [String],
        extensions: [WebSocketExtension]
    ) {
        self.head = head
        self.resourceName = resourceName
        self.host = host
        self.key = key
        self.subprotocols = subprotocols
        self.extensions = extensions
    }

    /// The part of the resource name before the first `?`.
    public var path: String { String(self.resourceName.prefix { $0 != "?" }) }

    /// The part of the resource name behind the first `?`; `nil` without one.
    public var query: String? {
        self.resourceName.firstIndex(of: "?").map { String(self.resourceName[self.resourceName.index(after: $0)...]) }
    }

    /// The page that a browser connects for; other clients mostly send none. It proves nothing of them (RFC 6455
    /// §10.2).
    public var origin: String? { self.head.fields["Origin"] }

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
        if let deflate {
            HTTPField("Sec-WebSocket-Extensions", deflate.extensionElement.rendered).append(to: &response)
        }
        for field in fields where field.isWellFormed && !ReservedFields.inResponse(field.name) {
            field.append(to: &response)
        }
        response.append(contentsOf: "\r\n".utf8)
        return HandshakeAcceptance(response: response, subprotocol: chosen, deflate: deflate)
    }
}

/// The server's yes, and what both sides have agreed on with it.
public struct HandshakeAcceptance: Equatable, Sendable {
    /// The whole 101 response; frames follow it at once.
    public let response: [UInt8]
    /// The subprotocol chosen, if any.
    public let subprotocol: String?
    /// Compression, if agreed on.
    public let deflate: PermessageDeflateParameters?
}

/// A server's no to an opening handshake: an HTTP response other than 101, after which the connection is closed.
public struct HandshakeRefusal: Error, Equatable, Sendable {
    /// 400 to 599.
    public let status: Int
    /// One line for a person: what is wrong and what to do about it.
    public let explanation: String
    /// Fields beyond those that every refusal has.
    public let fields: [HTTPField]

    public init(status: Int, explanation: String, fields: [HTTPField] = []) {
        self.status = status
        self.explanation = explanation
        self.fields = fields
    }

    /// The refusal of a head that could not be read: 431 beyond a limit, else 400.
    public init(_ violation: HeadViolation) {
        self.init(status: violation.status, explanation: violation.explanation)
    }

    /// The whole response, body included: the explanation as plain text. The connection ends behind it.
    ///
    /// Fields that are not well-formed are left out, and control characters in the explanation become spaces: a refusal
    /// must never fail.
    public func rendered() -> [UInt8] {
        let line = self.explanation.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }
        let body = Array(String(String.UnicodeScalarView(line)).utf8) + [0x0A]
        // Whoever sends Upgrade says so in Connection: RFC 9110 §7.8.
        let namesUpgrade = self.fields.contains { $0.name.matchesIgnoringCase("Upgrade") }
        var head = Array("HTTP/1.1 \(self.status) \(ReasonPhrase.of(self.status))\r\n".utf8)
        for field in self.fields where field.isWellFormed { field.append(to: &head) }
        HTTPField("Content-Type", "text/plain; charset=utf-8").append(to: &head)
        HTTPField("Content-Length", String(body.count)).append(to: &head)
        HTTPField("Connection", namesUpgrade ? "close, Upgrade" : "close").append(to: &head)
        return head + Array("\r\n".utf8) + body
    }

    /// 400: the request breaks a rule.
    public static func malformed(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(status: 400, explanation: explanation)
    }

    /// 400: the target is no path, or one that cannot be decoded.
    public static let malformedTarget = HandshakeRefusal.malformed(
        "The request target is not a path that can be read; begin it with / and check its percent signs.")

    /// 403: we do not serve this origin (RFC 6455 §4.2.2).
    public static let originRefused = HandshakeRefusal(
        status: 403,
        explanation: "Pages of this origin may not connect here; the server's list of allowed origins decides.")

    /// 404: nothing is behind this path.
    public static let noRoute = HandshakeRefusal(
        status: 404, explanation: "Nothing answers at this host and path; check the URL.")

    /// 405: an opening handshake is a GET.
    public static let wrongMethod = HandshakeRefusal(
        status: 405, explanation: "This is a WebSocket endpoint; use GET with an upgrade.",
        fields: [HTTPField("Allow", "GET")])

    /// 426: the request does not ask for a WebSocket, or in a way that has no effect.
    public static func upgradeRequired(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 426, explanation: explanation,
            fields: [HTTPField("Upgrade", "websocket"), HTTPField("Sec-WebSocket-Version", "13")])
    }

    /// 429: this client asks too often.
    /// - Parameter retryAfter: seconds until it makes sense to ask again.
    public static func tooManyRequests(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 429, explanation: "Too many connections from this address; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: we are at our limit.
    /// - Parameter retryAfter: seconds until it makes sense to ask again.
    public static func unavailable(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 503, explanation: "The server takes no more connections now; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: we are about to stop.
    public static let goingAway = HandshakeRefusal(
        status: 503, explanation: "This server is shutting down; try another or try again later.")

    /// 505: not HTTP/1.1.
    public static let wrongHTTPVersion = HandshakeRefusal(
        status: 505, explanation: "The opening handshake of a WebSocket needs HTTP/1.1 here.")
}
