import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Fields of one connection, RFC 9110 §7.6.1")
struct ConnectionFieldTests {
    @Test(arguments: [
        ("close", false, false), ("Close", true, false), ("keep-alive", true, true), ("keep-alive", false, true),
        ("", false, true), ("", true, false), ("keep-alive, close", true, false), ("upgrade", false, true),
        ("x, Keep-Alive", true, true),
    ])
    func sayWhetherTheConnectionStays(_ options: String, _ isHTTP10: Bool, _ persists: Bool) {
        let fields: HTTPFields = options.isEmpty ? [:] : [.connection: options]
        #expect(ConnectionOptions(fields).persists(isHTTP10: isHTTP10) == persists)
    }

    @Test func areListed() {
        var fields = HTTPFields()
        fields[values: .connection] = ["Upgrade , x", ", ,b@d, Close"]
        #expect(ConnectionOptions(fields).names == ["upgrade", "x", "close"])
        #expect(ConnectionOptions(fields).contains("UPGRADE"))
    }

    @Test func areLeftOutWithWhatTheyName() {
        let fields: HTTPFields = [
            .connection: "X-One, te", .init("x-one")!: "1", .te: "trailers", .upgrade: "h2c", .accept: "a",
            .transferEncoding: "chunked", .init("Proxy-Connection")!: "x", .init("X-Two")!: "2",
        ]
        #expect(HopByHop.removed(from: fields) == [.accept: "a", .init("X-Two")!: "2"])
    }

    @Test(
        arguments: [
            ("timeout=5, max=100", 5, 100), ("max=1", nil, 1), ("Timeout=99999999", 86_400, nil),
            ("timeout=x", nil, nil),
            ("", nil, nil), ("timeout", nil, nil),
        ] as [(String, Int64?, Int64?)])
    func tellHowLongIsWaited(_ text: String, _ timeout: Int64?, _ remaining: Int64?) {
        let field = KeepAlive([.init("Keep-Alive")!: text])
        #expect(field.timeout == timeout)
        #expect(field.remaining == remaining)
    }

    /// RFC 9110 §9.2.1 and §9.2.2
    @Test(arguments: [
        ("GET", true, true), ("HEAD", true, true), ("OPTIONS", true, true), ("TRACE", true, true),
        ("PUT", false, true), ("DELETE", false, true), ("POST", false, false), ("PATCH", false, false),
        ("CONNECT", false, false), ("get", false, false), ("FOO", false, false),
    ])
    func goAgainOnlyWithMethodsThatAllowIt(_ method: String, _ isSafe: Bool, _ isIdempotent: Bool) throws {
        let method = try #require(HTTPRequest.Method(method))
        #expect(MethodTraits.isSafe(method) == isSafe)
        #expect(MethodTraits.isIdempotent(method) == isIdempotent)
    }

    @Test func areTheLoadersOwn() throws {
        for name in ["connection", "Host", "Proxy-Authorization", "proxy-x", "WWW-Authenticate"] {
            #expect(ReservedRequestFields.contains(try #require(HTTPField.Name(name))), "\(name)")
        }
        for name in ["Accept", "Authorization", "User-Agent", "X-Proxy", "Cookie"] {
            #expect(!ReservedRequestFields.contains(try #require(HTTPField.Name(name))), "\(name)")
        }
    }
}
