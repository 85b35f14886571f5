import HTTPSemantics
import Testing

@Suite("Keys of stored responses, RFC 9110 §4.2.3")
struct CacheKeyTests {
    @Test(arguments: [
        ("http://example.com/a?b#c", "http://example.com/a?b"), ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
        ("https://example.com:443", "https://example.com/"), ("https://example.com:", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"), ("http://example.com?q=A#f", "http://example.com/?q=A"),
        ("http://User:Pass@Example.com:80/", "http://User:Pass@example.com/"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"), ("http://[2001:DB8::80]/", "http://[2001:db8::80]/"),
        ("data:text/plain,A://B", "data:text/plain,A://B"), ("custom:A#b", "custom:A"), ("", ""), ("://", ":///"),
        ("http://ex\u{e4}mple.com/", "http://ex\u{e4}mple.com/"),
    ])
    func equivalentURLsHaveOneKey(_ url: String, _ key: String) {
        #expect(CacheKey.text(of: url) == key)
        #expect(CacheKey.text(of: key) == key)
    }
}
