/// Configuration of the gateway: listeners, routes, upstreams and limits.
///
/// A value made by `ConfigurationReader` has passed every check: names are unique, every reference resolves, every
/// number is in its range. Files (certificates, keys) are checked later, by `FileAudit`.
package struct Configuration: Sendable, Equatable {
    package var listeners: [ListenerConfiguration]
    package var routes: [RouteConfiguration]
    package var upstreams: [UpstreamConfiguration]
    package var tokens: [TokenSettings] = []
    package var maximumConnections: Int = Self.defaultMaximumConnections
    /// `nil` is one per core that the process may use.
    package var loops: Int?
    package var drain = DrainSettings()
    package var log = LogSettings()
    package var control = ControlSettings()
    package var rooms = RoomSettings()
    /// `nil` keeps everything in this process.
    package var cluster: ClusterSettings?

    package static let defaultMaximumConnections = 65_536

    package init(
        listeners: [ListenerConfiguration], routes: [RouteConfiguration], upstreams: [UpstreamConfiguration] = []
    ) {
        self.listeners = listeners
        self.routes = routes
        self.upstreams = upstreams
    }

    package func listener(named name: String) -> ListenerConfiguration? {
        self.listeners.first { $0.name == name }
    }

    package func route(named name: String) -> RouteConfiguration? {
        self.routes.first { $0.name == name }
    }

    package func upstream(named name: String) -> UpstreamConfiguration? {
        self.upstreams.first { $0.name == name }
    }

    /// The upstream of `route`: the named one, or for a URL as target an upstream with that endpoint, the URL as its
    /// name, and default settings. `nil` for targets in the gateway itself, and for those of a file.
    package func upstream(of route: RouteConfiguration) -> UpstreamConfiguration? {
        switch route.target {
        case .upstream(let name): self.upstream(named: name)
        case .url(let url): UpstreamConfiguration(name: url.description, endpoints: [UpstreamEndpoint(url: url)])
        case .targets, .echo, .chat, .rooms, .files, .page, .roomEvents: nil
        }
    }

    /// `2 listeners, 3 routes, 1 upstream`.
    package var summary: String {
        func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
        return [
            count(self.listeners.count, "listener"), count(self.routes.count, "route"),
            count(self.upstreams.count, "upstream"),
        ].joined(separator: ", ")
    }

    /// Whether requests that arrive on `listener` are matched against `route`.
    package func serves(_ route: RouteConfiguration, on listener: ListenerConfiguration) -> Bool {
        guard listener.kind.speaksWebSocket, route.path != nil else { return false }
        return route.listeners.isEmpty || route.listeners.contains(listener.name)
    }
}

/// Keys at the top of a configuration.
package typealias GatewayKey = SettingsKeyName<Configuration>

extension GatewayKey {
    package static var listeners: Self { "listeners" }
    package static var routes: Self { "routes" }
    package static var upstreams: Self { "upstreams" }
    package static var tokens: Self { "tokens" }
    package static var control: Self { "control" }
    package static var rooms: Self { "rooms" }
    package static var cluster: Self { "cluster" }
    fileprivate static var closeSpread: Self { "close-spread" }
}

extension Configuration: SettingsSection {
    static let sectionName = "Gateway"
    static let initial = Configuration(listeners: [], routes: [])
    static let keys: [SettingsKey<Configuration>] =
        Self.ownKeys + SettingsKey.group(DrainSettings.keys, \.drain) + SettingsKey.group(LogSettings.keys, \.log)

    private static let ownKeys: [SettingsKey<Configuration>] = [
        .sections(
            .listeners, \.listeners, example: #"[{name: web, listen: "ws://127.0.0.1:8080"}]"#,
            "Addresses that clients connect to. At least one is required."),
        .sections(
            .routes, \.routes, example: "[{name: echo, path: /echo, target: echo}]",
            """
            Maps connections to targets. At least one is required. A request that matches no route gets 404; a route \
            that no connection can take is refused.
            """),
        .sections(
            .upstreams, \.upstreams, example: #"[{name: vnc, endpoints: "tcp://127.0.0.1:5900"}]"#,
            "Named groups of endpoints. A route that names an unknown upstream is refused."),
        .sections(
            .tokens, \.tokens, example: "[{name: main, key-file: /etc/sluice/issuer.pem, audience: chat.example}]",
            """
            How JSON Web Tokens (RFC 7519) are verified; the `auth` of a route names one. See <doc:Tokens>. Not the tokens of \
            the control plane.
            """),
        .section(
            .control, \.control, example: #"{address: "unix:///run/sluice/control.sock"}"#,
            """
            The control plane: a REST interface that shows and changes connections. A bridge has none. Callers who \
            reach its address may do everything, unless `tokens`, `clients` or `peers` restrict them. See \
            <doc:Operations>.
            """),
        .section(
            .rooms, \.rooms, example: #"{policies: [{name: all, pattern: "*", history-size: 100, recovery: stream}]}"#,
            "Rooms of the targets `rooms` and `chat`: what they keep and permit. See <doc:Rooms>."),
        .custom(
            .cluster, .either([.value(ValueSyntax.redisURL), .of(ClusterSettings.self)]),
            example: "redis://redis.example:6379", needsRestart: true,
            """
            The Redis by which several gateways are one system, with the same rooms and one list of connections: its URL, or \
            a mapping. Without it, this gateway needs nothing and is alone. See <doc:Clusters>.
            """
        ) { section, settings in
            guard let node = section.node(.cluster) else { return }
            if case .scalar = node.content {
                settings.cluster = section.value(.cluster, as: ValueSyntax.redisURL).map { ClusterSettings($0) }
            } else {
                settings.cluster = section.section(.cluster)
            }
        },
        .value(
            "max-connections", \.maximumConnections, .integer(1...10_000_000),
            """
            Limit of open connections of all listeners together, lowered to what the descriptors of the process allow \
            (a tunnel takes two). Above it WebSocket requests get 503 and raw connections are reset.
            """),
        .optional(
            "loops", \.loops, .integer(1...1024), default: "one per core that the process may use", example: "4",
            needsRestart: true,
            "Number of socket loops, each with a thread. Both connections of a tunnel are on one loop."),
    ]

    mutating func check(_ section: SectionReader<Configuration>) {
        if section.isSet(.closeSpread), self.drain.closeSpread > self.drain.timeout {
            section.add(
                .closeSpread, expected: "at most the drain timeout of \(DurationText(self.drain.timeout))",
                remedy: "after the drain timeout connections are reset")
        }
        self.drain.closeSpread = min(self.drain.closeSpread, self.drain.timeout)
    }
}

extension Configuration {
    /// Configuration of `sluice serve` without a file: `ws://127.0.0.1:8080` with `/echo`, `/chat/{room}`,
    /// `/connection/websocket`, which serves the same rooms to programs, and a page for browsers.
    ///
    /// `/echo` accepts permessage-deflate and messages up to 16 MiB.
    package static let builtInText = """
        listeners:
          - name: web
            listen: ws://127.0.0.1:8080
        routes:
          - name: echo
            path: /echo
            target: echo
            compress: true
            max-message-size: 16MiB
            keep-fragmentation: true
          - name: chat
            path: /chat/{room}
            target: chat
          - name: rooms
            path: /connection/websocket
            target: rooms
            compress: {context-takeover: false}
          - name: events
            path: /connection/uni_sse
            target: room-events
          - name: stream
            path: /connection/uni_http_stream
            target: room-events
          - name: page
            path: /
            target: page
          - name: page-script
            path: /sluice-chat.js
            target: page
        rooms:
          policies:
            - name: all
              pattern: "*"
              publish: everyone
              history-size: 100
              history-time: 1h
              recovery: stream
              presence: true
              join-leave: true
        """
}

extension LocatedConfiguration {
    /// The built-in configuration. A test shows that it has no problems.
    package static func builtIn() throws(ConfigurationProblems) -> LocatedConfiguration {
        try ConfigurationReader.read(Array(Configuration.builtInText.utf8), file: "built-in configuration")
    }
}

/// How the gateway closes its connections when it shuts down.
package struct DrainSettings: Sendable, Equatable {
    package var timeout: Duration = .seconds(30)
    /// At most `timeout`.
    package var closeSpread: Duration = .seconds(5)

    package init() {}

    static let keys: [SettingsKey<DrainSettings>] = [
        .value(
            "drain-timeout", \.timeout, .duration(.day),
            "Time from the first SIGTERM or SIGINT until connections that are still open are reset."),
        .value(
            "close-spread", \.closeSpread, .duration(.day), defaultNote: ", or `drain-timeout` if that is shorter",
            example: "20s",
            """
            Closing handshakes (1001) of a drain start evenly spread over this time, at most `drain-timeout`, so that \
            clients do not all reconnect at once. `0s` starts all at once.
            """),
    ]
}

/// Level and format of the log.
package struct LogSettings: Sendable, Equatable {
    /// Format of a line.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// `time level message key=value …`
        case text
        /// One JSON object a line.
        case json
    }

    /// The lowest level that is logged; the names are those of swift-log.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    package var format = Format.text
    package var level = Level.info

    package init() {}

    static let keys: [SettingsKey<LogSettings>] = [
        .value(
            "log-format", \.format, .choice, needsRestart: true, "Format of log lines: text, or one JSON object a line."
        ),
        .value(
            "log-level", \.level, .choice, example: "warning", needsRestart: true,
            "Minimum level of log entries. The two lines of each tunnel are of level `info`."),
    ]
}
