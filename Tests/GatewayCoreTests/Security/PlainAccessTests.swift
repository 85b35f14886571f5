import GatewayConfiguration
import StreamTransport
import TestSupport
import Testing

@Suite("Routes of plain HTTP with tokens, RFC 6750")
struct PlainAccessTests {
    private let folder: ServedFolder

    init() throws {
        self.folder = try ServedFolder()
        try self.folder.write("index.html", "<p>home").write("sub/a.css", "b {}")
    }

    private func scene() throws -> GatewayScene {
        try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            tokens: [{name: main, secret: \(TokenScene.secret), audience: chat}]
            routes:
              - {name: files, path: "/files/{path...}", files: "\(self.folder.path)", auth: {tokens: main, cookie: session}}
              - {name: page, path: /page, target: page, auth: main}
              - {name: events, path: /events, target: room-events, auth: main, origins: ["https://a.example"]}
            rooms: {policies: [{name: all, pattern: "*", publish: users}]}
            """)
    }

    private static func valid() -> String {
        TokenScene.token(#"{"sub":"ada","aud":"chat"}"#)
    }
    private static var field: String { "Authorization: Bearer \(Self.valid())\r\n" }

    @Test(arguments: ["/files/", "/files/none", "/files/sub", "/files/sub/a.css", "/page", "/events"])
    func requestWithoutATokenIsChallenged(_ path: String) throws {
        let scene = try self.scene()
        for method in ["GET", "HEAD", "POST", "PUT"] {
            let response = try scene.fetch(path, "Range: bytes=0-1\r\nContent-Length: 0\r\n", method: method)
            #expect(response.status == 401, "\(method)")
            #expect(response["WWW-Authenticate"] == "Bearer realm=\"sluice\"", "\(method)")
            #expect(response["ETag"] == nil && response.text.contains("<p>") == false)
            #expect(response.body.isEmpty == (method == "HEAD"))
        }
        let expired = TokenScene.token(#"{"aud":"chat","exp":\#(TokenScene.now - 10)}"#)
        let response = try scene.fetch(path, "Authorization: Bearer \(expired)\r\n")
        #expect(response.status == 401 && response["WWW-Authenticate"]?.contains("invalid_token") == true)
        scene.finish()
    }

    @Test func requestWithATokenIsAnswered() throws {
        let scene = try self.scene()
        #expect(try scene.fetch("/files/", Self.field).text == "<p>home")
        #expect(try scene.fetch("/files/sub/a.css?access_token=\(Self.valid())").text == "b {}")
        let part = try scene.fetch("/files/sub/a.css", "Cookie: session=\(Self.valid())\r\nRange: bytes=0-1\r\n")
        #expect(part.status == 206 && part.text == "b ")
        let head = try scene.fetch("/files/sub/a.css", Self.field, method: "HEAD")
        #expect(head.status == 200 && head["Content-Length"] == "4")
        let tag = try #require(head["ETag"])
        #expect(try scene.fetch("/files/sub/a.css", Self.field + "If-None-Match: \(tag)\r\n").status == 304)
        #expect(try scene.fetch("/files/sub/a.css", "If-None-Match: \(tag)\r\n").status == 401)
        #expect(try scene.fetch("/files/none", Self.field).status == 404)
        #expect(try scene.fetch("/page", Self.field).text.contains("<html"))
        scene.finish()
    }

    /// Each request of a connection needs a token.
    @Test func tokenOfARequestIsNotThatOfTheNextOne() throws {
        let scene = try self.scene()
        let (peer, reader) = try scene.web("GET /files/ HTTP/1.1\r\nHost: a\r\n\(Self.field)\r\n")
        #expect(reader.next(scene)?.status == 200)
        peer.send("GET /files/ HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reader.next(scene)?.status == 401)
        #expect(scene.run { peer.sawEnd })
        scene.finish()
    }

    private func publish(_ scene: GatewayScene, _ fields: String) throws -> PlainResponse {
        let body = #"{"publish":{"channel":"a","data":1}}"#
        let (peer, reader) = try scene.web(
            "POST /events HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        defer { peer.close() }
        return try #require(reader.next(scene))
    }

    @Test func subjectOfTheTokenIsTheUserOfTheRooms() throws {
        let scene = try self.scene()
        #expect(try self.publish(scene, Self.field).status == 200)
        let unnamed = TokenScene.token(#"{"aud":"chat"}"#)
        #expect(try self.publish(scene, "Authorization: Bearer \(unnamed)\r\n").status == 403)
        scene.finish()
    }

    /// Browsers send no token with a preflight, and show a page of another origin only answers that allow it.
    @Test func pageOfAnotherOriginLearnsThatItsTokenIsRefused() throws {
        let scene = try self.scene()
        let origin = "Origin: https://a.example\r\n"
        let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
        let (_, reader) = try scene.web("OPTIONS /events HTTP/1.1\r\nHost: a\r\n\(origin)\(asks)\r\n")
        let preflight = try #require(reader.next(scene, isHead: true))
        #expect(preflight.status == 204 && preflight["Access-Control-Allow-Headers"] == "authorization")
        let refusal = try self.publish(scene, origin + "Authorization: Bearer a.b.c\r\n")
        #expect(refusal.status == 401 && refusal["Access-Control-Allow-Origin"] == "https://a.example")
        #expect(try self.publish(scene, origin + Self.field).status == 200)
        #expect(try self.publish(scene, "Origin: https://b.example\r\n\(Self.field)").status == 403)
        scene.finish()
    }

    @Test(arguments: [#""sub":"ada","#, ""])
    func eventsExpireWithTheTokenOfTheirRequest(_ subject: String) throws {
        let scene = try self.scene()
        let peer = try scene.client(1001)
        let token = TokenScene.token(#"{\#(subject)"aud":"chat","exp":\#(TokenScene.now + 60)}"#)
        peer.send("GET /events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n")
        #expect(scene.run { String(decoding: peer.received, as: UTF8.self).contains("connect") })
        let text = String(decoding: peer.received, as: UTF8.self)
        let timeToLive = try #require(text.split(separator: #""ttl":"#).last.flatMap { Int($0.prefix { $0.isNumber }) })
        #expect(text.contains(#""expires":true"#) && (1...60).contains(timeToLive), "\(text)")
        scene.finish()
    }
}
