import GatewayTestSupport
import TestSupport
import Testing

@Suite("Problems of a configuration")
struct ConfigurationProblemTests {
    /// A configuration, and the text of its problems after `c.yaml:`.
    struct ProblemCase: Sendable, CustomTestStringConvertible {
        let text: String
        let problems: [String]
        var testDescription: String { self.problems.first ?? "" }

        init(_ text: String, _ problems: String...) {
            self.text = text
            self.problems = problems
        }

        /// One that is right but for a line more in its listener.
        static func listener(_ more: String, listen: String = "ws://127.0.0.1:1", _ problems: String...) -> ProblemCase
        {
            ProblemCase(
                """
                routes: [{name: r, path: /, target: echo}]
                listeners:
                - name: l
                  listen: \(listen)
                  \(more)
                """, problems: problems)
        }

        /// The same for a route.
        static func route(_ more: String, path: String = "path: /x", _ problems: String...) -> ProblemCase {
            ProblemCase(
                """
                listeners: [{name: l, listen: "ws://127.0.0.1:1"}]
                routes:
                - name: r
                  \(path)
                  \(more)
                """, problems: problems)
        }

        /// The same for an upstream.
        static func upstream(_ more: String, endpoints: String = "tcp://h:1", _ problems: String...) -> ProblemCase {
            ProblemCase(
                """
                listeners: [{name: l, listen: "ws://127.0.0.1:1"}]
                routes: [{name: r, path: /x, target: u}]
                upstreams:
                - name: u
                  endpoints: \(endpoints)
                  \(more)
                """, problems: problems)
        }

        private init(_ text: String, problems: [String]) {
            self.text = text
            self.problems = problems
        }
    }

    @Test(arguments: Self.values + Self.listeners + Self.routes + Self.upstreams + Self.syntax)
    func problemHasPlaceExpectationAndFinding(_ mistake: ProblemCase) {
        #expect(ConfigurationSamples.problems(mistake.text) == mistake.problems.map { "c.yaml:" + $0 })
    }

    static let values: [ProblemCase] = [
        .listener("backlog: 0", "5:12: listeners[0].backlog: expected a whole number from 1 to 65535, found \"0\""),
        .listener("backlog:", "5:11: listeners[0].backlog: expected a whole number from 1 to 65535, found nothing"),
        .listener("backlog: [1]", "5:12: listeners[0].backlog: expected a whole number from 1 to 65535, found a list"),
        .listener(
            "keep-alive: 5s",
            "5:15: listeners[0].keep-alive: expected a mapping, found \"5s\"; its keys are idle, interval, probes"),
        .listener(
            "handshake-timeout: 10",
            "5:22: listeners[0].handshake-timeout: expected a duration from 100ms to 10m, found \"10\"; add a unit: 10s is seconds"
        ),
        .listener(
            "max-header-size: 16k",
            "5:20: listeners[0].max-header-size: expected a size from 1KiB to 1MiB, found \"16k\"; "
                + "write it like 65536, 64KiB, 1MiB or 16MB"),
        .listener(
            "proxy-protocol: yes",
            "5:19: listeners[0].proxy-protocol: expected one of off, accept, require, found \"yes\""),
        .listener(
            "proxy-protocol-trusted: [10.0.0.0/8, 10.0.0.0/8]",
            "5:40: listeners[0].proxy-protocol-trusted[1]: expected each entry once, found \"10.0.0.0/8\" again; leave it out"
        ),
        .listener(
            "backlogg: 5",
            "5:3: listeners[0].backlogg: expected a known key of listeners[0], found \"backlogg\"; did you mean backlog?"
        ),
        .listener(
            "address: x",
            "5:3: listeners[0].address: expected a known key of listeners[0], found \"address\"; did you mean listen?"),
        .route(
            "target: echo, compress: maybe",
            "5:25: expected YAML, found a syntax error: mapping values are not allowed in this context; "
                + "check the indentation, colons and quotation marks there"),
        .route("target: echo\n  compress: maybe", "6:13: routes[0].compress: expected true or false, found \"maybe\""),
        .route(
            "target: \"a\\u0007\\nb\"",
            "5:11: routes[0].target: expected echo, chat, rooms, a URL, or the name of an upstream, found \"a\\u{7}\\u{a}b\"; "
                + "write a URL like tcp://127.0.0.1:5900"),
    ]

    static let listeners: [ProblemCase] = [
        .listener(
            "tls: {certificate: c}",
            "5:8: listeners[0].tls: expected no tls on a ws listener, found a mapping; "
                + "listen with wss://, or leave it out"),
        .listener(
            "backlog: 5", listen: "wss://*:1",
            "3:3: listeners[0].tls: expected a certificate for wss://, found none; "
                + "give the listener a certificate and its key"),
        .listener(
            "mode: 0600",
            "5:9: listeners[0].mode: expected no mode, as only a Unix socket has one, found \"0600\"; leave it out"),
        .listener(
            "route: r",
            "5:10: listeners[0].route: expected no route on a ws listener, as its requests are routed by host and path, "
                + "found \"r\"; add a path to the route, and listeners to limit it to this listener"),
        .listener(
            "backlog: 5", listen: "tcp://127.0.0.1:1",
            "3:3: listeners[0].route: expected the route that connections of a tcp listener take, found nothing; add route: NAME",
            "1:26: routes[0].path: expected a ws or wss listener for a route with a path, found none; "
                + "add one, or set the route at a raw listener"
        ).sorted(),
        .listener(
            "route: q", listen: "tcp://127.0.0.1:1",
            "1:26: routes[0].path: expected a ws or wss listener for a route with a path, found none; "
                + "add one, or set the route at a raw listener",
            "5:10: listeners[0].route: expected the name of a route, found \"q\"; did you mean r?"),
        .listener(
            "tls: {certificate: c, client-auth: require}", listen: "wss://*:1",
            "5:8: listeners[0].tls.client-ca: expected the authorities that client certificates are checked against, found nothing; "
                + "add client-ca: FILE"),
        .listener(
            "tls: {certificate: c, client-ca: d, client-auth: none}", listen: "wss://*:1",
            "5:52: listeners[0].tls.client-auth: expected request or require, as there is a client-ca, found \"none\"; "
                + "leave out one of the two"),
        .listener(
            "tls: {certificate: c, client-crl: d}", listen: "wss://*:1",
            "5:37: listeners[0].tls.client-crl: expected no revocation lists, as there is no client-ca, found \"d\"; "
                + "add client-ca: FILE, or leave it out"),
        .listener(
            "tls: {certificates: []}", listen: "wss://*:1",
            "5:23: listeners[0].tls.certificates: expected at least one certificate, found an empty list"),
        .listener(
            "backlog: 5", listen: "ws://127.0.0.1:1/echo",
            "4:11: listeners[0].listen: expected an address without a path, found \"ws://127.0.0.1:1/echo\"; move the path to a route"
        ),
        ProblemCase(
            """
            routes: [{name: r, path: /, target: echo}]
            listeners:
            - {name: a, listen: "ws://127.0.0.1:1"}
            - {name: a, listen: "ws://*:1"}
            """,
            "4:10: listeners[1].name: expected a name that no other listener has, found \"a\", the name of listeners[0]; choose another",
            "4:21: listeners[1].listen: expected an address that no other listener has, found *:1, taken by listeners[0]; "
                + "choose another port or address"),
        ProblemCase(
            """
            control: {address: "http://127.0.0.1:1"}
            routes: [{name: r, path: /, target: echo}]
            listeners:
            - {name: a, listen: "ws://127.0.0.2:1"}
            - {name: b, listen: "ws://127.0.0.1:1"}
            """,
            "1:20: control.address: expected an address that no listener has, found 127.0.0.1:1, taken by listeners[1]; "
                + "choose another port or address"),
        ProblemCase(
            """
            control: {address: "unix:///run/a"}
            routes: [{name: r, path: /, target: echo}]
            listeners: [{name: a, listen: "ws+unix:///run/a"}]
            """,
            "1:20: control.address: expected an address that no listener has, found /run/a, taken by listeners[0]; "
                + "choose another port or address"),
    ]

    static let routes: [ProblemCase] = [
        .route(
            "target: nowhere",
            "5:11: routes[0].target: expected the name of an upstream, echo, chat, rooms or a URL, found \"nowhere\"; there are echo, chat, rooms, room-events, page"
        ),
        .route(
            "target: ech",
            "5:11: routes[0].target: expected the name of an upstream, echo, chat, rooms or a URL, found \"ech\"; "
                + "did you mean echo?"),
        .route(
            "target: ws://h/{q}",
            "5:11: routes[0].target: expected only parameters of the route's path, found {q}; add it to the path"),
        .route(
            "target: echo", path: "host: h",
            "3:3: routes[0].path: expected a path, or a raw listener that names this route, found neither; add path: /…",
            "4:9: routes[0].host: expected no host, as a route without a path serves no requests, found \"h\"; "
                + "add path: /… or leave it out"),
        .route(
            "target: tls+unix:///run/a.sock",
            "5:11: routes[0].target: expected an upstream with a server name to verify, "
                + "found \"tls+unix:///run/a.sock\"; define an upstream with tls: and server-name, and name it here"
        ),
        .route(
            "target: echo\n  proxy-protocol: v1",
            "6:19: routes[0].proxy-protocol: expected no PROXY header, as the route has no upstream, "
                + "found \"v1\"; leave it out"),
        .route(
            "target: tcp://h:1\n  headers: {A: b}",
            "6:12: routes[0].headers: expected no headers, as the target is no WebSocket, found a mapping; leave them out"
        ),
        .route(
            "target: ws://h\n  headers: {Host: b}",
            "6:19: routes[0].headers.Host: expected a header that the gateway does not write itself, "
                + "found \"b\"; leave out Host"),
        .route(
            "target: tcp://h:1\n  framing: length-prefixed\n  half-close: signal",
            "7:15: routes[0].half-close: expected hold or close, as an empty message is data in length-prefixed framing "
                + "and cannot mark an end, found \"signal\"; choose one of them, or another framing"),
        .route(
            "target: echo\n  origins: []",
            "6:12: routes[0].origins: expected at least one origin, found an empty list; leave it out or write \"*\" to accept all origins"
        ),
        .route(
            "target: echo\n  origins: [null, app.example]",
            "6:13: routes[0].origins[0]: expected an origin: scheme, host and port, without a path, found nothing; "
                + "write it like https://app.example.com, \"*\" for all, or \"null\" in quotes for pages without an origin",
            "6:19: routes[0].origins[1]: expected an origin: scheme, host and port, without a path, found \"app.example\"; "
                + "write it like https://app.example.com, \"*\" for all, or \"null\" in quotes for pages without an origin"
        ),
        .route(
            "target: ws://h\n  headers: {A: b, C: 'd '}",
            "6:22: routes[0].headers.C: expected a header on one line, its value without leading and trailing spaces, "
                + "found \"d \"; remove them"),
        .route(
            "target: ws://h\n  headers: ['A: b', \"C: d\\t\"]",
            "6:21: routes[0].headers[1]: expected a header on one line, its value without leading and trailing spaces, "
                + "found \"C: d\\u{9}\"; remove them"),
        .route(
            "target: echo\n  listeners: [m]",
            "6:15: routes[0].listeners[0]: expected the name of a listener, found \"m\"; did you mean l?"),
        ProblemCase(
            """
            listeners: [{name: l, listen: "ws://127.0.0.1:1"}, {name: m, listen: "ws://127.0.0.1:2"}]
            routes: [{name: r, path: /, target: echo, listeners: [l]}]
            """,
            "1:52: listeners[1]: expected a route with a path for requests of this listener, found none; "
                + "add a route with a path, or add m to the listeners of one"),
        .route(
            "target: echo\n- {name: s, path: '/{y}', target: echo}\n- {name: t, path: '/{z}', target: echo}",
            "7:19: routes[2].path: expected a host and path that no other route has, found /{z}, as in routes[1]; change one of them"
        ),
    ]

    static let upstreams: [ProblemCase] = [
        .upstream(
            "retries: 1", endpoints: "[]",
            "5:14: upstreams[0].endpoints: expected at least one endpoint, found an empty list; "
                + "write it like endpoints: [tcp://127.0.0.1:5900]"),
        .upstream(
            "retries: 1", endpoints: "[tcp://h:1, ws://h]",
            "5:26: upstreams[0].endpoints[1]: expected a tcp, tls or unix URL like the others, found \"ws://h\"; make two upstreams"
        ),
        .upstream(
            "retries: 1", endpoints: "[tcp://h:1, {url: 'tcp://h', weight: 0}]",
            "5:32: upstreams[0].endpoints[1].url: expected a port after the host of tcp://, found \"tcp://h\"; write it like :5900",
            "5:51: upstreams[0].endpoints[1].weight: expected a whole number from 1 to 1000, found \"0\""),
        .upstream(
            "tls: {ca: c}",
            "6:8: upstreams[0].tls: expected no tls, as no endpoint begins with tls or wss, found a mapping; "
                + "leave it out, or begin the endpoints with tls or wss"),
        .upstream(
            "tls: {key: c}", endpoints: "tls://h:1",
            "6:8: upstreams[0].tls.certificate: expected the certificate that key belongs to, found nothing; add certificate: FILE"
        ),
        .upstream(
            "tls: {insecure: true, crl: [c]}", endpoints: "tls://h:1",
            "6:19: upstreams[0].tls.insecure: expected either revocation lists to check or insecure: true, "
                + "found \"true\"; leave out one of the two"),
        .upstream(
            "retry-delay: 10s\n  retry-max-delay: 1s",
            "7:20: upstreams[0].retry-max-delay: expected at least the retry delay of 10s, found \"1s\""),
        .upstream(
            "subprotocols: [a]",
            "6:17: upstreams[0].subprotocols: expected no subprotocols, as no endpoint is a WebSocket, "
                + "found a list; leave them out, or begin the endpoints with ws or wss"),
    ]

    static let syntax: [ProblemCase] = [
        ProblemCase(
            "listeners: [\n",
            "2:1: expected YAML, found a syntax error: did not find expected node content "
                + "(while parsing a flow node that began at 2:1); check the indentation, colons and quotation marks there"
        ),
        ProblemCase(
            "a: 1\nb: 2\na: 3\n", "1:1: expected each key once in a mapping, found \"a\" twice; keep one of them"),
        ProblemCase("a: 1\nb: {[a]: 1, [a]: 2}\n", "2:5: expected a word as the key, found a list or a mapping"),
        ProblemCase(
            "a: 1\n---\nb: 2\n",
            "2:1: expected YAML, found a syntax error: but found another document "
                + "(expected a single document in the stream that began at 1:1); check the indentation, colons and quotation marks there"
        ),
        ProblemCase(
            "a: *b\n",
            "1:4: expected YAML, found a syntax error: found undefined alias; "
                + "check the indentation, colons and quotation marks there"),
        ProblemCase("? [a]\n: b\n", "1:3: expected a word as the key, found a list or a mapping"),
        ProblemCase("a: \u{1}", "1:4: expected YAML, found a syntax error: control characters are not allowed"),
        ProblemCase(
            "- a",
            "1:1: expected a mapping, found a list; its keys are listeners, routes, upstreams, tokens, control, rooms, "
                + "cluster, max-connections, loops, drain-timeout, close-spread, log-format, log-level"),
    ]

    @Test func problemsAreListedInTheOrderOfTheFile() {
        let text = """
            max-connectons: 5
            listeners:
              - name: web
                listen: ws://127.0.0.1:99999
            routes:
              - name: echo
                path: echo
                target: ecko
                framing: word
            """
        let places = ConfigurationSamples.problems(text).map { $0.split(separator: " ")[1] }
        #expect(
            places == [
                "max-connectons:", "listeners[0].listen:", "routes[0].path:", "routes[0].target:", "routes[0].framing:",
            ])
    }

    @Test func anEmptyFileLacksListenersAndRoutes() {
        #expect(
            ConfigurationSamples.problems("") == [
                "c.yaml: listeners: expected at least one listener, found nothing; add listeners: with a name and listen",
                "c.yaml: routes: expected at least one route, found nothing; add routes: with a name, a path and a target",
            ])
    }

    @Test func oneMistakeIsReportedOnce() {
        // The upstream's name cannot be read, so that the route's reference to it may well be right.
        let text = """
            listeners: [{name: l, listen: "ws://127.0.0.1:1"}]
            routes: [{name: r, path: /, target: u!}, {name: s, path: /s, target: v}]
            upstreams: [{name: v/, endpoints: ["tcp://h:1"]}]
            """
        let problems = ConfigurationSamples.problems(text)
        #expect(problems.map { $0.split(separator: " ")[1] } == ["routes[0].target:", "upstreams[0].name:"])
    }

    @Test func reportStopsAfterAHundredProblems() {
        let text = (0..<300).map { "k\($0): 1" }.joined(separator: "\n")
        let problems = ConfigurationSamples.problems(text)
        #expect(problems.count == 101)
        #expect(
            problems.last == "c.yaml:1:1: expected no more than 100 problems, found 202 more; fix these first")
    }
}

extension ConfigurationProblemTests.ProblemCase {
    /// In the order of reporting.
    func sorted() -> Self {
        func place(_ problem: String) -> (Int, Int) {
            let parts = problem.split(separator: ":")
            return (Int(parts[0]) ?? 0, Int(parts[1]) ?? 0)
        }
        return Self(self.text, list: self.problems.sorted { place($0) < place($1) })
    }

    private init(_ text: String, list: [String]) {
        self.text = text
        self.problems = list
    }
}
