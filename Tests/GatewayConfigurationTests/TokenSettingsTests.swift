import GatewayConfiguration
import GatewayTestSupport
import Testing
import WebTokens

@Suite("Tokens in the configuration")
struct TokenSettingsTests {
    private static func text(_ tokens: String, route: String = "{name: echo, path: /echo, target: echo, auth: main}")
        -> String
    {
        """
        listeners: [{name: web, listen: "ws://127.0.0.1:0"}]
        tokens: [\(tokens)]
        routes: [\(route)]
        """
    }

    private static let valid = "{name: main, key-file: a.pem}"

    @Test func everyKeyIsRead() throws {
        let configuration = try ConfigurationSamples.configuration(
            Self.text(
                """
                {name: main, key-url: "https://issuer.example/keys", refresh-interval: 1m, algorithms: [ES256, EdDSA], \
                audience: [a, b], issuer: joe, leeway: 5s, require-expiry: true, max-size: 4KiB}
                """,
                route: """
                    {name: echo, path: /echo, target: echo, auth: {tokens: main, query: none, cookie: sid, subprotocol: true, \
                    close-when-expired: false}}
                    """))
        let settings = try #require(configuration.tokens.first)
        #expect(settings.keys == .url(try KeySetURL("https://issuer.example/keys")))
        #expect(settings.refreshInterval == .seconds(60))
        #expect(
            settings.rules
                == TokenVerifier.Rules(
                    algorithms: [.es256, .edDSA], audiences: ["a", "b"], issuer: "joe", leeway: 5, requiresExpiry: true,
                    byteLimit: 4096))
        let auth = try #require(configuration.routes.first?.auth)
        #expect(auth.query == nil && auth.cookie == "sid" && auth.usesSubprotocol && !auth.closesWhenExpired)
    }

    @Test func defaultsAreThoseOfTheVerifier() throws {
        let configuration = try ConfigurationSamples.configuration(Self.text(Self.valid))
        #expect(configuration.tokens.first?.rules == TokenVerifier.Rules())
        #expect(configuration.routes.first?.auth == RouteAuth(tokens: "main"))
    }

    @Test(arguments: [
        ("{name: main}", "tokens[0].key-file"), ("{name: main, secret: a, key-file: b}", "tokens[0].key-file"),
        ("{name: main, key-file: a, key-url: \"https://i.example\"}", "tokens[0].key-url"),
        ("{name: main, secret: a, secret-file: b}", "tokens[0].secret-file"),
        ("{name: main, key-file: a, refresh-interval: 1m}", "tokens[0].refresh-interval"),
        ("{name: main, key-url: \"http://issuer.example/keys\"}", "tokens[0].key-url"),
        ("{name: main, key-url: \"file:///etc/keys\"}", "tokens[0].key-url"),
        ("{name: main, key-url: \"https://user@issuer.example\"}", "tokens[0].key-url"),
        ("{name: main, key-file: a, algorithms: [none]}", "tokens[0].algorithms[0]"),
        ("{name: main, key-file: a, max-size: 17KiB}", "tokens[0].max-size"),
        ("{name: main, key-file: a}, {name: main, key-file: b}", "tokens[1].name"),
        ("{key-file: a}", "tokens[0].name"),
    ])
    func problemsAreReportedAtTheirPlace(_ tokens: String, _ place: String) {
        let problems = ConfigurationSamples.problems(Self.text(tokens))
        #expect(problems.contains { $0.contains(place) }, "\(problems)")
    }

    @Test(arguments: [
        "http://localhost:8000/keys", "http://127.0.0.1/keys", "http://[::1]:80/keys", "https://a.example",
    ])
    func keySetMayBeOnThisMachineOrBehindTLS(_ url: String) throws {
        #expect(try KeySetURL(url).description == url)
    }

    @Test(arguments: [
        ("{name: echo, path: /echo, target: echo, auth: other}", "routes[0].auth"),
        ("{name: echo, path: /echo, target: echo, auth: {tokens: other}}", "routes[0].auth.tokens"),
        ("{name: echo, path: /echo, target: echo, auth: {query: t}}", "routes[0].auth.tokens"),
        ("{name: echo, path: /echo, target: echo, auth: {tokens: main, cookie: \"a=b\"}}", "routes[0].auth.cookie"),
        ("{name: w, path: /w, target: \"ws://127.0.0.1:1/{claim.sub}\"}", "routes[0].target"),
        ("{name: w, path: /w, target: \"ws://127.0.0.1:1/\", headers: {X: \"{claim.sub}\"}}", "routes[0].headers.X"),
        ("{name: w, path: /w, target: \"ws://127.0.0.1:1/{other}\", auth: main}", "routes[0].target"),
    ])
    func problemsOfRoutesAreReportedAtTheirPlace(_ route: String, _ place: String) {
        let problems = ConfigurationSamples.problems(Self.text(Self.valid, route: route))
        #expect(problems.contains { $0.contains(place) }, "\(problems)")
    }

    @Test func rawListenerCannotUseARouteWithTokens() {
        let text = """
            listeners: [{name: raw, listen: "tcp://127.0.0.1:0", route: echo}, {name: web, listen: "ws://127.0.0.1:0"}]
            tokens: [\(Self.valid)]
            routes: [{name: echo, path: /echo, target: echo, auth: main}]
            """
        #expect(ConfigurationSamples.problems(text).contains { $0.contains("listeners[0].route") })
    }

    @Test func claimsMayBeInPathsAndHeadersOfARouteWithTokens() throws {
        let route = """
            {name: w, path: "/w/{room}", target: "ws://127.0.0.1:1/{room}/{claim.sub}?t={claim.org.id}", auth: main, \
            headers: {X: "{claim.sub}", Y: "{other} {claim.} {claim.a b}"}}
            """
        let configuration = try ConfigurationSamples.configuration(Self.text(Self.valid, route: route))
        guard case .url(let url)? = configuration.routes.first?.target else { Issue.record("no URL"); return }
        #expect(url.resource.parameters == ["room", "claim.sub", "claim.org.id"])
    }

    @Test(arguments: [
        ("user {claim.sub}!", ["sub"]), ("{claim.a}{claim.b}", ["a", "b"]), ("{room} {claim.} {claim.x y} {", []),
        ("{claim.sub", []), ("{a {claim.sub}}", ["sub"]), ("", []),
    ])
    func placeholdersOfClaimsAreFound(_ text: String, _ claims: [String]) {
        let template = ClaimTemplate(text)
        #expect(template.claims == claims)
        let filled = claims.reduce(text) { $0.replacing("{claim.\($1)}", with: "<\($1)>") }
        #expect(template.text { "<\($0)>" } == filled)
        if !claims.isEmpty { #expect(template.text { _ in nil } == nil) }
    }

    @Test func secretIsHiddenWhereTheConfigurationIsShown() throws {
        let located = try ConfigurationReader.read(
            Array(Self.text("{name: main, secret: 0123456789abcdef0123456789abcdef}").utf8), file: "f")
        #expect(!"\(located.configuration)".contains("0123456789abcdef"))
        #expect(located.document.hidingSecrets()["tokens"]?.elements.first?["secret"]?.text == DocumentNode.hiddenText)
    }
}
