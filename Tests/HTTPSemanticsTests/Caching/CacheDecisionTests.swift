import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Answering from the cache, RFC 9111 §4")
struct CacheDecisionTests {
    private static let sent = CacheEntryTests.sent

    private func decide(
        _ stored: HTTPFields?, request: HTTPFields = [:], method: HTTPRequest.Method = .get, after seconds: Int64
    ) -> CacheDecision {
        self.decide(.useProtocolCachePolicy, stored, request: request, method: method, after: seconds)
    }

    private func decide(
        _ policy: CachePolicy, _ stored: HTTPFields?, request: HTTPFields = [:],
        method: HTTPRequest.Method = .get, after seconds: Int64
    ) -> CacheDecision {
        let entry = stored.map { CacheEntryTests.entry($0, request: [.accept: "a"]) }
        return CacheDecision.decide(
            policy, method: method, fields: request, entry: entry, now: Self.sent.advanced(by: seconds))
    }

    private static let tagged: HTTPFields = [
        .cacheControl: "max-age=60", .eTag: "\"x\"", .lastModified: "Tue, 14 Nov 2023 22:00:00 GMT",
    ]
    private static let asking = CacheDecision.validate([
        .ifNoneMatch: "\"x\"", .ifModifiedSince: "Tue, 14 Nov 2023 22:00:00 GMT",
    ])

    @Test func freshEntryIsUsedAndStaleOneValidated() {
        #expect(self.decide(Self.tagged, after: 59) == .useStored)
        #expect(self.decide(Self.tagged, after: 60) == Self.asking)
        #expect(self.decide([.cacheControl: "max-age=60"], after: 60) == .load([:]))
        #expect(self.decide(nil, after: 0) == .load([:]))
    }

    @Test func validationUsesTheEntrysValidators() {
        #expect(self.decide([.eTag: "W/\"x\""], after: 0) == .validate([.ifNoneMatch: "W/\"x\""]))
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        #expect(self.decide([.lastModified: date], after: 0) == .validate([.ifModifiedSince: date]))
        #expect(self.decide([.lastModified: "never"], after: 0) == .load([:]))
    }

    @Test func cacheAnswersGetAndHeadOnly() {
        #expect(self.decide(Self.tagged, method: .head, after: 0) == .useStored)
        for method in [HTTPRequest.Method.post, .put, .delete, .options] {
            #expect(self.decide(Self.tagged, method: method, after: 0) == .load([:]))
        }
    }

    @Test(
        arguments: [
            ("max-age=10", 10, true), ("max-age=10", 11, false), ("min-fresh=20", 40, true),
            ("min-fresh=20", 41, false),
            ("max-stale", 1000, true), ("max-stale=10", 70, true), ("max-stale=10", 71, false), ("no-cache", 0, false),
            ("max-age=0", 1, false), ("max-age=0", 0, false), ("only-if-cached", 10, true),
        ] as [(String, Int64, Bool)])
    func requestDirectivesAreObeyed(_ control: String, _ after: Int64, _ usesStored: Bool) {
        let decision = self.decide(Self.tagged, request: [.cacheControl: control], after: after)
        #expect(decision == (usesStored ? .useStored : Self.asking))
    }

    @Test func requestWithNoStoreIsLoaded() {
        #expect(self.decide(Self.tagged, request: [.cacheControl: "no-store"], after: 0) == .load([:]))
    }

    @Test func requestThatMayNotLoadHasNoResponse() {
        let only: HTTPFields = [.cacheControl: "only-if-cached"]
        #expect(self.decide(nil, request: only, after: 0) == .unavailable)
        #expect(self.decide(Self.tagged, request: only, after: 100) == .unavailable)
    }

    @Test func responseDirectivesAreObeyed() {
        #expect(
            self.decide([.cacheControl: "no-cache, max-age=60", .eTag: "\"x\""], after: 0)
                == .validate([.ifNoneMatch: "\"x\""]))
        let strict: HTTPFields = [.cacheControl: "max-age=60, must-revalidate"]
        #expect(self.decide(strict, request: [.cacheControl: "max-stale"], after: 61) == .load([:]))
        #expect(
            self.decide([.cacheControl: "max-age=60"], request: [.init("Pragma")!: "no-cache"], after: 0) == .load([:]))
    }

    @Test(
        arguments: [
            [.range: "bytes=0-1"], [.ifNoneMatch: "\"y\""], [.ifModifiedSince: "x"], [.ifRange: "\"y\""],
            [.ifMatch: "*"],
            [.ifUnmodifiedSince: "x"],
        ] as [HTTPFields])
    func conditionsOfTheProgramAreLeftToTheServer(_ request: HTTPFields) {
        #expect(self.decide(Self.tagged, request: request, after: 0) == .load([:]))
        #expect(self.decide(.returnCacheDataElseLoad, Self.tagged, request: request, after: 0) == .load([:]))
    }

    @Test func responseThatVariesIsNotUsed() {
        let stored: HTTPFields = [.cacheControl: "max-age=60", .vary: "accept"]
        #expect(self.decide(stored, request: [.accept: "a"], after: 0) == .useStored)
        #expect(self.decide(stored, request: [.accept: "b"], after: 0) == .load([:]))
        #expect(self.decide(.returnCacheDataDontLoad, stored, request: [.accept: "b"], after: 0) == .unavailable)
    }

    @Test func decisionFollowsEachPolicy() {
        #expect(self.decide(.reloadIgnoringLocalCacheData, Self.tagged, after: 0) == .load([:]))
        #expect(
            self.decide(.reloadIgnoringLocalAndRemoteCacheData, Self.tagged, after: 0)
                == .load([.cacheControl: "no-cache", .init("Pragma")!: "no-cache"]))
        #expect(self.decide(.returnCacheDataElseLoad, Self.tagged, after: 1_000_000) == .useStored)
        #expect(self.decide(.returnCacheDataElseLoad, nil, after: 0) == .load([:]))
        #expect(self.decide(.returnCacheDataDontLoad, Self.tagged, after: 1_000_000) == .useStored)
        #expect(self.decide(.returnCacheDataDontLoad, nil, after: 0) == .unavailable)
        #expect(self.decide(.reloadRevalidatingCacheData, Self.tagged, after: 0) == Self.asking)
        #expect(self.decide(.reloadRevalidatingCacheData, [.cacheControl: "max-age=60"], after: 0) == .load([:]))
        #expect(self.decide(.reloadRevalidatingCacheData, nil, after: 0) == .load([:]))
    }
}
