import Foundation
import Testing
import URLLoading

@Suite("Cookies from the fields of a response")
struct ResponseCookieTests {
    private static func cookies(_ text: String, from url: String = "https://example.com") throws -> [HTTPCookie] {
        let fields = ["header1": "value1", "Set-Cookie": text, "header2": "value2"]
        return HTTPCookie.cookies(withResponseHeaderFields: fields, for: try #require(URL(string: url)))
    }

    private static func cookie(_ text: String, from url: String = "https://example.com") throws -> HTTPCookie {
        let cookies = try self.cookies(text, from: url)
        #expect(cookies.count == 1)
        return try #require(cookies.first)
    }

    @Test func cookieIsReadWithItsAttributes() throws {
        let cookie = try Self.cookie("fr=anjd&232; Max-Age=7776000; path=/; domain=.example.com; secure; httponly")
        #expect(cookie.name == "fr" && cookie.value == "anjd&232" && cookie.domain == ".example.com")
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.version == 0)
        let age = try #require(cookie.expiresDate).timeIntervalSinceNow
        #expect((7_775_990...7_776_000).contains(age))
        let url = try #require(URL(string: "http://example.com"))
        #expect(HTTPCookie.cookies(withResponseHeaderFields: ["header1": "value1"], for: url).isEmpty)
        #expect(HTTPCookie.cookies(withResponseHeaderFields: ["set-cookie": "a=b"], for: url).count == 1)
    }

    @Test func joinedCookiesArePartedWhereTheNextBegins() throws {
        let two = try Self.cookies(
            "fr=a&2@#; Max-Age=1186000; path=/; domain=.example.com; secure, xd=plm!@#;path=/;domain=.example2.com")
        #expect(two.map(\.name) == ["fr", "xd"] && two.map(\.isSecure) == [true, false])
        let dated = try Self.cookies(
            " AAA =111; path=/; expires=Sun, 16-Aug-2025 22:39:54 GMT, BBB=222; expires=Sat, 15-Feb-2014 22:39:54 GMT")
        #expect(dated.map(\.name) == ["AAA", "BBB"] && dated.map(\.value) == ["111", "222"])
        let sentence = try Self.cookie(
            "n=v; Comment=real value, tok@en=second; CommentURL=https://example.com/second")
        #expect(sentence.comment == "real value, tok@en=second")
        #expect(sentence.commentURL?.absoluteString == "https://example.com/second")
    }

    @Test(arguments: [";attr1=value1", "=value1;attr2=value2", "   =value1;attr2=value2", "name;attr2=value2", ""])
    func cookieNeedsANameAndAnEqualsSign(_ text: String) throws {
        #expect(try Self.cookies(text).isEmpty)
    }

    @Test func attributeWithoutANameIsIgnored() throws {
        let cookie = try Self.cookie("name=v=a=l;Comment=value1;   =value2;CommentURL=value3")
        #expect(cookie.value == "v=a=l" && cookie.comment == "value1")
        #expect(cookie.commentURL?.relativeString == "value3")
    }

    @Test func flagIsReadWithAndWithoutAValue() throws {
        let bare = try Self.cookie("name=value;Secure;Comment;Discard;CommentURL;HttpOnly")
        #expect(bare.isSecure && bare.isSessionOnly && bare.isHTTPOnly && bare.comment == nil)
        #expect(bare.commentURL == nil)
        let valued = try Self.cookie("name=value;Secure=1;Max-Age=5;Discard=TRUE;HttpOnly=Yes")
        // A cookie that its server wants to be secure is never sent without TLS.
        #expect(valued.isSecure && valued.isHTTPOnly && !valued.isSessionOnly)
    }

    @Test(arguments: [
        ("a=b; Path=This/is/no/path", "https://example.com", "/"), ("a=b", "https://example.com/x/y?z", "/x"),
        ("a=b; Path=/q", "https://example.com/x/y", "/q"), ("a=b; Path", "https://example.com/x/", "/x"),
    ])
    func cookiesPathIsTheFolderOfTheRequest(_ text: String, _ url: String, _ path: String) throws {
        #expect(try Self.cookie(text, from: url).path == path)
    }

    @Test(arguments: [
        ("a=b; domain=eXample.com", "http://eXample.com", ".example.com"),
        ("a=b; domain=.eXample.com", "http://eXample.com", ".example.com"),
        ("a=b; domain=a.eXample.com", "http://a.eXample.com", ".a.example.com"),
        ("a=b", "http://a.eXample.com", "a.example.com"), ("a=b; domain=1.2.3.4", "http://eXample.com", "1.2.3.4"),
        ("a=b", "http://127.0.0.1:80/", "127.0.0.1"), ("a=b; domain", "http://x.org", "x.org"),
    ])
    func namedDomainGetsALeadingDot(_ text: String, _ url: String, _ domain: String) throws {
        #expect(try Self.cookie(text, from: url).domain == domain)
    }

    @Test(arguments: [
        "Wed, 01 Jan 2020 12:30:00 GMT", "Wed Jan 1 12:30:00 2020", "Wed, 01-Jan-2020 12:30:00 GMT",
        "Wednesday, 01-Jan-20 12:30:00 GMT",
    ])
    func everyFormOfADateIsRead(_ date: String) throws {
        let cookie = try Self.cookie("a=b; expires=\(date); path=/; secure")
        #expect(cookie.expiresDate == Date(timeIntervalSince1970: 1_577_881_800))
    }

    @Test func cookiesAreReadOverSeveralLines() throws {
        let text =
            "f1=true; expires=Wed, 01 Jan 2020 12:30:00 GMT; domain=swift.org; secure,\n"
            + "f2=true; expires=Wed Jan 1 12:30:00 2020; domain=swift.org,\nf3=true; domain=swift.org"
        let cookies = try Self.cookies(text, from: "https://swift.org")
        #expect(cookies.map(\.name) == ["f1", "f2", "f3"] && cookies.allSatisfy { $0.domain == ".swift.org" })
    }

    @Test func responseCookieHasItsSameSitePolicy() throws {
        #expect(try Self.cookie("a=b; SameSite=Lax").sameSitePolicy == .sameSiteLax)
        #expect(try Self.cookie("a=b; samesite=STRICT").sameSitePolicy == .sameSiteStrict)
        #expect(try Self.cookie("a=b; SameSite=None; Secure").sameSitePolicy == nil)
        #expect(try Self.cookie("a=b; SameSite=None; Secure").properties?[.sameSitePolicy] as? String == "none")
    }

    @Test func cookieNeedsAHost() throws {
        #expect(try Self.cookies("a=b", from: "data:,x").isEmpty)
    }
}
