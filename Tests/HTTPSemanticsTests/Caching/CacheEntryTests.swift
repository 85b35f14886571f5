import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Freshness, RFC 9111 §4.2")
struct CacheEntryTests {
    /// Tue, 14 Nov 2023 22:13:20 GMT
    static let sent = HTTPDate(seconds: 1_700_000_000)

    static func entry(
        _ fields: HTTPFields, status: Int = 200, request: HTTPFields = [:], delay: Int64 = 0
    ) -> CacheEntry {
        CacheEntry(
            status: status, fields: fields, requestFields: request, requestTime: Self.sent,
            responseTime: Self.sent.advanced(by: delay))
    }

    private static func date(_ seconds: Int64) -> String { self.sent.advanced(by: seconds).formatted }

    @Test(
        arguments: [
            ([.cacheControl: "max-age=60"], 60), ([.cacheControl: "max-age=60", .expires: date(500)], 60),
            ([.cacheControl: "s-maxage=500, max-age=60"], 60), ([.expires: date(500), .date: date(0)], 500),
            ([.expires: date(500), .date: date(100)], 400), ([.expires: date(500)], 500), ([.expires: date(-5)], 0),
            ([.expires: "0"], 0), ([.expires: date(500).replacing("GMT", with: "UTC")], 0),
            ([.expires: date(500).replacing(" ", with: "  ")], 0), ([.expires: "-1", .lastModified: date(-1000)], 0),
            ([:], 0),
            ([.lastModified: date(-1000), .date: date(0)], 100), ([.lastModified: date(-1000)], 100),
            ([.lastModified: date(1000)], 0), ([.lastModified: date(-86_400 * 365)], 7 * 86_400),
            ([.lastModified: "long ago"], 0), ([.cacheControl: "no-cache", .lastModified: date(-1000)], 100),
        ] as [(HTTPFields, Int64)])
    func lifetimeIsExplicitOrHeuristic(_ fields: HTTPFields, _ lifetime: Int64) {
        #expect(Self.entry(fields).lifetime == lifetime)
    }

    @Test func lifetimeIsGuessedForSomeStatusesOnly() {
        let fields: HTTPFields = [.lastModified: Self.date(-1000)]
        for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            #expect(Self.entry(fields, status: status).lifetime == 100, "\(status)")
        }
        for status in [201, 302, 307, 400, 403, 500, 503] {
            #expect(Self.entry(fields, status: status).lifetime == 0, "\(status)")
            let open: HTTPFields = [.lastModified: Self.date(-1000), .cacheControl: "public"]
            #expect(Self.entry(open, status: status).lifetime == 100, "\(status)")
        }
    }

    @Test(
        arguments: [
            ([.date: date(0)], 0, 0, 0), ([.date: date(0)], 0, 30, 30), ([.date: date(-10)], 0, 30, 40),
            ([.date: date(0), .age: "100"], 0, 30, 130), ([.date: date(0), .age: "100"], 5, 30, 130),
            ([.date: date(-200), .age: "100"], 0, 0, 200), ([.date: date(500)], 0, 7, 7), ([.age: "x"], 0, 7, 7),
            ([.age: "-5"], 0, 7, 7), ([.age: "99999999999999999999"], 0, 0, 2_147_483_648), ([:], 0, -100, 0),
            ([.age: "7200, 0"], 0, 0, 7200), ([.age: "x, 5"], 0, 0, 0), ([.age: ", 5"], 0, 0, 5),
        ] as [(HTTPFields, Int64, Int64, Int64)])
    func ageCountsTheWayAndTheStay(_ fields: HTTPFields, _ delay: Int64, _ after: Int64, _ age: Int64) {
        let entry = Self.entry(fields, delay: delay)
        #expect(entry.age(at: Self.sent.advanced(by: after)) == age)
    }

    @Test func entryIsFreshUntilItsAgeIsItsLifetime() {
        let entry = Self.entry([.cacheControl: "max-age=60", .date: Self.date(0)])
        #expect(entry.isFresh(at: Self.sent.advanced(by: 59)))
        #expect(!entry.isFresh(at: Self.sent.advanced(by: 60)))
    }

    @Test func fieldOfTheConnectionIsNotStored() {
        let entry = Self.entry([
            .connection: "x-secret, close", .init("X-Secret")!: "a", .init("Keep-Alive")!: "timeout=5",
            .transferEncoding: "chunked", .proxyAuthenticate: "Basic", .eTag: "\"a\"",
        ])
        #expect(entry.fields == [.eTag: "\"a\""])
    }
}
