import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Any text for dates and cookies")
struct CookieFuzzTests {
    private let now = HTTPDate(seconds: 1_700_000_000)

    @Test func anyTextGivesNoDateOrAWritableDate() {
        var parsed = 0
        for seed in 0..<4000 as Range<UInt64> {
            var text = FuzzText(
                seed: seed,
                pieces: [
                    "Sun, ", "06", " Nov", " 1994 ", "08:49:37", " GMT", "Sunday, ", "-Nov-", "94", "Sun Nov  6 ", ":",
                    " ",
                    "Sun, 06 Nov 1994 08:49:37 GMT", "29 Feb ", "31", "23:59:60", "\t", ",",
                ])
            let line = text.next()
            if let date = HTTPDate(line, now: self.now) {
                parsed += 1
                #expect(HTTPDate(date.formatted, now: self.now) == date, "seed \(seed)")
            }
            if let date = CookieDate.parse(line) {
                parsed += 1
                #expect(date.seconds >= -11_644_473_600, "seed \(seed)")
                #expect(CookieDate.parse(date.formatted) == date, "seed \(seed)")
            }
        }
        #expect(parsed > 50)
    }

    private static let pieces = [
        "a", "b", "=", "=", ";", "; ", ",", ", ", "Max-Age=", "Expires=", "Wed, 01 Jan 2020 12:30:00 GMT", "Domain=",
        "example.com", ".", "com", "Path=", "/", "/x", "Secure", "HttpOnly", "SameSite=", "None", "Lax", "__Secure-",
        "__Host-", "-", "\t", "\r\n", "\0", "\"", "a=b", "1.2.3.4", "[::1]",
    ]

    @Test func anyTextGivesNoCookieOrAValidCookie() {
        var jar = CookieJar(limits: CookieLimits(perDomain: 20, total: 60))
        var stored = 0
        for seed in 0..<4000 as Range<UInt64> {
            var text = FuzzText(seed: seed, pieces: Self.pieces)
            let host = ["example.com", "a.example.com", "1.2.3.4", "::1", "b.org"][Int(seed % 5)]
            let request = CookieRequest(host: host, path: text.next(), isSecure: seed % 2 == 0)
            let now = self.now.advanced(by: Int64(seed))
            for field in SetCookieField.parseJoined(text.next()) {
                #expect(field.attributes.count <= SetCookieField.attributeCountLimit, "seed \(seed)")
                let outcome = jar.store(SetCookie(field, now: now), from: request, now: now)
                stored += outcome == .stored ? 1 : 0
            }
            #expect(jar.count <= 60 && jar.count == jar.cookies.count, "seed \(seed)")
            let taken = jar.retrieve(for: request, now: now)
            #expect(taken.count <= 40, "seed \(seed)")
            let field = CookieField.rendered(taken) ?? ""
            #expect(!field.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }, "seed \(seed)")
            #expect(field.utf8.count { $0 == UInt8(ascii: ";") } == max(0, taken.count - 1), "seed \(seed)")
        }
        #expect(stored > 200)
    }
}
