import GatewayConfiguration
import GatewayCore
import TestSupport
import Testing

@Suite("Routes by host and path")
struct RouteTableTests {
    private static func route(_ host: HostPattern?, _ segments: PathPattern.Segment...) -> RouteConfiguration {
        var route = RouteConfiguration(name: "r", path: PathPattern(segments), target: .echo)
        route.host = host
        return route
    }

    static let routes: [RouteConfiguration] = [
        route(nil, .rest("all")),
        route(nil, .literal("chat"), .parameter("room")),
        route(nil, .literal("chat"), .literal("lobby")),
        route(nil, .literal("chat"), .rest("rest")),
        route(.exact("example.com"), .literal("chat"), .parameter("room")),
        route(.wildcard(suffix: "example.com"), .literal("chat"), .parameter("room")),
        route(nil, .parameter("first"), .literal("end")),
        route(.exact("root.example")),
        route(nil, .literal("grüße"), .literal("a b")),
        RouteConfiguration(name: "raw", path: nil, target: .echo),
        route(nil, .literal("chat"), .parameter("later")),
        route(nil, .literal("K")),
    ]

    /// Of two routes with one pattern, the request's kind decides; a more exact one of the other kind still wins.
    @Test(arguments: [
        ("/", true, 0), ("/", false, 1), ("/a", true, 2), ("/a", false, 3), ("/a/b", true, 2), ("/a/b", false, 3),
        ("/only", false, 4), ("/web", true, 5), ("/a%62", false, 3),
    ])
    func kindDecidesBetweenRoutesOfOnePattern(_ target: String, _ isUpgrade: Bool, _ index: Int) {
        func route(_ target: RouteTarget, _ segments: PathPattern.Segment...) -> RouteConfiguration {
            RouteConfiguration(name: "r", path: PathPattern(segments), target: target)
        }
        let table = RouteTable([
            route(.echo), route(.page), route(.echo, .rest("a")), route(.page, .rest("b")),
            route(.echo, .literal("only")), route(.page, .literal("web")),
        ])
        let found = table.find(host: "a", target: target, isUpgrade: isUpgrade)
        let parameters = index == 2 ? ["a"] : index == 3 ? ["b"] : []
        guard case .route(let match) = found else { return #expect(Bool(false), "\(found)") }
        #expect(match.index == index)
        #expect(match.parameters.map(\.name) == parameters)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        let host: String?
        let target: String
        let index: Int?
        var values: [String] = []
        var query: String?
        var testDescription: String { "\(self.host ?? "-") \(self.target)" }

        init(_ host: String?, _ target: String, _ index: Int?, _ values: [String] = [], query: String? = nil) {
            self.host = host
            self.target = target
            self.index = index
            self.values = values
            self.query = query
        }
    }

    static let vectors: [Vector] = [
        Vector("a", "/chat/blue", 1, ["blue"]),
        Vector("a", "/chat/lobby", 2),
        Vector("a", "/chat/lobby?x=%GG&y=/?", 2, query: "x=%GG&y=/?"),
        Vector("a", "/chat/", 3, [""]),
        Vector("a", "/chat", 3, [""]),
        Vector("a", "/chat/a/b/", 3, ["a/b/"]),
        Vector("a", "/Chat/blue", 0, ["Chat/blue"]),
        Vector("example.com", "/chat/lobby", 4, ["lobby"]),
        Vector("EXAMPLE.com:8080", "/chat/x", 4, ["x"]),
        Vector("example.com.", "/chat/x", 4, ["x"]),
        Vector("www.Example.com", "/chat/x", 5, ["x"]),
        Vector("a.b.example.com", "/chat/x", 1, ["x"]),
        Vector("[::1]:80", "/chat/x", 1, ["x"]),
        Vector(nil, "/chat/x", 1, ["x"]),
        Vector("", "/chat/x", 1, ["x"]),
        Vector("a", "/x/end", 6, ["x"]),
        Vector("a", "//end", 0, ["/end"]),
        Vector("root.example", "/", 7),
        Vector("root.example", "/?", 7, query: ""),
        Vector("a", "/", 0, [""]),
        Vector("a", "/chat/%62lue", 1, ["blue"]),
        Vector("a", "/ch%61t/%6Cobby", 2),
        Vector("a", "/chat/a%2Fb", 1, ["a/b"]),
        Vector("a", "/chat/%F0%9F%99%82", 1, ["🙂"]),
        Vector("a", "/gr%C3%BC%c3%9Fe/a%20b", 8),
        Vector("a", "/K", 11),
        // KELVIN SIGN, canonically equivalent to K, and u with a combining diaeresis.
        Vector("a", "/%E2%84%AA", 0, ["\u{212A}"]),
        Vector("a", "/gru%CC%88%C3%9Fe/a%20b", 0, ["gru\u{308}ße/a b"]),
        Vector("a", "http://example.com/chat/x", 4, ["x"]),
        Vector("a", "HTTP://Example.com:80/chat/x?q", 4, ["x"], query: "q"),
        Vector("a", "http://root.example", 7),
        Vector("a", "http://root.example?q", 7, query: "q"),
    ]

    @Test(arguments: vectors)
    func theMostExactRouteWins(_ vector: Vector) throws {
        let answer = RouteTable(Self.routes).find(host: vector.host, target: vector.target)
        guard case .route(let match) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(match.index == vector.index)
        #expect(match.parameters.map(\.value) == vector.values)
        #expect(match.query == vector.query)
    }

    /// Dots, backslashes, semicolons and percent signs that mean themselves.
    @Test(arguments: [
        "a..b", "...", "..a", "a..", ".a", "a;b=..c", ";..", "a%5cb", "a\\b", "100%25", "%25zz", "%2541", "a%2Fb",
        "a.b",
        "%E2%80%A5",
    ])
    func parameterThatLeadsNowhereElseIsTaken(_ name: String) {
        guard case .route(let match) = RouteTable(Self.routes).find(host: "a", target: "/chat/\(name)") else {
            Issue.record("refused")
            return
        }
        #expect(match.encodedParameters == ["room": name])
    }

    @Test(arguments: [
        "", "chat", "*", "/chat/%", "/chat/%4", "/chat/%zz", "/chat/%C3", "/chat/%FF", "/a b", "/a#b", "/a\u{0}", "/ü",
        "ftp://example.com/", "http:///x", "http://user@example.com/x", "example.com:80",
        "/..", "/chat/..", "/chat/.", "/chat/../chat/a", "/chat/%2e%2E", "/chat/a%2F..%2F..", "http://example.com/../x",
        "/chat/..%5c", "/chat/..%5Ca", "/chat/a%5c..", "/chat/..\\", "/chat/a\\..\\b", "/chat/.%5c", "/chat/..;",
        "/chat/..;a=b", "/chat/.;", "/chat/%2e%2e%3b", "/chat/.%2e", "/chat/%2e.", "/chat/%2e%2e%2f", "/chat/%2e%2e%5c",
        "/chat/%00", "/chat/a%00.png", "/chat/%0d%0a", "/chat/a%0Ab", "/chat/%09", "/chat/%1b", "/chat/%7F",
        "/chat/%c0%ae%c0%ae", "/chat/%c0%af", "/chat/%e0%80%ae", "/chat/%252e%252e", "/chat/%252e%252e%252fa",
        "/chat/..%255c", "/chat/%2500", "/chat/%250d%250a", "/chat/%25c0%25ae", "/chat/%25252e%25252e",
        "/chat/%2525252541", "/chat/..%2f%25zz", "/chat/%252e%252e%252f%25zz", "http://example.com/..;/x",
    ])
    func refusesMalformedTargets(_ target: String) {
        #expect(RouteTable(Self.routes).find(host: "a", target: target) == .malformed)
    }

    /// If no route has a host, literal paths are looked up directly; a host in any route disables that.
    @Test func directLookupFindsTheSameRouteAsTheSearch() {
        let plain = [
            Self.route(nil), Self.route(nil, .literal("chat"), .literal("lobby")), Self.route(nil, .literal("chat")),
            Self.route(nil, .literal("chat"), .rest("rest")), Self.route(nil, .literal("a b")),
            Self.route(nil, .literal("chat"), .literal("lobby")), Self.route(nil, .literal("..")),
            Self.route(nil, .literal("x"), .literal("")), Self.route(nil, .literal("100%")),
            Self.route(nil, .literal("q?")),
            Self.route(nil, .literal("s/t")), Self.route(nil, .parameter("p"), .literal("end")),
        ]
        let short = RouteTable(plain)
        let long = RouteTable(plain + [Self.route(.exact("nobody.example"))])
        let targets = [
            "/", "//", "/chat", "/chat/", "/chat/lobby", "/chat/lobby/", "/chat/lobby?x", "/CHAT", "/a b", "/a%20b",
            "/..",
            "/x/", "/x", "/100%", "/100%25", "/q?", "/q%3F", "/s/t", "/s%2Ft", "/x/end", "", "chat", "/chat#", "*",
        ]
        for host in [nil, "", "a", "a:80", "[::1]", "[::1", "]"] {
            for target in targets {
                #expect(short.find(host: host, target: target) == long.find(host: host, target: target))
            }
        }
    }

    @Test func hostWithAnOpenBracketIsRefused() {
        #expect(RouteTable(Self.routes).find(host: "[::1", target: "/") == .malformed)
    }

    @Test func pathWithoutARouteIsNotFound() {
        let table = RouteTable([Self.routes[1], Self.routes[9]])
        for target in ["/", "/chat", "/chat/", "/chat/a/b", "/chat/a/", "/x/a"] {
            #expect(table.find(host: "a", target: target) == .none)
        }
    }

    @Test func aParameterKeepsItsEncodedFormForTheUpstream() {
        let answer = RouteTable(Self.routes).find(host: nil, target: "/chat/a%2Fb")
        guard case .route(let match) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(match.encodedParameters == ["room": "a%2Fb"])
        #expect(match.value(of: "room") == "a/b")
        #expect(match.value(of: "other") == nil)
    }

    @Test func theOrderOfExactnessDoesNotDependOnTheOrderOfTheList() {
        for seed in 0..<20 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let order = Self.routes.indices.shuffled(using: &random)
            let table = RouteTable(order.map { Self.routes[$0] })
            for vector in Self.vectors where vector.index != 1 {
                guard case .route(let match) = table.find(host: vector.host, target: vector.target) else {
                    Issue.record("\(vector.target)")
                    continue
                }
                #expect(order[match.index] == vector.index, "seed \(seed)")
            }
        }
    }
}
