import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Validation and invalidation, RFC 9111 §4.3 and §4.4")
struct ValidationTests {
    private let later = CacheEntryTests.sent.advanced(by: 500)
    private let stored: HTTPFields = [
        .eTag: "\"x\"", .cacheControl: "max-age=60", .contentType: "text/plain", .contentLength: "5",
        .contentEncoding: "gzip", .age: "30", .init("X-Old")!: "1", .lastModified: "Tue, 14 Nov 2023 22:00:00 GMT",
    ]

    private func freshened(
        _ stored: HTTPFields, by fields: HTTPFields, request: HTTPFields = [:]
    ) -> CacheEntry? {
        CacheEntryTests.entry(stored, request: request).freshened(
            by: fields, requestFields: request, requestTime: self.later, responseTime: self.later)
    }

    @Test func fieldsOfA304AreAdopted() throws {
        let entry = try #require(
            self.freshened(
                self.stored,
                by: [
                    .eTag: "\"x\"", .cacheControl: "max-age=600", .init("X-New")!: "2", .contentLength: "0",
                    .contentType: "image/png", .contentEncoding: "br", .connection: "close",
                    .date: self.later.formatted,
                ]))
        #expect(
            entry.fields == [
                .eTag: "\"x\"", .cacheControl: "max-age=600", .contentType: "text/plain", .contentLength: "5",
                .contentEncoding: "gzip", .init("X-Old")!: "1", .lastModified: "Tue, 14 Nov 2023 22:00:00 GMT",
                .init("X-New")!: "2", .date: self.later.formatted,
            ])
        #expect(entry.isFresh(at: self.later.advanced(by: 599)))
        #expect(!entry.isFresh(at: self.later.advanced(by: 600)))
    }

    @Test func varyOfA304SelectsFromThenOn() throws {
        let request: HTTPFields = [.acceptLanguage: "de", .accept: "a"]
        let other: HTTPFields = [.acceptLanguage: "en", .accept: "a"]
        for former in [nil, "Accept"] {
            var stored = self.stored
            stored[.vary] = former
            let entry = try #require(
                self.freshened(stored, by: [.eTag: "\"x\"", .vary: "Accept-Language"], request: request))
            #expect(entry.varyKey.matches(request) && !entry.varyKey.matches(other))
            let any = try #require(self.freshened(stored, by: [.eTag: "\"x\"", .vary: "*"], request: request))
            #expect(!any.varyKey.matches(request))
            let same = try #require(self.freshened(stored, by: [.eTag: "\"x\""], request: request))
            #expect(same.varyKey.matches(request) && same.varyKey.matches(other))
        }
    }

    /// RFC 9110 §6.6.1.
    @Test func dateOfA304WithoutOneIsWhenItCame() throws {
        var stored = self.stored
        stored[.date] = CacheEntryTests.sent.formatted
        let entry = try #require(self.freshened(stored, by: [.eTag: "\"x\""]))
        #expect(entry.fields[values: .date] == [self.later.formatted])
        #expect(entry.isFresh(at: self.later.advanced(by: 59)) && !entry.isFresh(at: self.later.advanced(by: 60)))
    }

    @Test(
        arguments: [
            (.get, [:], 200, true), (.get, [:], 404, true), (.get, [:], 410, true), (.get, [:], 206, false),
            (.get, [:], 304, false), (.get, [:], 503, false), (.get, [.range: "bytes=0-1"], 200, false),
            (.head, [:], 200, false), (.post, [:], 200, false),
        ] as [(HTTPRequest.Method, HTTPFields, Int, Bool)])
    func newResponseReplacesTheStoredOne(
        _ method: HTTPRequest.Method, _ fields: HTTPFields, _ status: Int, _ isReplaced: Bool
    ) {
        #expect(CacheInvalidation.replacesStored(method: method, requestFields: fields, status: status) == isReplaced)
    }

    @Test func updateReplacesAllLinesOfAField() throws {
        var news = HTTPFields()
        news[values: .cacheControl] = ["max-age=1", "private"]
        let entry = try #require(self.freshened(self.stored, by: news))
        #expect(entry.fields[values: .cacheControl] == ["max-age=1", "private"])
    }

    @Test func notModifiedForAnotherResponseIsRefused() {
        #expect(self.freshened(self.stored, by: [.eTag: "\"y\""]) == nil)
        #expect(self.freshened([.cacheControl: "max-age=60"], by: [.eTag: "\"y\""]) == nil)
        #expect(
            self.freshened(
                [.lastModified: "Tue, 14 Nov 2023 22:00:00 GMT"],
                by: [.lastModified: "Tue, 14 Nov 2023 22:00:01 GMT"]) == nil)
    }

    @Test func a304WithoutValidatorsUpdatesTheEntry() {
        #expect(self.freshened(self.stored, by: [:]) != nil)
        #expect(self.freshened(self.stored, by: [.eTag: "W/\"x\""]) != nil)
        #expect(
            self.freshened(
                [.lastModified: "Tue, 14 Nov 2023 22:00:00 GMT"],
                by: [.lastModified: "Tue, 14 Nov 2023 22:00:00 GMT"]) != nil)
    }

    /// RFC 9110 §8.8.3.2
    @Test(arguments: [
        ("W/\"1\"", "W/\"1\"", true), ("W/\"1\"", "W/\"2\"", false), ("W/\"1\"", "\"1\"", true),
        ("\"1\"", "\"1\"", true),
    ])
    func tagsAreComparedAsInTheTableOfTheRFC(_ one: String, _ other: String, _ weak: Bool) throws {
        let one = try #require(EntityTag(one))
        let other = try #require(EntityTag(other))
        #expect(one.weaklyMatches(other) == weak)
    }

    @Test(arguments: ["", "\"a\"b\"", "a b", "W/", "\"a", "\"\u{7F}\"", "\"a\" \"b\""])
    func invalidEntityTagIsRefused(_ text: String) {
        #expect(EntityTag(text) == nil)
    }

    @Test(arguments: ["\"xyzzy\"", "W/\"xyzzy\"", "\"\"", "W/\"\"", "abc", "\"a/b=\""])
    func entityTagIsWrittenAsItCame(_ text: String) {
        #expect(EntityTag(text)?.fieldValue == text)
    }

    @Test func successfulUnsafeMethodInvalidates() {
        for method in [HTTPRequest.Method.post, .put, .delete, .patch] {
            #expect(CacheInvalidation.invalidatesTarget(method: method, status: 200))
            #expect(CacheInvalidation.invalidatesTarget(method: method, status: 303))
            #expect(!CacheInvalidation.invalidatesTarget(method: method, status: 404))
            #expect(!CacheInvalidation.invalidatesTarget(method: method, status: 500))
        }
        for method in [HTTPRequest.Method.get, .head, .options, .trace] {
            #expect(!CacheInvalidation.invalidatesTarget(method: method, status: 200))
        }
        let fields: HTTPFields = [.location: "/a", .contentLocation: "/b"]
        #expect(CacheInvalidation.invalidatedReferences(method: .post, status: 201, fields: fields) == ["/a", "/b"])
        #expect(CacheInvalidation.invalidatedReferences(method: .get, status: 200, fields: fields) == [])
    }

    @Test(
        arguments: [
            ([.eTag: "\"y\""], true), ([.contentLength: "6"], true), ([.contentLength: " 5 "], false),
            ([.lastModified: "Tue, 14 Nov 2023 23:00:00 GMT"], true), ([:], false), ([.age: "7"], false),
            ([.eTag: "\"x\"", .contentLength: "5", .lastModified: "Tue, 14 Nov 2023 22:00:00 GMT"], false),
        ] as [(HTTPFields, Bool)])
    func headShowsWhetherTheStoredResponseIsOutdated(_ fields: HTTPFields, _ isOutdated: Bool) {
        let entry = CacheEntryTests.entry(self.stored)
        #expect(CacheInvalidation.isOutdated(entry, byHead: fields, requestFields: [:]) == isOutdated)
    }

    @Test func headAboutAnotherRepresentationOutdatesNothing() {
        var stored = self.stored
        stored[.vary] = "Accept-Language"
        let entry = CacheEntryTests.entry(stored)
        let other: HTTPFields = [.acceptLanguage: "de"]
        #expect(!CacheInvalidation.isOutdated(entry, byHead: [.eTag: "\"y\""], requestFields: other))
        #expect(CacheInvalidation.isOutdated(entry, byHead: [.eTag: "\"y\""], requestFields: [:]))
    }
}
