import HTTPSemantics
import Testing

@Suite("Storing cookies, RFC 6265bis §5.7")
struct CookieStoringTests {
    private let now = HTTPDate(seconds: 1_700_000_000)

    private func outcome(
        _ text: String, from host: String = "www.example.com", path: String = "/a/b", isSecure: Bool = true,
        isSameSite: Bool = true, jar: CookieJar = CookieJar()
    ) throws -> CookieJar.StoreOutcome {
        var jar = jar
        let request = CookieRequest(
            host: host, path: path, isSecure: isSecure, isSameSite: isSameSite)
        return jar.store(SetCookie(try #require(SetCookieField(text)), now: self.now), from: request, now: self.now)
    }

    @Test func namesAndPathsAreComparedByBytes() throws {
        var jar = CookieJar()
        let request = CookieRequest(host: "example.com", path: "/", isSecure: true)
        // Canonically equivalent.
        for text in ["\u{E9}=1", "e\u{301}=2", "a=3; Path=/\u{E9}", "a=4; Path=/e\u{301}"] {
            let cookie = SetCookie(try #require(SetCookieField(text)), now: self.now)
            #expect(jar.store(cookie, from: request, now: self.now) == .stored)
        }
        #expect(Set(jar.cookies.map(\.identity)).count == 4)
    }

    @Test(arguments: [
        ("a=b; Domain=example.com", CookieJar.StoreOutcome.stored), ("a=b; Domain=www.example.com", .stored),
        ("a=b; Domain=x.www.example.com", .refused(.domainMismatch)),
        ("a=b; Domain=example.org", .refused(.domainMismatch)),
        ("a=b; Domain=.example.com", .stored), ("a=b; Domain=..example.com", .refused(.domainMismatch)),
        ("a=b; Domain=example.com.", .refused(.domainMismatch)),
        ("a=b; Domain=.example.com..", .refused(.domainMismatch)),
        ("a=b; Domain=com", .refused(.publicSuffix)), ("a=b; Domain=.com", .refused(.publicSuffix)),
        ("a=b; Domain=1.2.3.4", .refused(.domainMismatch)), ("a=b; Domain=ww.example.com", .refused(.domainMismatch)),
    ])
    func cookieIsStoredOnlyForTheSendersDomain(_ text: String, _ expected: CookieJar.StoreOutcome) throws {
        #expect(try self.outcome(text) == expected)
    }

    @Test func cookieForAHostThatIsAPublicSuffixOrAddressIsHostOnly() throws {
        #expect(try self.outcome("a=b; Domain=localhost", from: "localhost") == .stored)
        #expect(try self.outcome("a=b; Domain=127.0.0.1", from: "127.0.0.1") == .stored)
        #expect(try self.outcome("a=b; Domain=0.0.1", from: "127.0.0.1") == .refused(.domainMismatch))
        var jar = CookieJar()
        let request = CookieRequest(host: "localhost", path: "/", isSecure: false)
        _ = jar.store(SetCookie(name: "a", value: "b", domain: "localhost"), from: request, now: self.now)
        #expect(jar.cookies.map(\.isHostOnly) == [true])
    }

    @Test func publicSuffixIsRefusedAsADomain() throws {
        let jar = CookieJar(suffixes: PublicSuffixRule { $0 == "example.com" })
        #expect(try self.outcome("a=b; Domain=example.com", jar: jar) == .refused(.publicSuffix))
        #expect(try self.outcome("a=b; Domain=www.example.com", jar: jar) == .stored)
    }

    @Test(arguments: [
        ("__Secure-a=b; Secure", true, CookieJar.StoreOutcome.stored),
        ("__Secure-a=b", true, .refused(.invalidNamePrefix)),
        ("__SECURE-a=b", true, .refused(.invalidNamePrefix)),
        ("__Secure-a=b; Secure", false, .refused(.insecureConnection)),
        ("__Host-a=b; Secure; Path=/", true, .stored), ("__Host-a=b; Secure", true, .refused(.invalidNamePrefix)),
        ("__Host-a=b; Secure; Path=/a", true, .refused(.invalidNamePrefix)),
        ("__Host-a=b; Secure; Path=/; Domain=example.com", true, .refused(.invalidNamePrefix)),
        ("__host-a=b; Path=/", true, .refused(.invalidNamePrefix)),
        ("=__Secure-a=b; Secure", true, .refused(.invalidNamePrefix)),
        ("__Host-a", true, .refused(.invalidNamePrefix)), ("x__Host-a=b", true, .stored),
    ])
    func cookieNamePrefixesAreEnforced(
        _ text: String, _ isSecure: Bool, _ expected: CookieJar.StoreOutcome
    ) throws {
        #expect(try self.outcome(text, isSecure: isSecure) == expected)
    }

    @Test func hostPrefixRequiresTheRootPath() throws {
        #expect(try self.outcome("__Host-a=b; Secure", path: "/") == .refused(.invalidNamePrefix))
        #expect(try self.outcome("__Host-a=b; Secure; Path=/", path: "/") == .stored)
    }

    @Test func secureCookieNeedsASecureConnection() throws {
        #expect(try self.outcome("a=b; Secure", isSecure: false) == .refused(.insecureConnection))
        #expect(try self.outcome("a=b; Secure", isSecure: true) == .stored)
    }

    @Test(arguments: [
        ("a=evil", "/a/b", true), ("a=evil; Path=/a", "/a/b", true),
        ("a=evil; Domain=example.com; Path=/a/x", "/", true),
        ("a=fine; Path=/", "/a/b", false), ("b=fine", "/a/b", false),
    ])
    func insecureConnectionCannotHideASecureCookie(_ text: String, _ path: String, _ isRefused: Bool) throws {
        let kept = Cookie(
            name: "a", value: "good", domain: "www.example.com", isHostOnly: true, path: "/a", isSecure: true,
            creation: self.now)
        let outcome = try self.outcome(text, path: path, isSecure: false, jar: CookieJar([kept]))
        #expect(outcome == (isRefused ? .refused(.insecureConnection) : .stored))
        #expect(
            try self.outcome(text, path: path, isSecure: true, jar: CookieJar([kept])) != .refused(.insecureConnection))
    }

    @Test(arguments: [
        ("a=b; SameSite=Lax", false, CookieJar.StoreOutcome.refused(.crossSite)), ("a=b", false, .stored),
        ("a=b; SameSite=Strict", true, .stored), ("a=b; SameSite=None", true, .refused(.sameSiteNoneWithoutSecure)),
        ("a=b; SameSite=None; Secure", false, .stored),
    ])
    func sameSiteLimitsCrossSiteCookies(_ text: String, _ isSameSite: Bool, _ expected: CookieJar.StoreOutcome) throws {
        #expect(try self.outcome(text, isSameSite: isSameSite) == expected)
    }

    @Test func cookieThatWouldBreakTheFieldIsRefused() {
        var jar = CookieJar()
        let request = CookieRequest(host: "a.com", path: "/", isSecure: true)
        let bad = [
            SetCookie(name: "a;b", value: "c"), SetCookie(name: "a", value: "b\r\nc"), SetCookie(name: "", value: ""),
            SetCookie(name: "a=b", value: "c"), SetCookie(name: "a", value: "b; c"),
            SetCookie(name: "a", value: String(repeating: "b", count: 4096)),
            SetCookie(name: "a", value: "b", path: "/\u{0}"),
        ]
        for cookie in bad { #expect(jar.store(cookie, from: request, now: self.now) == .refused(.malformed)) }
        #expect(jar.count == 0)
    }

    @Test func lifetimeIsLimited() throws {
        var jar = CookieJar(limits: CookieLimits(lifetime: 100))
        let request = CookieRequest(host: "a.com", path: "/", isSecure: true)
        let field = try #require(SetCookieField("a=b; Max-Age=1000"))
        _ = jar.store(SetCookie(field, now: self.now), from: request, now: self.now)
        #expect(jar.cookies.first?.expires == self.now.advanced(by: 100))
    }
}
