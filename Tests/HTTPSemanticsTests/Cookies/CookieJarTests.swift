import HTTPSemantics
import Testing

@Suite("The jar of cookies, RFC 6265bis §5.7 and §5.8")
struct CookieJarTests {
    private let now = HTTPDate(seconds: 1_700_000_000)

    private func at(_ seconds: Int64) -> HTTPDate { self.now.advanced(by: seconds) }

    private func jar(_ lines: [(String, host: String, path: String)]) throws -> CookieJar {
        var jar = CookieJar()
        for (index, line) in lines.enumerated() {
            let moment = self.at(Int64(index))
            let set = SetCookie(try #require(SetCookieField(line.0)), now: moment)
            let request = CookieRequest(host: line.host, path: line.path, isSecure: true)
            #expect(jar.store(set, from: request, now: moment) == .stored)
        }
        return jar
    }

    private func field(
        _ jar: CookieJar, host: String = "site.example", path: String = "/", isSecure: Bool = true,
        isSameSite: Bool = true, isNavigation: Bool = false, after seconds: Int64 = 100
    ) -> String? {
        let request = CookieRequest(
            host: host, path: path, isSecure: isSecure, isSameSite: isSameSite, isSafeNavigation: isNavigation)
        var jar = jar
        return CookieField.rendered(jar.retrieve(for: request, now: self.at(seconds)))
    }

    /// RFC 6265 §3.1
    @Test func examplesOfTheRFCHold() throws {
        var jar = try self.jar([
            ("SID=31d4d96e407aad42; Path=/; Secure; HttpOnly", host: "site.example", path: "/"),
            ("lang=en-US; Path=/; Domain=site.example", host: "site.example", path: "/"),
        ])
        #expect(self.field(jar) == "SID=31d4d96e407aad42; lang=en-US")
        #expect(self.field(jar, host: "www.site.example") == "lang=en-US")
        let expiry = try #require(
            SetCookieField("lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Domain=site.example; Path=/"))
        let request = CookieRequest(host: "site.example", path: "/", isSecure: true)
        #expect(jar.store(SetCookie(expiry, now: self.at(50)), from: request, now: self.at(50)) == .removed(true))
        #expect(self.field(jar) == "SID=31d4d96e407aad42")
        #expect(jar.count == 1)
    }

    @Test func longerPathsComeFirstAndThenTheEarlierCookies() throws {
        let jar = try self.jar([
            ("a=1; Path=/", host: "site.example", path: "/"), ("b=2; Path=/x/y", host: "site.example", path: "/"),
            ("c=3; Path=/", host: "site.example", path: "/"), ("d=4; Path=/x", host: "site.example", path: "/"),
            ("e=5; Path=/x/y; Domain=site.example", host: "www.site.example", path: "/"),
        ])
        #expect(self.field(jar, path: "/x/y/z") == "b=2; e=5; d=4; a=1; c=3")
        #expect(self.field(jar, path: "/x") == "d=4; a=1; c=3")
    }

    @Test func replacedCookieKeepsItsCreationTime() throws {
        var jar = try self.jar([
            ("a=1; Path=/", host: "site.example", path: "/"), ("b=2; Path=/", host: "site.example", path: "/"),
        ])
        let set = SetCookie(try #require(SetCookieField("a=new; Path=/")), now: self.at(50))
        let request = CookieRequest(host: "site.example", path: "/", isSecure: true)
        #expect(jar.store(set, from: request, now: self.at(50)) == .replaced)
        #expect(self.field(jar) == "a=new; b=2")
        #expect(jar.count == 2)
    }

    @Test func cookiesAreIdentifiedByNamePathDomainAndHostOnly() throws {
        let jar = try self.jar([
            ("a=1; Path=/", host: "site.example", path: "/"), ("a=2; Path=/x", host: "site.example", path: "/"),
            ("a=3; Path=/; Domain=site.example", host: "site.example", path: "/"),
            ("A=4; Path=/", host: "site.example", path: "/"),
        ])
        #expect(self.field(jar, path: "/x") == "a=2; a=1; a=3; A=4")
    }

    @Test func secureAndHTTPOnlyCookiesAreRestricted() throws {
        let jar = try self.jar([
            ("s=1; Secure", host: "site.example", path: "/"), ("h=2; HttpOnly", host: "site.example", path: "/"),
            ("p=3", host: "site.example", path: "/"),
        ])
        #expect(self.field(jar) == "s=1; h=2; p=3")
        #expect(self.field(jar, isSecure: false) == "h=2; p=3")
    }

    @Test func crossSiteRequestsCarryAllowedCookies() throws {
        let jar = try self.jar([
            ("n=1; SameSite=None; Secure", host: "site.example", path: "/"),
            ("l=2; SameSite=Lax", host: "site.example", path: "/"), ("u=3", host: "site.example", path: "/"),
            ("s=4; SameSite=Strict", host: "site.example", path: "/"),
        ])
        #expect(self.field(jar) == "n=1; l=2; u=3; s=4")
        #expect(self.field(jar, isSameSite: false) == "n=1; u=3")
        #expect(self.field(jar, isSameSite: false, isNavigation: true) == "n=1; l=2; u=3")
    }

    @Test func expiredCookiesAreNotSent() throws {
        let jar = try self.jar([("a=1; Max-Age=10", host: "site.example", path: "/")])
        #expect(self.field(jar, after: 9) == "a=1")
        #expect(self.field(jar, after: 10) == nil)
    }

    @Test func ipAddressReceivesItsOwnCookiesOnly() throws {
        let jar = try self.jar([("a=1", host: "127.0.0.1", path: "/")])
        #expect(self.field(jar, host: "127.0.0.1") == "a=1")
        #expect(self.field(jar, host: "1.127.0.0.1") == nil)
    }

    private func cookie(_ name: String, isSecure: Bool = false, usedAt seconds: Int64) -> Cookie {
        Cookie(
            name: name, value: "1", domain: "site.example", isHostOnly: true, path: "/", isSecure: isSecure,
            creation: self.at(seconds))
    }

    @Test func insecureCookiesOfADomainAreEvictedFirst() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 2, total: 100))
        _ = jar.insert(self.cookie("old", isSecure: true, usedAt: 0), now: self.at(0))
        _ = jar.insert(self.cookie("open", usedAt: 1), now: self.at(1))
        _ = jar.insert(self.cookie("new", isSecure: true, usedAt: 2), now: self.at(2))
        #expect(self.field(jar) == "old=1; new=1")
        _ = jar.insert(self.cookie("newer", isSecure: true, usedAt: 3), now: self.at(3))
        #expect(self.field(jar) == "new=1; newer=1")
        #expect(jar.count == 2)
    }

    @Test func leastRecentlyUsedCookiesAreEvicted() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 2, total: 100))
        _ = jar.insert(self.cookie("a", isSecure: true, usedAt: 0), now: self.at(0))
        _ = jar.insert(self.cookie("b", usedAt: 1), now: self.at(1))
        let request = CookieRequest(host: "site.example", path: "/", isSecure: false)
        #expect(jar.retrieve(for: request, now: self.at(10)).map(\.name) == ["b"])
        _ = jar.insert(self.cookie("c", usedAt: 5), now: self.at(11))
        #expect(self.field(jar) == "a=1; b=1")
        #expect(jar.retrieve(for: request, now: self.at(12)).map(\.lastAccess) == [self.at(10)])
    }

    @Test func expiredCookiesAreEvictedFirst() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 2, total: 100))
        for (name, expires, moment) in [("a", nil, 0), ("b", 5, 1), ("c", nil, 10)] as [(String, Int64?, Int64)] {
            let cookie = Cookie(
                name: name, value: "1", domain: "x.org", isHostOnly: true, path: "/",
                expires: expires.map { self.at($0) }, creation: self.at(moment))
            #expect(jar.insert(cookie, now: self.at(moment)) == .stored)
        }
        #expect(Set(jar.cookies.map(\.name)) == ["a", "c"])
    }

    /// As a hostile site sets them, from as many of its subdomains as it likes.
    @Test func siteWithTheMostCookiesMakesRoom() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 10, total: 50))
        for (index, domain) in ["bank.example", "www.bank.example", "shop.example"].enumerated() {
            let cookie = Cookie(
                name: "sid", value: "v", domain: domain, isHostOnly: true, path: "/", creation: self.at(Int64(index)))
            #expect(jar.insert(cookie, now: self.at(Int64(index))) == .stored)
        }
        for index in 0..<500 {
            let cookie = Cookie(
                name: "n\(index)", value: "v", domain: "h\(index % 100).evil.test", isHostOnly: true, path: "/",
                isSecure: true, creation: self.at(Int64(10 + index)))
            #expect(jar.insert(cookie, now: self.at(Int64(10 + index))) == .stored)
        }
        #expect(jar.count == 50)
        #expect(jar.cookies.filter { $0.name == "sid" }.count == 3)
    }

    /// RFC 6265bis §5.8.3: also of cookies that came within one second, for the host and for its parent.
    @Test func earlierCookiesComeFirstWithinOneSecond() throws {
        var jar = CookieJar()
        let request = CookieRequest(host: "www.site.example", path: "/", isSecure: true)
        for text in ["b=1; Domain=site.example", "a=2", "c=3; Domain=site.example", "b=4; Domain=site.example"] {
            _ = jar.store(SetCookie(try #require(SetCookieField(text)), now: self.now), from: request, now: self.now)
        }
        #expect(self.field(jar, host: "www.site.example") == "b=4; a=2; c=3")
        #expect(jar.cookies.map(\.name) == ["b", "a", "c"])
    }

    @Test func jarHoldsNoMoreThanItsLimit() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 10, total: 50))
        for index in 0..<500 {
            let cookie = Cookie(
                name: "n", value: "v", domain: "h\(index).org", isHostOnly: true, path: "/",
                creation: self.at(Int64(index)))
            #expect(jar.insert(cookie, now: self.at(Int64(index))) == .stored)
            #expect(jar.count <= 50)
        }
        #expect(jar.cookies.count == 50)
        #expect(Set(jar.cookies.map(\.domain)) == Set((450..<500).map { "h\($0).org" }))
    }

    @Test func cookiesAreRemoved() throws {
        var jar = try self.jar([
            ("a=1", host: "x.org", path: "/"), ("b=2", host: "y.org", path: "/"), ("c=3", host: "x.org", path: "/"),
        ])
        #expect(jar.removeAll { $0.domain == "x.org" }.count == 2)
        #expect(jar.count == 1)
        #expect(jar.cookies.map(\.name) == ["b"])
    }

    @Test func jarIsRestoredFromItsCookies() throws {
        let jar = try self.jar([
            ("a=1", host: "x.org", path: "/"), ("b=2; Max-Age=500", host: "y.org", path: "/q/r"),
        ])
        #expect(Set(CookieJar(jar.cookies).cookies) == Set(jar.cookies))
    }

    @Test func namelessCookieIsWrittenAsItsValue() {
        #expect(CookieField.rendered([("", "v"), ("a", "b")]) == "v; a=b")
        #expect(CookieField.rendered([("a", "b\r\nX: y"), ("c;", "d")]) == nil)
        #expect(CookieField.rendered([(String, String)]()) == nil)
    }
}
