import Testing
import WebSocketProtocol

@Suite("Opening handshake of the server, RFC 6455 §4.2")
struct ServerHandshakeTests {
    static let fields: [(name: String, value: String)] = [
        ("Host", "server.example.com"), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13"),
    ]

    /// A valid request without the fields in `without`, followed by others.
    private static func request(
        _ target: String = "/chat", method: String = "GET", version: HTTPVersion = .http11, without: [String] = [],
        with added: [(String, String)] = []
    ) -> RequestHead {
        let kept = self.fields.filter { !without.contains($0.name) } + added.map { (name: $0.0, value: $0.1) }
        let fields = HTTPFields(kept.map { HTTPField($0.name, $0.value) })
        return RequestHead(method: method, target: target, version: version, fields: fields)
    }

    private static func replacing(_ name: String, _ values: String...) -> RequestHead {
        self.request(without: [name], with: values.map { (name, $0) })
    }

    private static func status(_ head: RequestHead) -> Int {
        switch ServerHandshake.evaluate(head) {
        case .success: 101
        case .failure(let refusal): refusal.status
        }
    }

    @Test func exampleOfTheRFCIsAccepted() throws {
        let head = try #require(HeadFeeding.request(RequestParserTests.example).head)
        let request = try ServerHandshake.evaluate(head).get()
        #expect(request.head == head)
        #expect(request.resourceName == "/chat")
        #expect(request.host == "server.example.com")
        #expect(request.origin == "http://example.com")
        #expect(request.subprotocols == ["chat", "superchat"])
        let acceptance = request.acceptance(subprotocol: "chat", deflate: nil)
        // §1.2, with the fields in the order of the RFC.
        #expect(String(decoding: acceptance.response, as: UTF8.self) == ResponseParserTests.example)
        #expect(acceptance.subprotocol == "chat")
    }

    @Test func firstSupportedSubprotocolOfTheClientIsChosen() throws {
        let request = try ServerHandshake.evaluate(
            Self.request(with: [("Sec-WebSocket-Protocol", "c, b"), ("sec-websocket-protocol", "a")])
        ).get()
        #expect(request.subprotocols == ["c", "b", "a"])
        #expect(request.acceptance(subprotocols: ["a", "b"], deflate: nil).subprotocol == "b")
        let none = request.acceptance(subprotocols: ["x"], deflate: nil)
        #expect(none.subprotocol == nil)
        #expect(!String(decoding: none.response, as: UTF8.self).contains("Sec-WebSocket-Protocol"))
        #expect(request.acceptance(subprotocol: "B", deflate: nil).subprotocol == nil)
    }

    @Test func furtherFieldsAreAddedUnlessTheyBreakTheResponse() throws {
        let request = try ServerHandshake.evaluate(Self.request()).get()
        let fields = [
            HTTPField("Set-Cookie", "a=b"), HTTPField("X", "y\r\nZ: w"), HTTPField("upgrade", "h2c"),
            HTTPField("Sec-WebSocket-Protocol", "z"),
        ]
        let response = request.acceptance(subprotocol: nil, deflate: nil, fields: fields).response
        let head = HeadFeeding.response([response]).head
        #expect(head?.fields.all.map(\.name) == ["Upgrade", "Connection", "Sec-WebSocket-Accept", "Set-Cookie"])
    }

    static let accepted: [RequestHead] = [
        replacing("Upgrade", "WebSocket"), replacing("Upgrade", "h2c, websocket"),
        replacing("Upgrade", "h2c", "websocket"),
        replacing("Connection", "keep-alive, UPGRADE"), replacing("Connection", "keep-alive", "upgrade"),
        replacing("Connection", ",,upgrade ,"), replacing("Host", "[::1]:8080"), replacing("Host", "127.0.0.1:1"),
        replacing("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="), request(version: HTTPVersion(1, 2)),
        request("/a?b%23"), request("/*"),
        request(with: [("Content-Length", "0")]), request(with: [("Origin", "null")]),
    ]

    @Test(arguments: accepted)
    func requestWithinTheRulesIsAccepted(_ head: RequestHead) {
        #expect(Self.status(head) == 101)
    }

    static let refused: [(name: String, status: Int, head: RequestHead)] = [
        ("no host", 400, request(without: ["Host"])), ("two hosts", 400, request(with: [("host", "b")])),
        ("empty host", 400, replacing("Host", "")), ("host with a path", 400, replacing("Host", "a/b")),
        ("host with a user", 400, replacing("Host", "a@b")), ("port too large", 400, replacing("Host", "a:65536")),
        ("port that is none", 400, replacing("Host", "a:x")), ("brackets left open", 400, replacing("Host", "[::1")),
        ("empty brackets", 400, replacing("Host", "[]:80")), ("two names as one host", 400, replacing("Host", "a, b")),
        ("no key", 400, request(without: ["Sec-WebSocket-Key"])),
        ("two keys", 400, request(with: [("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])),
        ("key of 15 bytes", 400, replacing("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAA")),
        ("key of 17 bytes", 400, replacing("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAAA=")),
        ("key without padding", 400, replacing("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ")),
        ("key that is no base64", 400, replacing("Sec-WebSocket-Key", "!!!!!!!!!!!!!!!!!!!!!!==")),
        ("POST", 405, request(method: "POST")), ("get in lower case", 405, request(method: "get")),
        ("HTTP/2.0", 505, request(version: HTTPVersion(2, 0))), ("HTTP/1.0", 426, request(version: HTTPVersion(1, 0))),
        ("no upgrade", 426, request(without: ["Upgrade", "Connection"])), ("h2c", 426, replacing("Upgrade", "h2c")),
        ("connection without upgrade", 426, replacing("Connection", "keep-alive")),
        ("no version", 426, request(without: ["Sec-WebSocket-Version"])),
        ("version 8", 426, replacing("Sec-WebSocket-Version", "8")),
        ("version 013", 426, replacing("Sec-WebSocket-Version", "013")),
        ("a list of versions", 426, replacing("Sec-WebSocket-Version", "13, 8")),
        ("two versions", 400, replacing("Sec-WebSocket-Version", "13", "8")),
        ("a body", 400, request(with: [("Content-Length", "5")])),
        ("a body in chunks", 400, request(with: [("Transfer-Encoding", "chunked")])),
        ("two origins", 400, request(with: [("Origin", "a"), ("Origin", "b")])),
        ("subprotocol that is no token", 400, request(with: [("Sec-WebSocket-Protocol", "a b")])),
        ("no subprotocol in the field", 400, request(with: [("Sec-WebSocket-Protocol", "")])),
        ("extension that is none", 400, request(with: [("Sec-WebSocket-Extensions", "a; =b")])),
        ("target without slash", 400, request("chat")), ("target with a fragment", 400, request("/a#b")),
        ("asterisk", 400, request("*")), ("target of another scheme", 400, request("ftp://a/b")),
        ("target without host", 400, request("http:///b")),
    ]

    @Test(arguments: refused)
    func refusalHasTheStatusOfItsReason(name: String, status: Int, head: RequestHead) {
        #expect(Self.status(head) == status, "\(name)")
    }

    /// Sorting the marks, as Unicode's normal forms need it, would take hours.
    @Test(.timeLimit(.minutes(1)), arguments: [("Sec-WebSocket-Version", 426), ("Content-Length", 400)])
    func fieldOfManyMarksIsRefusedInTimeThatGrowsWithIt(_ name: String, _ status: Int) {
        let value = String(repeating: "\u{301}\u{323}", count: 500_000)
        #expect(Self.status(Self.replacing(name, value)) == status)
    }

    @Test func refusalNamesTheSupportedVersionAndMethod() {
        let version = ServerHandshake.evaluate(Self.replacing("Sec-WebSocket-Version", "8"))
        guard case .failure(let upgrade) = version else {
            Issue.record("version 8 was accepted")
            return
        }
        #expect(upgrade.fields.contains(HTTPField("Sec-WebSocket-Version", "13")))
        #expect(upgrade.fields.contains(HTTPField("Upgrade", "websocket")))
        let method = ServerHandshake.evaluate(Self.request(method: "PUT"))
        guard case .failure(let refusal) = method else {
            Issue.record("PUT was accepted")
            return
        }
        #expect(refusal.fields == [HTTPField("Allow", "GET")])
    }

    @Test(arguments: [
        ("/a/b?c=d?e", "/a/b", "c=d?e"), ("/", "/", nil), ("/?", "/", ""), ("http://h/a?b", "/a", "b"),
        ("WSS://h:1", "/", nil), ("https://h?x", "/", "x"),
    ])
    func targetIsSplitIntoPathAndQuery(target: String, path: String, query: String?) throws {
        let request = try ServerHandshake.evaluate(Self.request(target)).get()
        #expect(request.path == path)
        #expect(request.query == query)
    }

    @Test func hostOfAnAbsoluteTargetIsUsed() throws {
        let request = try ServerHandshake.evaluate(Self.request("http://other.example:81/x")).get()
        #expect(request.host == "other.example:81")
    }
}
