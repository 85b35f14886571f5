import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Redirects, RFC 9110 §15.4")
struct RedirectTests {
    private static let home = Origin(scheme: "https", host: "a.example")

    private func next(
        _ status: Int, _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:], from: Origin = Self.home,
        to: Origin = Self.home, count: Int = 0
    ) -> RedirectPolicy.Decision {
        RedirectPolicy.decide(status: status, method: method, fields: fields, from: from, to: to, count: count)
    }

    private func followed(_ step: RedirectPolicy.Decision) -> RedirectedRequest? {
        if case .follow(let request) = step { request } else { nil }
    }

    @Test(arguments: [
        (301, "GET", "GET", true), (302, "GET", "GET", true), (303, "GET", "GET", true), (307, "GET", "GET", true),
        (308, "GET", "GET", true), (301, "POST", "GET", false), (302, "POST", "GET", false),
        (303, "POST", "GET", false),
        (307, "POST", "POST", true), (308, "POST", "POST", true), (301, "PUT", "PUT", true), (302, "PUT", "PUT", true),
        (303, "PUT", "GET", false), (307, "PUT", "PUT", true), (303, "DELETE", "GET", false),
        (302, "DELETE", "DELETE", true), (303, "HEAD", "GET", false), (301, "HEAD", "HEAD", true),
        (308, "PATCH", "PATCH", true), (303, "PATCH", "GET", false),
        (305, "POST", "POST", true), (306, "GET", "GET", true),
    ])
    func redirectSettlesMethodAndContent(_ status: Int, _ method: String, _ after: String, _ keepsContent: Bool) throws
    {
        let fields: HTTPFields = [
            .contentType: "a/b", .contentLength: "5", .accept: "c/d", .transferEncoding: "chunked",
        ]
        let sent = try #require(HTTPRequest.Method(method))
        let request = try #require(self.followed(self.next(status, sent, fields)))
        #expect(request.method.rawValue == after)
        #expect(request.keepsContent == keepsContent)
        #expect(request.fields == (keepsContent ? fields : [.accept: "c/d"]))
    }

    @Test(
        arguments: [
            ("https", "a.example", nil, true), ("https", "A.EXAMPLE", 443, true), ("https", "b.example", nil, false),
            ("https", "x.a.example", nil, false), ("http", "a.example", nil, false),
            ("https", "a.example", 8443, false),
            ("wss", "a.example", nil, true), ("http", "a.example", 443, false),
        ] as [(String, String, Int?, Bool)])
    func secretsAreSentWithinOneOriginOnly(_ scheme: String, _ host: String, _ port: Int?, _ isKept: Bool) throws {
        let fields: HTTPFields = [
            .authorization: "Basic x", .proxyAuthorization: "Basic y", .cookie: "a=b", .accept: "c/d",
            .init("Host")!: "a.example",
        ]
        let target = Origin(scheme: scheme, host: host, port: port)
        let request = try #require(self.followed(self.next(302, .get, fields, to: target)))
        #expect(request.fields == (isKept ? fields : [.accept: "c/d"]))
    }

    @Test func refererIsOmittedFromSecureToInsecure() throws {
        let fields: HTTPFields = [.referer: "https://a.example/secret"]
        let open = Origin(scheme: "http", host: "b.example")
        #expect(self.followed(self.next(302, .get, fields, to: open))?.fields == [:])
        let secure = Origin(scheme: "https", host: "b.example")
        #expect(self.followed(self.next(302, .get, fields, to: secure))?.fields == fields)
    }

    @Test func redirectsEndAtTheLimit() {
        #expect(self.followed(self.next(302, count: 19)) != nil)
        #expect(self.next(302, count: 20) == .refuse(.tooMany))
    }

    @Test(arguments: ["file", "ftp", "data", "javascript", "myapp", ""], ["a.example", ""])
    func targetOfAnotherSchemeGetsNoSecrets(_ scheme: String, _ host: String) {
        let fields: HTTPFields = [.authorization: "Basic x", .cookie: "a=b", .accept: "c/d"]
        let request = self.followed(self.next(302, .get, fields, to: Origin(scheme: scheme, host: host)))
        #expect(request?.fields == [.accept: "c/d"])
    }

    @Test(arguments: ["http", "https", "ws", "wss"])
    func missingHostIsRefused(_ scheme: String) {
        #expect(self.next(302, to: Origin(scheme: scheme, host: "")) == .refuse(.noHost))
    }

    @Test func sevenStatusCodesRedirect() {
        for status in [200, 201, 300, 304, 309, 400] {
            #expect(RedirectLocation(status: status, fields: [.location: "/x"]) == .none, "\(status)")
        }
        for status in [301, 302, 303, 305, 306, 307, 308] {
            #expect(RedirectLocation(status: status, fields: [.location: "/x"]) == .reference("/x"), "\(status)")
            #expect(RedirectLocation(status: status, fields: [:]) == .none, "\(status)")
        }
    }

    @Test(arguments: [
        ("/x", "/x"), ("  http://h/p?q#f ", "http://h/p?q#f"), ("//h/p", "//h/p"), ("?q", "?q"), ("#f", "#f"),
        ("/a b", "/a%20b"), ("/\u{E4}", "/%C3%A4"), ("/%C3%A4", "/%C3%A4"), ("/a\"<b>", "/a%22%3Cb%3E"),
        ("http://[::1]/", "http://[::1]/"), ("/100%", "/100%"),
    ])
    func redirectHasTheReferenceOfItsLocation(_ location: String, _ reference: String) {
        #expect(RedirectLocation(status: 302, fields: [.location: location]) == .reference(reference))
    }

    @Test func severalLocationsAreMalformed() {
        var fields = HTTPFields()
        fields[values: .location] = ["/x", "/y"]
        #expect(RedirectLocation(status: 302, fields: fields) == .malformed)
        fields[values: .location] = ["/x", "/x"]
        #expect(RedirectLocation(status: 302, fields: fields) == .reference("/x"))
        fields[values: .location] = [String(repeating: "x", count: 70_000)]
        #expect(RedirectLocation(status: 302, fields: fields) == .malformed)
        // Canonically equivalent, and different bytes.
        fields[values: .location] = ["/\u{E9}", "/e\u{301}"]
        #expect(RedirectLocation(status: 302, fields: fields) == .malformed)
        fields[values: .location] = [""]
        #expect(RedirectLocation(status: 302, fields: fields) == .none)
    }

    /// RFC 9110 §10.2.2
    @Test func redirectInheritsTheFragment() {
        #expect(RedirectLocation.inheritingFragment("/People.html", from: "tim") == "/People.html#tim")
        #expect(RedirectLocation.inheritingFragment("/People.html#x", from: "tim") == "/People.html#x")
        #expect(RedirectLocation.inheritingFragment("/People.html#", from: "tim") == "/People.html#")
        #expect(RedirectLocation.inheritingFragment("/People.html", from: nil) == "/People.html")
    }
}
