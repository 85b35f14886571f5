import Testing
import WebSocketProtocol

@Suite("Opening handshake of the client, RFC 6455 §4.1")
struct ClientHandshakeTests {
    /// "the sample nonce" of RFC 6455 §1.3.
    static let nonce = Array("the sample nonce".utf8)
    private static let offer = PermessageDeflateOffer()

    private static func rendered(_ handshake: ClientHandshake) throws -> RequestHead {
        try #require(HeadFeeding.request([handshake.rendered(nonce: self.nonce)]).head)
    }

    @Test func exampleRequestOfTheRFCIsWritten() throws {
        let handshake = try ClientHandshake(
            host: "server.example.com", isSecure: false, target: "/chat", subprotocols: ["chat", "superchat"],
            fields: [HTTPField("Origin", "http://example.com")])
        let head = try Self.rendered(handshake)
        let example = try #require(HeadFeeding.request(RequestParserTests.example).head)
        #expect(head.method == "GET")
        #expect(head.target == "/chat")
        #expect(Set(head.fields.all.map(\.name)) == Set(example.fields.all.map(\.name)))
        for field in example.fields.all { #expect(head.fields[field.name] == field.value) }
        #expect(head.fields.all.first?.name == "Host")
    }

    @Test func clientsRequestIsAcceptedByTheServer() throws {
        let handshake = ClientHandshake(
            authority: "h:1", target: "/x?y", subprotocols: ["a", "b"], offers: DeflatePolicy(peerWindowBits: 10).offers
        )
        let request = try ServerHandshake.evaluate(Self.rendered(handshake)).get()
        let acceptance = request.acceptance(subprotocols: ["b"], deflate: DeflatePolicy(peerContextTakeover: false))
        let response = try #require(HeadFeeding.response([acceptance.response]).head)
        let agreement = try handshake.check(response, nonce: Self.nonce).get()
        #expect(agreement.subprotocol == "b")
        #expect(agreement.deflate == acceptance.deflate)
        #expect(agreement.deflate?.serverMaxWindowBits == 10)
        #expect(agreement.deflate?.clientNoContextTakeover == true)
    }

    @Test func serverMayKeepItsContextAgainstTheRequest() throws {
        let policy = DeflatePolicy(ownContextTakeover: false, peerContextTakeover: false)
        let handshake = ClientHandshake(authority: "h", target: "/", offers: policy.offers)
        let response = Self.response(with: [("Sec-WebSocket-Extensions", "permessage-deflate")])
        let agreed = try handshake.check(response, nonce: Self.nonce).get().deflate
        #expect(agreed == PermessageDeflateParameters(clientNoContextTakeover: true))
    }

    /// libsoup accepts each offer, and an extension that is accepted twice fails the connection.
    @Test func serverThatAcceptsEachOfferAcceptsOne() throws {
        let policy = DeflatePolicy(ownContextTakeover: false, peerContextTakeover: false)
        let handshake = ClientHandshake(authority: "h", target: "/", offers: policy.offers)
        let accepted = policy.offers.compactMap { DeflatePolicy().accept($0)?.extensionElement.rendered }
        let response = Self.response(with: [("Sec-WebSocket-Extensions", accepted.joined(separator: ", "))])
        #expect(try handshake.check(response, nonce: Self.nonce).get().deflate?.serverNoContextTakeover == true)
    }

    @Test(
        arguments: [
            ("example.com", nil, false, "example.com"), ("example.com", 80, false, "example.com"),
            ("example.com", 443, true, "example.com"), ("example.com", 443, false, "example.com:443"),
            ("example.com", 80, true, "example.com:80"), ("::1", 8080, false, "[::1]:8080"),
            ("[::1]", nil, true, "[::1]"),
            ("fe80::1%eth0", nil, false, "[fe80::1]"), ("127.0.0.1", 1, true, "127.0.0.1:1"),
        ] as [(String, Int?, Bool, String)])
    func hostFieldIsWrittenAsInURLs(host: String, port: Int?, isSecure: Bool, expected: String) throws {
        let handshake = try ClientHandshake(host: host, port: port, isSecure: isSecure, target: "")
        let head = try Self.rendered(handshake)
        #expect(head.fields["Host"] == expected)
        #expect(head.target == "/")
    }

    @Test func callersHostAndSubprotocolsAreWrittenUnchanged() throws {
        let handshake = ClientHandshake(
            authority: "a", target: "/",
            fields: [HTTPField("host", "b:81"), HTTPField("Sec-WebSocket-Protocol", "x,y ,z")])
        try handshake.validate()
        let head = try Self.rendered(handshake)
        #expect(head.fields.values("Host") == ["b:81"])
        #expect(head.fields.values("Sec-WebSocket-Protocol") == ["x,y ,z"])
        let response = Self.response(with: [("Sec-WebSocket-Protocol", "y")])
        #expect(try handshake.check(response, nonce: Self.nonce).get().subprotocol == "y")
    }

    static let unusable: [(handshake: ClientHandshake, error: HandshakeUsageError)] = [
        (
            ClientHandshake(authority: "a", target: "/", fields: [HTTPField("X", "y\r\nZ: w")]),
            .malformedField(HTTPField("X", "y\r\nZ: w"))
        ),
        (
            ClientHandshake(authority: "a", target: "/", fields: [HTTPField("X\n", "y")]),
            .malformedField(HTTPField("X\n", "y"))
        ),
        (ClientHandshake(authority: "a", target: "/", fields: [HTTPField("upgrade", "x")]), .reservedField("upgrade")),
        (
            ClientHandshake(authority: "a", target: "/", fields: [HTTPField("Sec-WebSocket-Key", "x")]),
            .reservedField("Sec-WebSocket-Key")
        ),
        (
            ClientHandshake(authority: "a", target: "/", fields: [HTTPField("Host", "b"), HTTPField("Host", "c")]),
            .reservedField("Host")
        ),
        (ClientHandshake(authority: "a", target: "/ x HTTP/1.1\r\nY: z"), .malformedTarget("/ x HTTP/1.1\r\nY: z")),
        (ClientHandshake(authority: "a", target: "x"), .malformedTarget("x")),
        (ClientHandshake(authority: "a", target: "/x#y"), .malformedTarget("/x#y")),
        (ClientHandshake(authority: "a", target: "/é"), .malformedTarget("/é")),
        (ClientHandshake(authority: "a\r\nX: y", target: "/"), .malformedAuthority("a\r\nX: y")),
        (ClientHandshake(authority: "", target: "/"), .malformedAuthority("")),
        (ClientHandshake(authority: "a:99999", target: "/"), .malformedAuthority("a:99999")),
        (ClientHandshake(authority: "a", target: "/", subprotocols: ["a,b"]), .malformedSubprotocol("a,b")),
        (ClientHandshake(authority: "a", target: "/", subprotocols: [""]), .malformedSubprotocol("")),
        (ClientHandshake(authority: "a", target: "/", subprotocols: ["x", "x"]), .repeatedSubprotocol("x")),
        (
            ClientHandshake(
                authority: "a", target: "/", subprotocols: ["x"], fields: [HTTPField("sec-websocket-protocol", "y")]),
            .subprotocolsGivenTwice
        ),
        (
            ClientHandshake(authority: "a", target: "/", offers: [PermessageDeflateOffer(serverMaxWindowBits: 7)]),
            .malformedOffer(PermessageDeflateOffer(serverMaxWindowBits: 7))
        ),
    ]

    @Test(arguments: unusable)
    func invalidRequestFieldIsRefused(handshake: ClientHandshake, error: HandshakeUsageError) {
        #expect(throws: error) { try handshake.validate() }
    }

    @Test(arguments: unusable)
    func anyInputGivesOneRequestWithoutForeignLines(handshake: ClientHandshake, error: HandshakeUsageError) {
        let bytes = handshake.rendered(nonce: Self.nonce)
        let outcome = HeadFeeding.request([bytes])
        #expect(outcome.violation == nil)
        #expect(outcome.consumed == bytes.count)
        for name in ["X", "Y", "Z"] { #expect(outcome.head?.fields[name] == nil) }
        #expect(outcome.head?.fields.values("Sec-WebSocket-Key").count == 1)
        #expect(outcome.head?.fields.values("Upgrade") == ["websocket"])
        #expect(outcome.head?.fields.values("Host").count == 1)
    }

    private static func response(
        _ status: Int = 101, version: HTTPVersion = .http11, without: [String] = [], with added: [(String, String)] = []
    ) -> ResponseHead {
        let usual = [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ]
        let kept = usual.filter { !without.contains($0.0) } + added
        return ResponseHead(version: version, status: status, fields: HTTPFields(kept.map { HTTPField($0.0, $0.1) }))
    }

    @Test func validResponseOpensWithTheAcceptedParameters() throws {
        let handshake = ClientHandshake(authority: "h", target: "/", subprotocols: ["chat"], offers: [Self.offer])
        let plain = try handshake.check(Self.response(), nonce: Self.nonce).get()
        #expect(plain.response == Self.response())
        #expect(plain.subprotocol == nil)
        #expect(plain.deflate == nil)
        let full = Self.response(
            without: ["Upgrade", "Connection"],
            with: [
                ("upgrade", "WebSocket"), ("connection", "keep-alive, UPGRADE"), ("Sec-WebSocket-Protocol", "chat"),
                ("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=\"10\""),
            ])
        let agreed = try handshake.check(full, nonce: Self.nonce).get()
        #expect(agreed.subprotocol == "chat")
        #expect(agreed.deflate == PermessageDeflateParameters(serverMaxWindowBits: 10))
    }

    static let invalid: [(response: ResponseHead, violation: HandshakeViolation)] = [
        (response(version: HTTPVersion(1, 0)), .wrongHTTPVersion), (response(without: ["Upgrade"]), .missingUpgrade),
        (response(without: ["Upgrade"], with: [("Upgrade", "h2c")]), .missingUpgrade),
        (response(without: ["Connection"]), .missingConnectionUpgrade),
        (response(without: ["Connection"], with: [("Connection", "close")]), .missingConnectionUpgrade),
        (response(without: ["Sec-WebSocket-Accept"]), .wrongAccept),
        (response(with: [("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")]), .wrongAccept),
        (
            response(
                without: ["Sec-WebSocket-Accept"], with: [("Sec-WebSocket-Accept", "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=")]),
            .wrongAccept
        ),
        (response(with: [("Sec-WebSocket-Protocol", "Chat")]), .subprotocolNotOffered("Chat")),
        (response(with: [("Sec-WebSocket-Protocol", "")]), .subprotocolNotOffered("")),
        (response(with: [("Sec-WebSocket-Protocol", "chat, chat")]), .severalSubprotocols),
        (
            response(with: [("Sec-WebSocket-Protocol", "chat"), ("Sec-WebSocket-Protocol", "chat")]),
            .severalSubprotocols
        ),
        (response(with: [("Sec-WebSocket-Extensions", "x-other")]), .extensionNotOffered("x-other")),
        (response(with: [("Sec-WebSocket-Extensions", "permessage-deflate;")]), .malformedExtensions),
        (response(with: [("Sec-WebSocket-Extensions", "")]), .malformedExtensions),
        (
            response(with: [("Sec-WebSocket-Extensions", "permessage-deflate, permessage-deflate")]),
            .repeatedExtension("permessage-deflate")
        ),
        (
            response(with: [("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=16")]),
            .illegalExtensionParameters("permessage-deflate; server_max_window_bits=16")
        ),
        (
            response(with: [("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")]),
            .illegalExtensionParameters("permessage-deflate; client_max_window_bits")
        ),
    ]

    @Test(arguments: invalid)
    func responseThatBreaksARuleFailsTheConnection(response: ResponseHead, violation: HandshakeViolation) {
        let handshake = ClientHandshake(authority: "h", target: "/", subprotocols: ["chat"], offers: [Self.offer])
        #expect(handshake.check(response, nonce: Self.nonce) == .failure(.invalid(response, violation)))
        #expect(!violation.explanation.isEmpty)
    }

    @Test func unofferedExtensionIsRefused() {
        let handshake = ClientHandshake(authority: "h", target: "/")
        let response = Self.response(with: [("Sec-WebSocket-Extensions", "permessage-deflate")])
        let expected = HandshakeFailure.invalid(response, .extensionNotOffered("permessage-deflate"))
        #expect(handshake.check(response, nonce: Self.nonce) == .failure(expected))
    }

    @Test(arguments: [200, 301, 401, 403, 404, 426, 503])
    func headOfARefusalIsReturned(status: Int) {
        let response = Self.response(status)
        let result = ClientHandshake(authority: "h", target: "/").check(response, nonce: Self.nonce)
        #expect(result == .failure(.refused(response)))
    }
}
