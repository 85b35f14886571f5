import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Cache-Control, RFC 9111 §5.2")
struct CacheControlTests {
    private func control(_ lines: String...) -> CacheControl {
        var fields = HTTPFields()
        fields[values: .cacheControl] = lines
        return CacheControl(fields)
    }

    @Test(
        arguments: [
            ("max-age=60", 60), ("Max-Age=60", 60), ("max-age=\"60\"", 60), ("max-age=60, max-age=5", 60),
            ("public,max-age=60", 60), (" , max-age = 60 ,", 60), ("max-age=99999999999999999999", 2_147_483_648),
            ("max-age=0", 0), ("max-age", 0), ("max-age=", 0), ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age=x", 0),
            ("foo=\"max-age=1\", max-age=2", 2), ("foo=\"a,max-age=1", 1), ("s-maxage=60", nil), ("", nil),
            ("xmax-age=60", nil), ("max-age=60;x", 0),
        ] as [(String, Int64?)])
    func secondsOfADirectiveAreRead(_ line: String, _ seconds: Int64?) {
        #expect(self.control(line).maxAge == seconds)
    }

    @Test func flagsAreReadOverSeveralLines() {
        let control = self.control("no-store, Private=\"set-cookie\"", "MUST-REVALIDATE,no-cache=\"a,b\"")
        #expect(control.noStore && control.isPrivate && control.mustRevalidate && control.noCache)
        #expect(!control.isPublic && !control.onlyIfCached && !control.mustUnderstand)
    }

    @Test func requestDirectivesAreRead() {
        #expect(self.control("max-stale").maxStale == .any)
        #expect(self.control("max-stale=30").maxStale == .upTo(30))
        #expect(self.control("max-stale=x").maxStale == nil)
        #expect(self.control("min-fresh=30, only-if-cached").minFresh == 30)
    }

    @Test func pragmaAppliesOnlyWithoutCacheControl() {
        #expect(CacheControl([.init("Pragma")!: "no-cache"]).noCache)
        #expect(!CacheControl([.init("Pragma")!: "no-cache", .cacheControl: "max-age=5"]).noCache)
    }

    @Test func numberOfDirectivesReadIsBounded() {
        let many = String(repeating: "x,", count: 100_000) + "no-store"
        #expect(!self.control(many).noStore)
    }
}
