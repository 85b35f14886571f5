import HTTPSemantics
import Testing

@Suite("Where cookies belong, RFC 6265bis §5.1.3 and §5.1.4")
struct CookieMatchingTests {
    @Test(arguments: [
        ("example.com", "example.com", true), ("www.example.com", "example.com", true),
        ("a.b.example.com", "example.com", true), ("example.com", "www.example.com", false),
        ("badexample.com", "example.com", false), ("example.com", "com", true), ("192.168.0.1", "0.1", false),
        ("192.168.0.1", "192.168.0.1", true), ("2001:db8::1", "2001:db8::1", true), ("::1", "1", false),
        ("example.com", "", false), ("", "", true),
    ])
    func domainMatchesItselfAndSubdomains(_ host: String, _ domain: String, _ matches: Bool) {
        #expect(CookieDomain.matches(host, domain: domain) == matches)
    }

    @Test(arguments: [
        ("Example.COM", "example.com"), (".example.com", "example.com"), ("example.com.", "example.com"),
        ("[2001:DB8::1]", "2001:db8::1"), (".", ""), ("", ""), ("..a", ".a"), ("1.2.3.4", "1.2.3.4"),
    ])
    func domainsHaveOneForm(_ domain: String, _ canonical: String) {
        #expect(CookieDomain.canonical(domain) == canonical)
    }

    @Test(arguments: [
        ("1.2.3.4", true), ("::1", true), ("2001:db8::1", true), ("example.com", false), ("1.2.3", true),
        ("1.2.3.x", false), ("1.2.3.4567", true), ("1.2.3.", false), ("", false), ("127.1", true), ("0.1", true),
        ("0x7f.1", true), ("1.0x7f", true), ("1.0xg", false), ("host1", false), ("a.1b", false),
    ])
    func addressesAreNoNames(_ host: String, _ isAddress: Bool) {
        #expect(CookieDomain.isAddress(host) == isAddress)
    }

    @Test(arguments: [
        ("/", "/"), ("", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/c.html", "/a/b"), ("a/b", "/"),
        ("*", "/"),
    ])
    func theStandardPathIsTheFolder(_ path: String, _ standard: String) {
        #expect(CookiePath.defaultPath(for: path) == standard)
    }

    @Test(arguments: [
        ("/", "/", true), ("/a", "/", true), ("/a/b", "/a", true), ("/a/b", "/a/", true), ("/a", "/a", true),
        ("/ab", "/a", false), ("/a", "/a/", false), ("/", "/a", false), ("", "/", true), ("/A", "/a", false),
    ])
    func pathsMatchByWholeSegments(_ path: String, _ cookiePath: String, _ matches: Bool) {
        #expect(CookiePath.matches(path, cookiePath: cookiePath) == matches)
    }

    @Test(arguments: [
        ("www.example.com", "example.com"), ("example.com", "example.com"), ("com", "com"), ("a.b.co.uk", "b.co.uk"),
        ("co.uk", "co.uk"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("localhost", "localhost"),
    ])
    func theSiteIsOneLabelMoreThanThePublicSuffix(_ host: String, _ site: String) {
        let rule = PublicSuffixRule { $0 == "co.uk" || !$0.contains(".") }
        #expect(CookieDomain.site(of: host, suffixes: rule) == site)
    }

    @Test func sameSiteHostsAreRecognized() {
        #expect(CookieDomain.areSameSite("a.example.com", "B.Example.com.", suffixes: .singleLabels))
        #expect(!CookieDomain.areSameSite("a.example.com", "a.example.org", suffixes: .singleLabels))
        #expect(!CookieDomain.areSameSite("1.2.3.4", "5.2.3.4", suffixes: .singleLabels))
    }
}
