import Foundation
import Testing
import URLLoading

@Suite("Storages of cookies")
struct HTTPCookieStorageTests {
    private let storage = HTTPCookieStorage()

    private static func cookie(
        _ name: String, _ domain: String = "swift.org", path: String = "/",
        with more: [HTTPCookiePropertyKey: Any] = [:]
    ) throws -> HTTPCookie {
        let plain: [HTTPCookiePropertyKey: Any] = [.name: name, .value: "v", .path: path, .domain: domain]
        return try #require(HTTPCookie(properties: plain.merging(more) { $1 }))
    }

    private func names(_ url: String) throws -> [String] {
        let url = try #require(URL(string: url))
        return try #require(self.storage.cookies(for: url) as [HTTPCookie]?).map(\.name)
    }

    private func set(_ cookies: [HTTPCookie], _ url: String, document: String? = nil) throws {
        let url = try #require(URL(string: url))
        self.storage.setCookies(cookies, for: url, mainDocumentURL: document.flatMap { URL(string: $0) })
    }

    @Test func storageKeepsOneCookieOfANameDomainAndPath() throws {
        self.storage.setCookie(try Self.cookie("a", with: [.expires: Date(timeIntervalSince1970: 1_475_767_775)]))
        #expect(self.storage.cookies?.count == 0)
        self.storage.setCookie(try Self.cookie("a"))
        let newer = try Self.cookie("a", with: [.value: "w"])
        self.storage.setCookie(newer)
        #expect(self.storage.cookies == [newer])
        self.storage.setCookie(try Self.cookie("a", "example.com"))
        self.storage.setCookie(try Self.cookie("a", path: "/p"))
        self.storage.setCookie(try Self.cookie("a", ".swift.org"))
        #expect(self.storage.cookies?.count == 4)
        self.storage.setCookie(try Self.cookie("a", with: [.expires: Date.distantPast]))
        #expect(self.storage.cookies?.count == 3)
    }

    /// The suffixes are in the list of the package that the tests install.
    @Test(arguments: ["com", "co.uk", "github.io"])
    func cookieForAPublicSuffixIsRefused(_ suffix: String) throws {
        let url = try #require(URL(string: "https://a.\(suffix)/"))
        for domain in [suffix, "a.\(suffix)"] {
            let fields = ["Set-Cookie": "\(domain.first ?? "_")=b; Domain=\(domain)"]
            self.storage.setCookies(
                HTTPCookie.cookies(withResponseHeaderFields: fields, for: url), for: url, mainDocumentURL: nil)
        }
        #expect(self.storage.cookies?.map(\.domain) == [".a.\(suffix)"])
    }

    @Test func sitesBelowAPublicSuffixAreThirdParties() throws {
        self.storage.cookieAcceptPolicy = .onlyFromMainDocumentDomain
        try self.set([Self.cookie("a", "a.co.uk")], "https://a.co.uk", document: "https://b.co.uk")
        #expect(self.storage.cookies?.isEmpty == true)
        try self.set([Self.cookie("a", "x.a.co.uk")], "https://x.a.co.uk", document: "https://a.co.uk")
        #expect(self.storage.cookies?.count == 1)
    }

    @Test func deletedCookiesAreGone() throws {
        let cookie = try Self.cookie("a")
        self.storage.setCookie(cookie)
        self.storage.setCookie(try Self.cookie("b"))
        self.storage.deleteCookie(try Self.cookie("a", with: [.value: "another value"]))
        #expect(self.storage.cookies?.map(\.name) == ["b"])
        self.storage.deleteCookie(cookie)
        self.storage.removeCookies(since: Date(timeIntervalSinceNow: 120))
        #expect(self.storage.cookies?.count == 1)
        self.storage.removeCookies(since: Date(timeIntervalSinceNow: -120))
        #expect(self.storage.cookies?.count == 0)
    }

    @Test func cookiesAreSentToTheirHosts() throws {
        let own = try Self.cookie("own")
        self.storage.setCookie(own)
        self.storage.setCookie(try Self.cookie("all", ".SWIFT.org"))
        self.storage.setCookie(try Self.cookie("bugs", "bugs.swift.org"))
        #expect(try self.names("https://swift.ORG") == ["own", "all"])
        let url = try #require(URL(string: "http://swift.org"))
        #expect((self.storage.cookies(for: url) as [HTTPCookie]?)?.first === own)
        #expect(try self.names("https://CI.swift.ORG") == ["all"])
        #expect(Set(try self.names("https://BUGS.swift.org")) == ["all", "bugs"])
        #expect(try self.names("http://www.example.com").isEmpty && self.names("https://superswift.org").isEmpty)
        #expect(try self.names("data:,x").isEmpty)
    }

    @Test func cookiesAreGivenByPathAndSecurity() throws {
        self.storage.setCookie(try Self.cookie("root"))
        self.storage.setCookie(try Self.cookie("deep", path: "/a/b"))
        self.storage.setCookie(try Self.cookie("safe", with: [.secure: "TRUE"]))
        #expect(try self.names("http://swift.org/a/b/c") == ["deep", "root"])
        #expect(try self.names("http://swift.org/a/bc") == ["root"])
        #expect(try self.names("https://swift.org") == ["root", "safe"])
        #expect(try self.names("wss://swift.org") == ["root", "safe"])
        #expect(try self.names("ws://swift.org") == ["root"])
    }

    @Test func cookieWithPortsIsSentToThemOnly() throws {
        self.storage.setCookie(try Self.cookie("all"))
        self.storage.setCookie(try Self.cookie("some", with: [.version: "1", .port: "80,8443"]))
        #expect(try self.names("http://swift.org") == ["all", "some"])
        #expect(try self.names("https://swift.org:8443/") == ["all", "some"])
        #expect(try self.names("https://swift.org") == ["all"])
        #expect(try self.names("http://swift.org:8080") == ["all"])
    }

    @Test func storageKeepsCookiesThatTheHostMaySet() throws {
        let cookies = try [
            Self.cookie("foreign", "example.com"), Self.cookie("own"), Self.cookie("all", ".swift.org"),
            Self.cookie("public", ".org"), Self.cookie("below", "a.swift.org"),
        ]
        try self.set(cookies, "https://swift.org")
        #expect(Set((self.storage.cookies ?? []).map(\.name)) == ["own", "all"])
        try self.set([Self.cookie("late")], "https://dt.swift.org")
        self.storage.setCookies([try Self.cookie("late")], for: nil, mainDocumentURL: nil)
        try self.set([Self.cookie("late", with: [.secure: "TRUE"])], "http://swift.org")
        #expect(self.storage.cookies?.count == 2)
    }

    @Test(arguments: [
        ("__Host-a=b; Secure; Path=/", true), ("__Host-a=b; Secure", false), ("__Host-a=b; Path=/", false),
        ("__Host-a=b; Secure; Path=/; Domain=swift.org", false), ("__Secure-a=b; Secure", true),
        ("__Secure-a=b", false), ("a=b; SameSite=None", false), ("a=b; SameSite=None; Secure", true),
    ])
    func storageEnforcesCookieNamePrefixes(_ field: String, _ isKept: Bool) throws {
        let url = try #require(URL(string: "https://swift.org/"))
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url)
        try self.set(cookies, "https://swift.org/")
        #expect(cookies.count == 1 && self.storage.cookies?.count == (isKept ? 1 : 0))
    }

    @Test func mainDocumentDecidesAboutCookies() throws {
        #expect(self.storage.cookieAcceptPolicy == .always)
        try self.set([Self.cookie("third")], "https://swift.org", document: "https://example.com")
        #expect(try self.names("https://swift.org") == ["third"])
        try self.set(
            [Self.cookie("lax", with: [.sameSitePolicy: "lax"])], "https://swift.org", document: "https://example.com")
        #expect(try self.names("https://swift.org") == ["third"])
        self.storage.cookieAcceptPolicy = .onlyFromMainDocumentDomain
        try self.set([Self.cookie("other")], "https://swift.org", document: "https://example.com")
        #expect(try self.names("https://swift.org") == ["third"])
        try self.set([Self.cookie("site")], "https://swift.org/downloads", document: "http://ci.swift.org")
        try self.set([Self.cookie("none")], "https://swift.org")
        #expect(try self.names("https://swift.org") == ["third", "site", "none"])
        self.storage.cookieAcceptPolicy = .never
        try self.set([Self.cookie("refused")], "https://swift.org")
        self.storage.setCookie(try Self.cookie("refused"))
        #expect(self.storage.cookies?.count == 3)
    }

    @Test func acceptPoliciesHaveFoundationsNumbers() {
        let policies: [HTTPCookie.AcceptPolicy] = [.always, .never, .onlyFromMainDocumentDomain]
        #expect(policies.map(\.rawValue) == [0, 1, 2])
    }

    @Test func sameSiteCookiesAreNotSentToOtherSites() throws {
        let url = try #require(URL(string: "https://swift.org"))
        let document = URL(string: "https://example.com")
        self.storage.setCookie(try Self.cookie("strict", with: [.sameSitePolicy: "strict"]))
        self.storage.setCookie(try Self.cookie("lax", with: [.sameSitePolicy: "lax"]))
        self.storage.setCookie(try Self.cookie("none", with: [.sameSitePolicy: "none", .secure: "TRUE"]))
        #expect(self.storage.cookies(for: url, mainDocumentURL: document).map(\.name) == ["none"])
        let visit = self.storage.cookies(for: url, mainDocumentURL: document, isNavigation: true)
        #expect(visit.map(\.name) == ["lax", "none"])
        #expect(try self.names("https://swift.org") == ["strict", "lax", "none"])
    }

    @Test func cookiesAreSortedByDescriptors() throws {
        let cookies = try [
            Self.cookie("A", path: "/1"), Self.cookie("B", path: "/2"), Self.cookie("C", path: "/2"),
        ]
        try self.set(cookies, "https://swift.org", document: "https://swift.org")
        let sorted = self.storage.sortedCookies(using: [
            NSSortDescriptor(keyPath: \HTTPCookie.path, ascending: true),
            NSSortDescriptor(keyPath: \HTTPCookie.name, ascending: false),
        ])
        #expect(sorted.map(\.name) == ["A", "C", "B"])
    }

    @Test func notificationIsPostedForChangesOnly() throws {
        let changes = NotificationCounter(.NSHTTPCookieManagerCookiesChanged, object: self.storage)
        let policies = NotificationCounter(.NSHTTPCookieManagerAcceptPolicyChanged, object: self.storage)
        self.storage.setCookie(try Self.cookie("a"))
        #expect(changes.count == 1)
        self.storage.deleteCookie(try Self.cookie("b"))
        try self.set([Self.cookie("x", "example.com")], "https://swift.org")
        self.storage.removeCookies(since: Date(timeIntervalSinceNow: 60))
        #expect(changes.count == 1)
        try self.set([Self.cookie("c"), Self.cookie("d")], "https://swift.org")
        #expect(changes.count == 2 && policies.count == 0)
        self.storage.cookieAcceptPolicy = .always
        #expect(policies.count == 0)
        self.storage.cookieAcceptPolicy = .never
        #expect(policies.count == 1 && changes.count == 2)
    }

    @Test func storageDescriptionHasTheCookieCount() throws {
        #expect(self.storage.description == "<NSHTTPCookieStorage cookies count:0>")
        self.storage.setCookie(try Self.cookie("a"))
        #expect(self.storage.description == "<NSHTTPCookieStorage cookies count:1>")
    }

    @Test func sharedStorageIsOneForAllThreads() async {
        let same = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 { group.addTask { HTTPCookieStorage.shared === HTTPCookieStorage.shared } }
            return await group.allSatisfy { $0 }
        }
        let first = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "tests.one")
        #expect(same && first === HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "tests.one"))
        #expect(first !== HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "tests.two"))
    }

    @Test func storageIsSafeFromManyThreads() async throws {
        let url = try #require(URL(string: "http://swift.org"))
        let cookies = try (0..<100).map { try Self.cookie("c\($0)") }
        await withTaskGroup(of: Void.self) { group in
            for cookie in cookies {
                group.addTask {
                    self.storage.setCookie(cookie)
                    _ = self.storage.cookies(for: url) as [HTTPCookie]?
                }
            }
        }
        #expect(self.storage.cookies?.count == 100)
        for index in 100..<300 { self.storage.setCookie(try Self.cookie("c\(index)")) }
        // The limit of 180 cookies of one domain is that of browsers.
        #expect(self.storage.cookies?.count == 180)
    }
}
