import Foundation
import Testing
import URLLoading

@Suite("Cookies from properties")
struct HTTPCookieTests {
    private static var plain: [HTTPCookiePropertyKey: Any] {
        [.name: "TestCookie", .value: "Test value @#$%^$&*", .path: "/", .domain: "apple.com"]
    }

    private static func cookie(_ more: [HTTPCookiePropertyKey: Any] = [:]) throws -> HTTPCookie {
        try #require(HTTPCookie(properties: self.plain.merging(more) { $1 }))
    }

    @Test(arguments: [HTTPCookiePropertyKey.name, .value, .path, .domain])
    func cookieNeedsANameAValueAPathAndADomain(_ key: HTTPCookiePropertyKey) {
        var properties = Self.plain
        properties[key] = nil
        #expect(HTTPCookie(properties: properties) == nil)
    }

    @Test func cookieWithoutExpiryIsASessionCookie() throws {
        let cookie = try Self.cookie()
        #expect(cookie.name == "TestCookie" && cookie.value == "Test value @#$%^$&*" && cookie.path == "/")
        #expect(cookie.domain == "apple.com" && cookie.version == 0 && cookie.isSessionOnly && !cookie.isSecure)
        #expect(cookie.expiresDate == nil && !cookie.isHTTPOnly && cookie.comment == nil && cookie.commentURL == nil)
        #expect(cookie.portList == nil && cookie.sameSitePolicy == nil)
        let ending = try Self.cookie([.expires: Date(timeIntervalSince1970: 1000)])
        #expect(ending.expiresDate == Date(timeIntervalSince1970: 1000) && !ending.isSessionOnly)
        let text = try Self.cookie([.expires: "Wed, 21 Sep 2016 05:33:00 GMT"])
        #expect(text.expiresDate == Date(timeIntervalSince1970: 1_474_435_980))
    }

    @Test func missingDomainComesFromTheOrigin() throws {
        let origin = try #require(URL(string: "https://Example.com/a"))
        var properties = Self.plain
        properties[.originURL] = origin
        #expect(HTTPCookie(properties: properties)?.domain == "apple.com")
        properties[.domain] = nil
        #expect(HTTPCookie(properties: properties)?.domain == "example.com")
    }

    @Test func version0CookieHasNoMaximumAgeAndOnePort() throws {
        let cookie = try Self.cookie([
            .comment: "c", .commentURL: "https://apple.com", .discard: "TRUE", .maximumAge: "2000",
            .expires: Date(timeIntervalSince1970: 1000), .port: "443,8443", .secure: "YES",
        ])
        #expect(cookie.version == 0 && cookie.comment == "c" && cookie.commentURL?.host() == "apple.com")
        #expect(cookie.isSessionOnly && cookie.expiresDate == nil && cookie.isSecure)
        #expect(cookie.portList == [NSNumber(value: 443)])
        #expect(try Self.cookie([.maximumAge: "2000"]).isSessionOnly)
    }

    @Test func version1CookieUsesMaxAge() throws {
        let cookie = try Self.cookie([.version: "1", .maximumAge: "2000", .port: "443, 8443"])
        let age = try #require(cookie.expiresDate).timeIntervalSinceNow
        #expect(cookie.version == 1 && (1990...2000).contains(age) && cookie.portList?.count == 2)
        #expect(try Self.cookie([.version: 1]).version == 1)
        #expect(try Self.cookie([.version: "1", .maximumAge: "9223372036854775807"]).expiresDate != nil)
    }

    @Test func anyTextAndAnyFlagAreTaken() throws {
        #expect(try Self.cookie([.name: "davesy".dropLast(), .domain: "."]).name == "daves")
        #expect(try !Self.cookie([.secure: false]).isSecure && Self.cookie([.secure: true]).isSecure)
        #expect(try Self.cookie([.domain: ".SWIFT.org"]).domain == ".swift.org")
        #expect(try Self.cookie([.sameSitePolicy: "Lax"]).sameSitePolicy == .sameSiteLax)
        #expect(
            try Self.cookie([.sameSitePolicy: HTTPCookieStringPolicy.sameSiteStrict]).sameSitePolicy == .sameSiteStrict)
    }

    @Test func cookieIsMadeAgainFromItsProperties() throws {
        let cookie = try Self.cookie([
            .version: "1", .maximumAge: "100", .secure: "TRUE", .sameSitePolicy: "strict", .port: "1,2",
            .comment: "c", .commentURL: "http://a/", .domain: ".a.org",
        ])
        var properties = try #require(cookie.properties)
        #expect(properties[.version] as? String == "1" && properties[.expires] as? Date == cookie.expiresDate)
        // In version 1 the maximum age is used instead of the date.
        properties[.version] = nil
        let again = try #require(HTTPCookie(properties: properties))
        #expect(again.expiresDate == cookie.expiresDate && again.isSecure && again.sameSitePolicy == .sameSiteStrict)
        let plain = try Self.cookie()
        let same = try #require(plain.properties)
        let twin = try #require(HTTPCookie(properties: same))
        #expect(twin == plain && twin.hash == plain.hash)
    }

    @Test func cookiesDifferInAnyProperty() throws {
        let variants = try [
            [:], [.name: "b"], [.value: "b"], [.path: "/b"], [.domain: "b"], [.domain: ".apple.com"],
            [.secure: true], [.expires: Date.distantFuture], [.comment: "c"], [.sameSitePolicy: "lax"],
        ].map { (more: [HTTPCookiePropertyKey: Any]) in try Self.cookie(more) }
        #expect(Set(variants).count == variants.count)
        #expect(try Self.cookie() == Self.cookie())
    }

    @Test func cookiesAreSentInOneField() throws {
        #expect(HTTPCookie.requestHeaderFields(with: []).isEmpty)
        let cookies = try [Self.cookie([.name: "a", .value: "1"]), Self.cookie([.name: "b", .value: "2"])]
        #expect(HTTPCookie.requestHeaderFields(with: cookies) == ["Cookie": "a=1; b=2"])
        let broken = try [Self.cookie([.name: "a", .value: "1\r\nX: y"]), Self.cookie([.name: "b", .value: "2"])]
        #expect(HTTPCookie.requestHeaderFields(with: broken) == ["Cookie": "b=2"])
    }

    @Test func propertyKeysAreNamedAsInFoundation() {
        let keys: [HTTPCookiePropertyKey] = [
            .name, .value, .originURL, .version, .domain, .path, .secure, .expires, .comment, .commentURL, .discard,
            .maximumAge, .port, .sameSitePolicy,
        ]
        let names = [
            "Name", "Value", "OriginURL", "Version", "Domain", "Path", "Secure", "Expires", "Comment", "CommentURL",
            "Discard", "Max-Age", "Port", "SameSite",
        ]
        #expect(keys.map(\.rawValue) == names && HTTPCookiePropertyKey(rawValue: "Name") == .name)
    }
}
