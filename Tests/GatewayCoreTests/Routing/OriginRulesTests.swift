import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Origin allow-list, RFC 6455 §10.2")
struct OriginRulesTests {
    static let rules = OriginRules([
        OriginPattern(scheme: "https", host: .exact("app.example"), port: nil),
        OriginPattern(scheme: "https", host: .exact("app.example"), port: 8443),
        OriginPattern(scheme: "http", host: .exact("localhost"), port: 80),
        OriginPattern(scheme: "https", host: .wildcard(suffix: "example.com"), port: nil),
    ])

    @Test(arguments: [
        "https://app.example", "https://app.example:443", "HTTPS://APP.example", "https://app.example:8443",
        "http://localhost", "http://localhost:80", "https://www.example.com",
    ])
    func listedOriginsPass(_ origin: String) {
        #expect(Self.rules.allows(origin))
    }

    @Test(arguments: [
        "http://app.example", "https://app.example:8444", "https://app.example.evil", "https://evil-app.example",
        "https://example.com", "https://a.b.example.com", "https://wwwexample.com", "null", "", "app.example",
        "https://", "https://app.example/", "https://app.example https://evil.example", "https://app.example:",
        "file://",
        "https://app.example:99999", "https://app.example@evil.example", "https://.example.com", "https:app.example",
    ])
    func otherOriginsDoNotMatch(_ origin: String) {
        #expect(!Self.rules.allows(origin))
    }

    /// Sorting the marks, as Unicode's normal forms need it, would take hours.
    @Test(.timeLimit(.minutes(1)), arguments: ["", "null", "https:", "https://app.example"])
    func originOfManyMarksIsRefusedInTimeThatGrowsWithIt(_ start: String) {
        #expect(!Self.rules.allows(start + String(repeating: "\u{301}\u{323}", count: 500_000)))
    }

    @Test func clientsThatAreNoPagesPass() {
        #expect(Self.rules.allows(nil))
        #expect(OriginRules([]).allows(nil))
    }

    @Test func nullPassesOnlyWhereListed() {
        #expect(OriginRules([.opaque]).allows("null"))
        #expect(!OriginRules([.opaque]).allows("https://app.example"))
        #expect(!OriginRules([.opaque]).allows("NULL"))
    }

    @Test(arguments: ["https://anything.example", "null", "file://", "no origin at all"])
    func wildcardAllowsEveryOrigin(_ origin: String) {
        #expect(OriginRules([.any]).allows(origin))
        #expect(OriginRules([OriginPattern(scheme: "https", host: .exact("o"), port: nil), .any]).allows(origin))
    }

    @Test func routeWithoutOriginsAllowsEveryOrigin() {
        var route = RouteConfiguration(name: "r", path: PathPattern([]), target: .echo)
        #expect(OriginRules(of: route).allows("https://anything.example"))
        #expect(OriginRules(of: route).allows("null"))
        route.origins = [OriginPattern(scheme: "https", host: .exact("app.example"), port: nil)]
        #expect(!OriginRules(of: route).allows("https://anything.example"))
        #expect(!OriginRules(of: route).allows("null"))
    }
}
