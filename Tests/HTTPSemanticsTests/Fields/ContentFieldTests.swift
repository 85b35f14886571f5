import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Fields about content, RFC 9110 §8")
struct ContentFieldTests {
    @Test(
        arguments: [
            ("gzip", [ContentCoding.gzip]), ("GZIP, Deflate", [.gzip, .deflate]), ("x-gzip", [.gzip]),
            ("identity", []), ("", []), ("br, identity, zstd, exi", [.brotli, .zstandard, .other("exi")]),
            ("gzip,gzip,gzip,gzip,gzip", nil), ("gzip, gzip\u{301}", [.gzip, .other("")]),
        ] as [(String, [ContentCoding]?)])
    func codingsAreListedInTheirOrder(_ text: String, _ codings: [ContentCoding]?) {
        #expect(ContentCoding.list([.contentEncoding: text]) == codings)
    }

    @Test(
        arguments: [
            ("http", "H", nil, Origin(scheme: "HTTP", host: "h", port: 80), true),
            ("https", "h", nil, Origin(scheme: "https", host: "h", port: 443), true),
            ("https", "[::1]", nil, Origin(scheme: "https", host: "::1"), true),
            ("http", "h", 8080, Origin(scheme: "http", host: "h"), false),
            ("http", "h", nil, Origin(scheme: "https", host: "h"), false),
        ] as [(String, String, Int?, Origin, Bool)])
    func originsAreSchemeHostAndPort(_ scheme: String, _ host: String, _ port: Int?, _ other: Origin, _ isSame: Bool) {
        #expect((Origin(scheme: scheme, host: host, port: port) == other) == isSame)
    }
}
