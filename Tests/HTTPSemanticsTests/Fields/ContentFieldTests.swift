import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Fields about content and time, RFC 9110 §8 and §10")
struct ContentFieldTests {
    @Test(arguments: [
        ([], ContentLength.absent), (["0"], .bytes(0)), (["997"], .bytes(997)), (["5, 5"], .bytes(5)),
        (["5", "5"], .bytes(5)), (["5", "6"], .invalid), (["5,6"], .invalid), ([""], .invalid), (["-1"], .invalid),
        (["+5"], .invalid), (["5 5"], .invalid), (["0x5"], .invalid), (["5,"], .invalid),
        (["99999999999999999999"], .invalid), (["999999999999999999"], .bytes(999_999_999_999_999_999)),
    ])
    func lengthIsOneNumber(_ lines: [String], _ expected: ContentLength) {
        var fields = HTTPFields()
        fields[values: .contentLength] = lines
        #expect(ContentLength(fields) == expected)
    }

    @Test(
        arguments: [
            ("gzip", [ContentCoding.gzip]), ("GZIP, Deflate", [.gzip, .deflate]), ("x-gzip", [.gzip]),
            ("identity", []), ("", []), ("br, identity", [.other("br")]), ("gzip,gzip,gzip,gzip,gzip", nil),
        ] as [(String, [ContentCoding]?)])
    func codingsAreListedInTheirOrder(_ text: String, _ codings: [ContentCoding]?) {
        #expect(ContentCoding.list([.contentEncoding: text]) == codings)
    }

    @Test(
        arguments: [
            ("120", 120), (" 120 ", 120), ("0", 0), ("99999999999999", 86_400), ("-5", nil), ("soon", nil), ("", nil),
            ("Thu, 01 Jan 1970 00:02:00 GMT", 20), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        ] as [(String, Int64?)])
    func waitingIsToldInSecondsOrByDate(_ text: String, _ seconds: Int64?) {
        #expect(RetryAfter.seconds(text, now: HTTPDate(seconds: 100)) == seconds)
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
