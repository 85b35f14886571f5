import WireText

/// The server's side of the opening handshake: the check of the request.
public enum ServerHandshake {
    /// Checks the request (RFC 6455 §4.2.1). The caller decides on path, origin and admission.
    ///
    /// - Returns: a refusal with 405 for another method, 505 for HTTP/2 and later, 426 for a request that does not
    ///   upgrade to WebSocket version 13, and 400 for every other violation.
    public static func evaluate(_ head: RequestHead) -> Result<OpeningRequest, HandshakeRefusal> {
        do throws(HandshakeRefusal) {
            return .success(try self.check(head))
        } catch {
            return .failure(error)
        }
    }

    /// As `evaluate`, throwing the refusal.
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
        guard Authority.isWellFormed(host) else { throw .malformed("The Host field is not a valid host.") }
        return host
    }

    private static func checkUpgrade(_ head: RequestHead) throws(HandshakeRefusal) {
        guard head.fields.list("Upgrade", contains: "websocket") else {
            throw .upgradeRequired("This is a WebSocket endpoint; connect with a WebSocket client.")
        }
        guard head.fields.list("Connection", contains: "upgrade") else {
            throw .upgradeRequired(
                "The Connection field lacks 'Upgrade'; if a proxy removed it, configure the proxy to forward upgrades.")
        }
        // Upgrade in HTTP/1.0 must be ignored: RFC 9110 §7.8.
        guard head.version >= .http11 else {
            throw .upgradeRequired("HTTP/1.0 does not support upgrades; use HTTP/1.1, also in proxies.")
        }
        let version = head.fields.single("Sec-WebSocket-Version")
        guard !version.isRepeated else {
            throw .malformed("There is more than one Sec-WebSocket-Version field.")
        }
        guard version.first?.utf8.elementsEqual("13".utf8) == true else {
            throw .upgradeRequired(
                "Only version 13 of the WebSocket protocol is supported; send Sec-WebSocket-Version: 13.")
        }
    }

    /// Bytes after the head are frames. A proxy could treat them as a body if the request declared one.
    private static func checkHasNoBody(_ head: RequestHead) throws(HandshakeRefusal) {
        let lengths = head.fields.values("Content-Length")
        guard lengths.allSatisfy({ $0.utf8.elementsEqual("0".utf8) }), head.fields["Transfer-Encoding"] == nil else {
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
            throw .malformed("Sec-WebSocket-Protocol is not a list of tokens.")
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

/// A valid opening handshake of a client (RFC 6455 §4.2.1), not accepted yet.
public struct OpeningRequest: Equatable, Sendable {
    public let head: RequestHead
    /// Path and query, percent-encoded as received; begins with `/`.
    public let resourceName: String
    /// Host and port of the target or the Host field.
    public let host: String
    /// `Sec-WebSocket-Key`.
    public let key: String
    /// The offered subprotocols in the client's order of preference.
    public let subprotocols: [String]
    /// The offered extensions in the client's order of preference.
    public let extensions: [WebSocketExtension]

    /// The part of the resource name before the first `?`.
    public var path: String { String(self.resourceName.prefix { $0 != "?" }) }

    /// The part of the resource name after the first `?`; `nil` without one.
    public var query: String? {
        self.resourceName.firstIndex(of: "?").map { String(self.resourceName[self.resourceName.index(after: $0)...]) }
    }

    /// The origin of the page in a browser; other clients may omit or forge it (RFC 6455 §10.2).
    public var origin: String? { self.head.fields["Origin"] }

    /// Accepts the request with the first of the client's subprotocols that is in `subprotocols`, if any; otherwise as
    /// `acceptance(subprotocol:deflate:fields:)`.
    public func acceptance(
        subprotocols: [String], deflate policy: DeflatePolicy?, fields: [HTTPField] = []
    ) -> HandshakeAcceptance {
        let preferred = self.subprotocols.first { subprotocols.contains($0) }
        return self.acceptance(subprotocol: preferred, deflate: policy, fields: fields)
    }

    /// Accepts the request.
    ///
    /// - Parameters:
    ///   - subprotocol: omitted if the client did not offer it, because the client would have to fail the connection.
    ///   - policy: the policy for permessage-deflate offers; `nil` declines them.
    ///   - fields: further fields of the response, such as cookies. Malformed and reserved ones are left out.
    /// - Source: RFC 6455 §4.2.2.
    public func acceptance(
        subprotocol: String?, deflate policy: DeflatePolicy?, fields: [HTTPField] = []
    ) -> HandshakeAcceptance {
        let chosen = subprotocol.flatMap { self.subprotocols.contains($0) ? $0 : nil }
        let deflate = policy?.choose(among: self.extensions)
        var head = HeadWriter(status: 101, reason: ReasonPhrase.of(101))
        head.add("Upgrade", "websocket")
        head.add("Connection", "Upgrade")
        head.add("Sec-WebSocket-Accept", AcceptKey.value(for: self.key))
        if let chosen { head.add("Sec-WebSocket-Protocol", chosen) }
        if let deflate { head.add("Sec-WebSocket-Extensions", deflate.extensionElement.rendered) }
        for field in fields where field.isWellFormed && !ReservedFields.inResponse(field.name) { head.add(field) }
        return HandshakeAcceptance(response: head.finished(), subprotocol: chosen, deflate: deflate)
    }
}

/// The server's 101 response with the negotiated parameters.
public struct HandshakeAcceptance: Equatable, Sendable {
    /// The encoded 101 response; frames may follow immediately.
    public let response: [UInt8]
    /// The selected subprotocol, if any.
    public let subprotocol: String?
    /// The negotiated compression, if any.
    public let deflate: PermessageDeflateParameters?
}

/// The server's refusal of an opening handshake: an HTTP response other than 101, after which the connection is closed.
public struct HandshakeRefusal: Error, Equatable, Sendable {
    /// 400 to 599.
    public let status: Int
    /// One line for a human: the problem and its remedy.
    public let explanation: String
    /// Fields in addition to those of every refusal.
    public let fields: [HTTPField]
    /// The cause in words for the server's log, which the client does not get; `nil` if the status says it all.
    package let detail: String?

    public init(status: Int, explanation: String, fields: [HTTPField] = []) {
        self.init(status: status, explanation: explanation, fields: fields, detail: nil)
    }

    package init(status: Int, explanation: String, fields: [HTTPField], detail: String?) {
        self.status = status
        self.explanation = explanation
        self.fields = fields
        self.detail = detail
    }

    /// The refusal of a malformed head: 431 beyond a limit, else 400.
    public init(_ violation: HeadViolation) {
        self.init(status: violation.status, explanation: violation.explanation)
    }

    /// The same with these fields too.
    package func adding(_ fields: [HTTPField]) -> HandshakeRefusal {
        HandshakeRefusal(
            status: self.status, explanation: self.explanation, fields: self.fields + fields, detail: self.detail)
    }

    /// The encoded response with the explanation as a plain text body.
    ///
    /// Leaves out malformed fields and replaces control characters in the explanation by spaces, so that it cannot
    /// fail.
    public func rendered() -> [UInt8] { self.rendered(isHead: false) }

    /// - Parameters:
    ///   - isHead: whether it is the response to HEAD, which has no body (RFC 9110 §9.3.2).
    ///   - date: value of the field `Date`, which a server with a clock must send (RFC 9110 §6.6.1).
    package func rendered(isHead: Bool, date: String? = nil) -> [UInt8] {
        let line = self.explanation.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }
        let body = Array(String(String.UnicodeScalarView(line)).utf8) + [0x0A]
        // A sender of Upgrade must list it in Connection: RFC 9110 §7.8.
        let namesUpgrade = self.fields.contains { $0.name.matchesIgnoringCase("Upgrade") }
        var head = HeadWriter(status: self.status, reason: ReasonPhrase.of(self.status))
        if let date { head.add("Date", date) }
        for field in self.fields where field.isWellFormed { head.add(field) }
        head.add("Content-Type", "text/plain; charset=utf-8")
        head.add("Content-Length", String(body.count))
        head.add("Connection", namesUpgrade ? "close, Upgrade" : "close")
        return head.finished() + (isHead ? [] : body)
    }

    /// 400: the request violates the protocol.
    public static func malformed(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(status: 400, explanation: explanation)
    }

    /// 400: the target is not a valid path.
    public static let malformedTarget = HandshakeRefusal.malformed(
        "The request target is not a valid path; it must begin with / and be percent-encoded.")

    /// 403: the origin is not allowed (RFC 6455 §4.2.2).
    public static let originRefused = HandshakeRefusal(
        status: 403,
        explanation: "This origin is not allowed; check the server's list of allowed origins.")

    public static let noRoute = HandshakeRefusal(
        status: 404, explanation: "No route matches this host and path; check the URL.")

    /// 405: an opening handshake is a GET.
    public static let wrongMethod = HandshakeRefusal(
        status: 405, explanation: "This is a WebSocket endpoint; use GET with an upgrade.",
        fields: [HTTPField("Allow", "GET")])

    /// 426: the request has no valid upgrade to WebSocket.
    public static func upgradeRequired(_ explanation: String) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 426, explanation: explanation,
            fields: [HTTPField("Upgrade", "websocket"), HTTPField("Sec-WebSocket-Version", "13")])
    }

    /// 429: rate limit exceeded.
    /// - Parameter retryAfter: seconds until the client should retry.
    public static func tooManyRequests(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 429, explanation: "Too many connections from this address; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: connection limit reached.
    /// - Parameter retryAfter: seconds until the client should retry.
    public static func unavailable(retryAfter: Int) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 503, explanation: "The server has reached its connection limit; try again in \(retryAfter) s.",
            fields: [HTTPField("Retry-After", String(retryAfter))])
    }

    /// 503: the server is draining.
    public static let goingAway = HandshakeRefusal(
        status: 503, explanation: "This server is shutting down; try another or try again later.")

    public static let wrongHTTPVersion = HandshakeRefusal(
        status: 505, explanation: "The opening handshake requires HTTP/1.1.")
}
