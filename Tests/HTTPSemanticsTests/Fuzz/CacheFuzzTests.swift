import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Any fields for the cache")
struct CacheFuzzTests {
    private static let pieces = [
        "max-age=", "max-age", "no-store", "no-cache", "private", "public", "must-revalidate", "max-stale",
        "min-fresh=",
        "only-if-cached", "=", ",", ", ", "\"", "\\", "*", "accept", "cookie", "W/", "\"x\"", " ", "stale-if-error=",
        "Tue, 14 Nov 2023 22:13:20 GMT", "Wed, 15 Nov 2023 22:13:20 GMT", "-", "5", "60",
    ]
    private static let names: [HTTPField.Name] = [
        .cacheControl, .expires, .date, .age, .lastModified, .eTag, .vary, .accept, .cookie, .connection,
    ]

    private func fields(_ text: inout FuzzText) -> HTTPFields {
        var fields = HTTPFields()
        for name in Self.names where text.number(0...2) == 0 { fields[values: name] = text.lines() }
        return fields
    }

    @Test func anyFieldsGiveAConsistentDecision() {
        let start = HTTPDate(seconds: 1_700_000_000)
        var decisions: [CachePolicy: Set<String>] = [:]
        for seed in 0..<1200 as Range<UInt64> {
            var text = FuzzText(seed: seed, pieces: Self.pieces)
            let stored = self.fields(&text)
            let request = self.fields(&text)
            let sent = start.advanced(by: text.number(-1_000_000...1_000_000))
            let entry = CacheEntry(
                status: 200, fields: stored, requestFields: request, requestTime: sent,
                responseTime: sent.advanced(by: text.number(-100...100)))
            let now = start.advanced(by: text.number(-2_000_000...2_000_000))
            #expect((0...CacheControl.maximumSeconds * 300).contains(entry.lifetime), "seed \(seed)")
            #expect(entry.age(at: now) >= 0, "seed \(seed)")
            for policy in CachePolicy.allCases {
                let decision = CacheDecision.decide(policy, method: .get, fields: request, entry: entry, now: now)
                decisions[policy, default: []].insert("\(decision)".prefix { $0 != "(" }.description)
                let storable = Storability.evaluate(method: .get, requestFields: request, status: 200, fields: stored)
                if decision == .useStored {
                    #expect(storable != .refused(.varies), "seed \(seed)")
                }
            }
            let fresh = entry.freshened(
                by: self.fields(&text), requestFields: request, requestTime: now, responseTime: now)
            if let fresh {
                #expect(fresh.responseTime == now, "seed \(seed)")
                #expect(fresh.varyKey.values == nil || fresh.varyKey.matches(request), "seed \(seed)")
            }
        }
        #expect(decisions[.useProtocolCachePolicy] == ["useStored", "validate", "load", "unavailable"])
        #expect(decisions[.returnCacheDataDontLoad] == ["useStored", "unavailable"])
    }
}
