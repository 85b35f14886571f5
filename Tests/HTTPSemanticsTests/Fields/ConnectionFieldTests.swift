import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Fields of one connection, RFC 9110 §7.6.1")
struct ConnectionFieldTests {
    @Test func connectionFieldRemovesTheFieldsItNames() {
        let fields: HTTPFields = [
            .connection: "X-One, te", .init("x-one")!: "1", .te: "trailers", .upgrade: "h2c", .accept: "a",
            .transferEncoding: "chunked", .init("Proxy-Connection")!: "x", .init("X-Two")!: "2",
        ]
        #expect(HopByHop.removed(from: fields) == [.accept: "a", .init("X-Two")!: "2"])
    }

    /// RFC 9110 §9.2.1
    @Test(arguments: [
        ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("PUT", false), ("DELETE", false),
        ("POST", false), ("PATCH", false), ("CONNECT", false), ("get", false), ("FOO", false),
    ])
    func safeMethodsAreThoseThatOnlyRead(_ method: String, _ isSafe: Bool) throws {
        #expect(MethodTraits.isSafe(try #require(HTTPRequest.Method(method))) == isSafe)
    }

    @Test func connectionFieldsAreReservedForTheLoader() throws {
        for name in ["connection", "Host", "Proxy-Authorization", "proxy-x", "WWW-Authenticate"] {
            #expect(ReservedRequestFields.contains(try #require(HTTPField.Name(name))), "\(name)")
        }
        for name in ["Accept", "Authorization", "User-Agent", "X-Proxy", "Cookie"] {
            #expect(!ReservedRequestFields.contains(try #require(HTTPField.Name(name))), "\(name)")
        }
    }
}
