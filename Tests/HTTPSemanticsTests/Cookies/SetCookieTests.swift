import HTTPSemantics
import Testing

@Suite("Attributes of cookies, RFC 6265bis §5.6")
struct SetCookieTests {
    private let now = HTTPDate(seconds: 1_700_000_000)

    private func cookie(_ text: String, _ dialect: SetCookie.Dialect = .standard) throws -> SetCookie {
        SetCookie(try #require(SetCookieField(text)), dialect: dialect, now: self.now)
    }

    @Test(
        arguments: [
            ("a=b; Max-Age=100", 1_700_000_100), ("a=b; Max-Age=1; Max-Age=100", 1_700_000_100),
            ("a=b; Max-Age=100; Expires=Wed, 01 Jan 2020 12:30:00 GMT", 1_700_000_100),
            ("a=b; Expires=Wed, 01 Jan 2020 12:30:00 GMT; max-age=100", 1_700_000_100),
            ("a=b; expires=Wed, 01 Jan 2020 12:30:00 GMT", 1_577_881_800),
            ("a=b; Max-Age=x; expires=Wed, 01 Jan 2020 12:30:00 GMT", 1_577_881_800),
            ("a=b; expires=Wed, 01 Jan 2020 12:30:00 GMT; expires=never", 1_577_881_800),
            ("a=b; Max-Age=0", HTTPDate.earliest.seconds), ("a=b; Max-Age=-5", HTTPDate.earliest.seconds),
            ("a=b; Max-Age=99999999999999999999", 1_700_000_000 + 4_294_967_295),
        ] as [(String, Int64)])
    func expiryIsMaxAgeOrExpires(_ text: String, _ seconds: Int64) throws {
        #expect(try self.cookie(text).expires?.seconds == seconds)
    }

    @Test(arguments: [
        "a=b", "a=b; Max-Age", "a=b; Max-Age=", "a=b; Max-Age=+5", "a=b; Max-Age=5s", "a=b; Max-Age=-",
        "a=b; Expires=tomorrow", "a=b; Expires",
    ])
    func cookieWithoutAnExpiryEndsWithTheSession(_ text: String) throws {
        #expect(try self.cookie(text).expires == nil)
    }

    @Test(arguments: [
        ("a=b; Domain=Example.COM", "example.com"), ("a=b; Domain=.example.com", "example.com"),
        ("a=b; Domain=x.org; Domain=y.org", "y.org"), ("a=b; Domain=", nil), ("a=b; Domain", nil),
        ("a=b; Domain=.", nil), ("a=b", nil),
    ])
    func domainOfACookieIsCanonical(_ text: String, _ domain: String?) throws {
        #expect(try self.cookie(text).domain == domain)
    }

    @Test(arguments: [
        ("a=b; Path=/x/y", "/x/y"), ("a=b; Path=/", "/"), ("a=b; Path=x", nil), ("a=b; Path=", nil),
        ("a=b; Path", nil), ("a=b", nil), ("a=b; Path=/x; Path=y", nil),
    ])
    func pathOfACookieBeginsWithASlash(_ text: String, _ path: String?) throws {
        #expect(try self.cookie(text).path == path)
    }

    @Test(arguments: [
        ("a=b; SameSite=Strict", SameSite.strict), ("a=b; SameSite=lax", .lax), ("a=b; samesite=NONE", .none),
        ("a=b; SameSite=sometimes", .unspecified), ("a=b; SameSite", .unspecified), ("a=b", .unspecified),
    ])
    func sameSiteAttributeIsRead(_ text: String, _ sameSite: SameSite) throws {
        #expect(try self.cookie(text).sameSite == sameSite)
    }

    @Test func flagIsReadWithAndWithoutAValue() throws {
        for text in ["a=b; Secure; HttpOnly", "a=b; secure=; httponly=", "a=b; SECURE=no; HTTPONLY=1"] {
            #expect(try self.cookie(text).isSecure)
            #expect(try self.cookie(text).isHTTPOnly)
        }
    }

    @Test(arguments: [("a=b; Domain=.x.org", false), ("a=b; Domain=..x.org", true), ("a=b; Domain=x.org.", true)])
    func domainWithMoreDotsIsInvalid(_ text: String, _ isInvalid: Bool) throws {
        #expect(try self.cookie(text).isDomainInvalid == isInvalid)
    }

    @Test func cookieOfFoundationMayBeDiscarded() throws {
        let values = try self.cookie("a=b; Secure=1; Discard=TRUE; HttpOnly=Yes; Max-Age=5", .foundation)
        #expect(values.isSecure && values.isHTTPOnly && values.expires != nil)
        #expect(try self.cookie("a=b; Discard; Max-Age=5", .foundation).expires == nil)
    }
}
