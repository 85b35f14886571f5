import GatewayConfiguration
import GatewayCore
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Routes with tokens, RFC 6750")
struct RouteAccessTests {
    private static let configuration = """
        listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
        tokens:
          - {name: main, secret: \(TokenScene.secret), audience: chat, leeway: 2s}
          - {name: published, key-url: "https://issuer.example/keys"}
        routes:
          - {name: echo, path: /echo, target: echo, auth: main, subprotocols: [v1], ping-interval: 1h}
          - name: everywhere
            path: /everywhere
            target: echo
            subprotocols: [v1]
            ping-interval: 1h
            auth: {tokens: main, query: t, cookie: session, subprotocol: true, close-when-expired: false}
          - {name: header-only, path: /header, target: echo, auth: {tokens: main, query: none}}
          - {name: waiting, path: /waiting, target: echo, auth: published}
          - {name: open, path: /open, target: echo}
          - name: up
            path: /up/{room}
            target: up
            ping-interval: 1h
            auth: {tokens: main, subprotocol: true}
            headers: {X-User: "user {claim.sub}", X-Plain: "{room}"}
        upstreams:
          - {name: up, endpoints: ["ws://10.2.0.1:2001/{room}/{claim.tenant}?level={claim.level}"], retries: 0}
        """

    private func head(_ scene: GatewayScene, _ request: [UInt8]) throws -> String {
        let peer = try scene.client(1001)
        peer.send(request)
        return try #require(scene.head(RawWebSocketPeer(peer, isClient: true)))
    }

    private static func valid(_ more: String = "") -> String {
        TokenScene.token(#"{"sub":"ada","aud":"chat","tenant":"a/b c","level":7\#(more)}"#)
    }

    // MARK: Where the token is

    @Test func tokenIsAcceptedInTheAuthorizationField() throws {
        let scene = try GatewayScene(Self.configuration)
        for scheme in ["Bearer", "bearer", "BEARER "] {
            let head = try self.head(scene, TokenScene.request("/echo", "Authorization: \(scheme) \(Self.valid())"))
            #expect(head.hasPrefix("HTTP/1.1 101"), "\(head)")
        }
        scene.finish()
    }

    @Test func tokenIsAcceptedInTheQuery() throws {
        let scene = try GatewayScene(Self.configuration)
        for target in [
            "/echo?access_token=\(Self.valid())", "/echo?a=b&access_token=\(Self.valid())&c",
            "/everywhere?t=\(Self.valid())", "/echo?%61ccess_token=\(Self.valid().replacing(".", with: "%2E"))",
        ] {
            #expect(try self.head(scene, TokenScene.request(target)).hasPrefix("HTTP/1.1 101"), "\(target)")
        }
        for target in ["/header?access_token=\(Self.valid())", "/everywhere?access_token=\(Self.valid())"] {
            #expect(try self.head(scene, TokenScene.request(target)).hasPrefix("HTTP/1.1 401"), "\(target)")
        }
        scene.finish()
    }

    @Test func tokenIsAcceptedInACookie() throws {
        let scene = try GatewayScene(Self.configuration)
        for cookie in ["session=\(Self.valid())", "a=b; session=\"\(Self.valid())\"; session=x"] {
            let head = try self.head(scene, TokenScene.request("/everywhere", "Cookie: \(cookie)"))
            #expect(head.hasPrefix("HTTP/1.1 101"), "\(head)")
        }
        let head = try self.head(scene, TokenScene.request("/echo", "Cookie: session=\(Self.valid())"))
        #expect(head.hasPrefix("HTTP/1.1 401"))
        scene.finish()
    }

    /// Semicolons and equals signs separate as bytes, whatever Unicode takes for one character.
    @Test func cookiesAreSeparatedByBytes() throws {
        let scene = try GatewayScene(Self.configuration)
        for cookie in ["session=\(Self.valid());\u{301}=b", "a=\u{301};session=\(Self.valid())"] {
            let head = try self.head(scene, TokenScene.request("/everywhere", "Cookie: \(cookie)"))
            #expect(head.hasPrefix("HTTP/1.1 101"), "\(head)")
        }
        scene.finish()
    }

    /// A browser sends cookies with every request: a token that the page chose takes precedence.
    @Test func cookieCountsOnlyWithoutAnotherToken() throws {
        let scene = try GatewayScene(Self.configuration)
        let request = TokenScene.request("/everywhere?t=no", "Cookie: session=\(Self.valid())")
        #expect(try self.head(scene, request).hasPrefix("HTTP/1.1 401"))
        scene.finish()
    }

    @Test func tokenIsAcceptedBehindTheSubprotocolBearer() throws {
        let scene = try GatewayScene(Self.configuration)
        let head = try self.head(
            scene, TokenScene.request("/everywhere", "Sec-WebSocket-Protocol: bearer, \(Self.valid())"))
        #expect(head.hasPrefix("HTTP/1.1 101") && head.contains("Sec-WebSocket-Protocol: bearer\r\n"), "\(head)")
        let other = try self.head(
            scene, TokenScene.request("/everywhere", "Sec-WebSocket-Protocol: bearer, \(Self.valid()), v1"))
        #expect(other.contains("Sec-WebSocket-Protocol: v1\r\n"), "\(other)")
        let off = try self.head(scene, TokenScene.request("/echo", "Sec-WebSocket-Protocol: bearer, \(Self.valid())"))
        #expect(off.hasPrefix("HTTP/1.1 401"))
        scene.finish()
    }

    @Test func severalTokensAreRefused() throws {
        let scene = try GatewayScene(Self.configuration)
        let field = "Authorization: Bearer \(Self.valid())"
        for request in [
            TokenScene.request("/echo?access_token=\(Self.valid())", field), TokenScene.request("/echo", field, field),
            TokenScene.request("/echo?access_token=\(Self.valid())&access_token=\(Self.valid())"),
        ] {
            let head = try self.head(scene, request)
            #expect(head.hasPrefix("HTTP/1.1 400") && head.contains("error=\"invalid_request\""), "\(head)")
        }
        scene.finish()
    }

    // MARK: Refusals

    @Test func requestWithoutATokenIsChallengedWithoutAnErrorCode() throws {
        let scene = try GatewayScene(Self.configuration)
        for field in ["X-Other: 1", "Authorization: Basic YTpi"] {
            let head = try self.head(scene, TokenScene.request("/echo", field))
            #expect(head.hasPrefix("HTTP/1.1 401") && head.contains("WWW-Authenticate: Bearer realm=\"sluice\"\r\n"))
        }
        #expect(try self.head(scene, TokenScene.request("/open")).hasPrefix("HTTP/1.1 101"))
        scene.finish()
    }

    @Test func requestWithAnInvalidTokenGetsTheReason() throws {
        let now = TokenScene.now
        let tokens = [
            (TokenScene.token(#"{"aud":"chat","exp":\#(now - 10)}"#), "The access token expired"),
            (TokenScene.token(#"{"aud":"chat","nbf":\#(now + 3600)}"#), "The access token is not valid yet"),
            (TokenScene.token(#"{"aud":"other"}"#), "The access token is for another audience"),
            (
                TokenScene.token(#"{"aud":"chat"}"#, secret: String(repeating: "x", count: 32)),
                "The signature of the access token is not accepted"
            ),
            (
                TokenScene.token(#"{"aud":"chat"}"#, header: #"{"alg":"none"}"#),
                "The signature of the access token is not accepted"
            ),
            ("", "The access token is malformed"), ("a.b.c", "The access token is malformed"),
        ]
        let scene = try GatewayScene(Self.configuration)
        for (token, text) in tokens {
            let head = try self.head(scene, TokenScene.request("/echo", "Authorization: Bearer \(token)"))
            let challenge =
                "WWW-Authenticate: Bearer realm=\"sluice\", error=\"invalid_token\", error_description=\"\(text)\"\r\n"
            #expect(head.hasPrefix("HTTP/1.1 401") && head.contains(challenge), "\(head)")
        }
        scene.settle()
        #expect(Set(scene.gateway.endings.map(\.reason)) == ["downstream/opening-handshake/refused-request(401)"])
        #expect(scene.gateway.shared.counters.all["unauthenticated"] == UInt64(tokens.count))
        scene.finish()
    }

    /// The token may be right: the client is asked to come again.
    @Test func requestIsRefusedWith503WhileThereAreNoKeys() throws {
        let scene = try GatewayScene(Self.configuration)
        let head = try self.head(scene, TokenScene.request("/waiting", "Authorization: Bearer \(Self.valid())"))
        #expect(head.hasPrefix("HTTP/1.1 503") && head.contains("Retry-After: 5\r\n"), "\(head)")
        scene.finish()
    }

    // MARK: Claims

    /// The upstream's request for a client with this token.
    private func forwarded(_ scene: GatewayScene, _ request: [UInt8]) throws -> String {
        let listener = try scene.upstream(2001)
        let client = try scene.client(1001)
        client.send(request)
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        return String(decoding: try #require(listener.accepted.first?.received), as: UTF8.self)
    }

    @Test func claimsBecomePartsOfThePathAndOfFields() throws {
        let scene = try GatewayScene(Self.configuration)
        let request = try self.forwarded(
            scene, TokenScene.request("/up/r1?x=1", "Authorization: Bearer \(Self.valid())"))
        #expect(request.hasPrefix("GET /r1/a%2Fb%20c?level=7&x=1 HTTP/1.1\r\n"), "\(request)")
        #expect(request.contains("X-User: user ada\r\n") && request.contains("X-Plain: {room}\r\n"), "\(request)")
        scene.finish()
    }

    @Test func tokenOfTheQueryAndOfTheSubprotocolsIsNotForwarded() throws {
        for request in [
            TokenScene.request("/up/r1?a=b&access_token=\(Self.valid())&c=d", "Sec-WebSocket-Protocol: v1"),
            TokenScene.request("/up/r1?a=b&c=d", "Sec-WebSocket-Protocol: bearer, \(Self.valid()), v1"),
        ] {
            let scene = try GatewayScene(Self.configuration)
            let forwarded = try self.forwarded(scene, request)
            #expect(forwarded.hasPrefix("GET /r1/a%2Fb%20c?level=7&a=b&c=d HTTP/1.1\r\n"), "\(forwarded)")
            #expect(forwarded.contains("Sec-WebSocket-Protocol: v1\r\n"), "\(forwarded)")
            #expect(!forwarded.contains(Self.valid().suffix(43)))
            scene.finish()
        }
    }

    @Test func tokenWithoutAClaimThatTheRouteNeedsIsRefusedWith403() throws {
        let scene = try GatewayScene(Self.configuration)
        for claims in [
            #"{"aud":"chat","sub":"ada","level":1}"#, #"{"aud":"chat","tenant":"t","level":1}"#,
            #"{"aud":"chat","sub":"ada","tenant":null,"level":1}"#,
            #"{"aud":"chat","sub":"ada","tenant":["t"],"level":1}"#,
        ] {
            let token = TokenScene.token(claims)
            let head = try self.head(scene, TokenScene.request("/up/r1", "Authorization: Bearer \(token)"))
            #expect(head.hasPrefix("HTTP/1.1 403") && head.contains("error=\"insufficient_scope\""), "\(head)")
        }
        scene.finish()
    }

    /// A claim may be the user's own choice.
    @Test(arguments: ["..", ".", "", "a/../b", #"\u0000"#, "%2e%2e", #"a\r\nX: y"#])
    func claimThatWouldLeaveThePathIsRefused(_ tenant: String) throws {
        let scene = try GatewayScene(Self.configuration)
        let token = TokenScene.token(#"{"aud":"chat","sub":"ada","tenant":"\#(tenant)","level":1}"#)
        let head = try self.head(scene, TokenScene.request("/up/r1", "Authorization: Bearer \(token)"))
        #expect(head.hasPrefix("HTTP/1.1 403"), "\(head)")
        scene.finish()
    }

    @Test(arguments: [#"ada\r\nX-Admin: yes"#, #"\u0000"#, #"ada "#, #"\u007f"#])
    func claimThatIsNoFieldValueIsRefused(_ subject: String) throws {
        let scene = try GatewayScene(Self.configuration)
        let token = TokenScene.token(#"{"aud":"chat","sub":"\#(subject)","tenant":"t","level":1}"#)
        let head = try self.head(scene, TokenScene.request("/up/r1", "Authorization: Bearer \(token)"))
        #expect(head.hasPrefix("HTTP/1.1 403"), "\(head)")
        scene.finish()
    }

    @Test(arguments: ["{claim.sub}", "a{claim.sub}b"])
    func emptyClaimIsRefusedInAFieldToo(_ value: String) throws {
        let scene = try GatewayScene(Self.configuration.replacing("user {claim.sub}", with: value))
        let token = TokenScene.token(#"{"aud":"chat","sub":"","tenant":"t","level":1}"#)
        let head = try self.head(scene, TokenScene.request("/up/r1", "Authorization: Bearer \(token)"))
        #expect(head.hasPrefix("HTTP/1.1 403"), "\(head)")
        scene.finish()
    }

    // MARK: Expiry

    @Test func connectionEndsWithItsToken() throws {
        let scene = try GatewayScene(Self.configuration)
        let peer = try scene.client(1001)
        let token = TokenScene.token(#"{"aud":"chat","exp":\#(TokenScene.now + 60)}"#)
        peer.send(TokenScene.request("/echo", "Authorization: Bearer \(token)"))
        let client = RawWebSocketPeer(peer, isClient: true)
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101") == true)
        _ = scene.network.run(for: .seconds(58))
        #expect(client.frames.allSatisfy { $0.opcode != 8 })
        // The leeway of two seconds counts too.
        #expect(scene.run(atMost: .seconds(5)) { client.frames.contains { $0.opcode == 8 } })
        #expect(client.frames.last?.payload == [0x03, 0xF0] + Array("token expired".utf8))
        client.send(8, [0x03, 0xF0])
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/relaying/token-expired"])
        scene.finish()
    }

    @Test func wallClockThatIsSetForwardEndsConnectionsWithinAMinute() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try self.echoClient(of: scene, lasting: 3600)
        _ = scene.network.run(for: .seconds(30))
        scene.network.wallClockStep = .seconds(3600)
        #expect(scene.run(atMost: .seconds(61)) { client.frames.contains { $0.opcode == 8 } })
        client.send(8, [0x03, 0xF0])
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/relaying/token-expired"])
        scene.finish()
    }

    @Test func wallClockThatIsSetBackPostponesTheEndOfConnections() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try self.echoClient(of: scene, lasting: 60)
        scene.network.wallClockStep = .seconds(-600)
        _ = scene.network.run(for: .seconds(650))
        #expect(client.frames.allSatisfy { $0.opcode != 8 })
        #expect(scene.run(atMost: .seconds(20)) { client.frames.contains { $0.opcode == 8 } })
        client.send(8, [0x03, 0xF0])
        scene.settle()
        scene.finish()
    }

    /// - Parameter seconds: until its token expires.
    private func echoClient(of scene: GatewayScene, lasting seconds: Int64) throws -> RawWebSocketPeer {
        let peer = try scene.client(1001)
        let token = TokenScene.token(#"{"aud":"chat","exp":\#(TokenScene.now + seconds)}"#)
        peer.send(TokenScene.request("/echo", "Authorization: Bearer \(token)"))
        let client = RawWebSocketPeer(peer, isClient: true)
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101") == true)
        return client
    }

    @Test func connectionOutlivesItsTokenWhereTheRouteSaysSo() throws {
        let scene = try GatewayScene(Self.configuration)
        let peer = try scene.client(1001)
        let token = TokenScene.token(#"{"aud":"chat","exp":\#(TokenScene.now + 60)}"#)
        peer.send(TokenScene.request("/everywhere?t=\(token)"))
        let client = RawWebSocketPeer(peer, isClient: true)
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101") == true)
        _ = scene.network.run(for: .seconds(120))
        #expect(client.frames.allSatisfy { $0.opcode != 8 })
        scene.finish()
    }

    @Test func tunnelEndsWithItsToken() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        let peer = try scene.client(1001)
        let token = TokenScene.token(
            #"{"aud":"chat","sub":"ada","tenant":"t","level":1,"exp":\#(TokenScene.now + 60)}"#)
        peer.send(TokenScene.request("/up/r1", "Authorization: Bearer \(token)"))
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let upstream = RawWebSocketPeer(try #require(listener.accepted.first), isClient: false)
        upstream.peer.send(RawWebSocketPeer.response(to: upstream.peer.takeReceived(), accept: AcceptKey.value))
        let client = RawWebSocketPeer(peer, isClient: true)
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101") == true)
        #expect(scene.run(atMost: .seconds(65)) { client.frames.contains { $0.opcode == 8 } })
        for one in [client, upstream] {
            #expect(one.frames.last?.payload == [0x03, 0xF0] + Array("token expired".utf8))
            one.send(8, [0x03, 0xF0])
        }
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/relaying/token-expired"])
        scene.finish()
    }
}
