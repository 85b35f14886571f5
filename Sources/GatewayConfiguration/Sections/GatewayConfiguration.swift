/// Configuration of the gateway: listeners, routes, upstreams and limits.
///
/// A value made by `ConfigurationReader` has passed every check: names are unique, every reference resolves, every
/// number is in its range. Files (certificates, keys) are checked later, by `FileAudit`.
package struct GatewayConfiguration: Sendable, Equatable {
    package var listeners: [ListenerConfiguration]
    package var routes: [RouteConfiguration]
    package var upstreams: [UpstreamConfiguration]
    /// Connections of all listeners together; further ones are refused (503 after a WebSocket handshake, else a reset).
    package var maximumConnections: Int = Self.standardConnections
    /// Socket loops, a thread each; `nil` is one per core of the machine that the process may use.
    package var loops: Int?
    package var drain = DrainSettings()
    package var log = LogSettings()
    package var control = ControlSettings()

    package static let standardConnections = 65_536

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

    /// The upstream behind `route`: the named one, or one made of the URL that the route itself gives, with the
    /// defaults of an upstream and the name of the URL. `nil` for `echo` and `chat`.
    package func upstream(of route: RouteConfiguration) -> UpstreamConfiguration? {
        switch route.target {
        case .upstream(let name): self.upstream(named: name)
        case .url(let url): UpstreamConfiguration(name: url.description, endpoints: [UpstreamEndpoint(url: url)])
        case .echo, .chat: nil
        }
    }

    /// Whether WebSocket requests that arrive on `listener` are compared with `route`.
    package func serves(_ route: RouteConfiguration, on listener: ListenerConfiguration) -> Bool {
        guard listener.kind.speaksWebSocket, route.path != nil else { return false }
        return route.listeners.isEmpty || route.listeners.contains(listener.name)
    }
}

/// Keys at the top of a configuration.
package enum GatewayKey: String, CaseIterable, Sendable {
    case listeners
    case routes
    case upstreams
    case control
    case maxConnections = "max-connections"
    case loops
    case drainTimeout = "drain-timeout"
    case closeSpread = "close-spread"
    case logFormat = "log-format"
    case logLevel = "log-level"
}

extension GatewayConfiguration {
    /// Reads the top of a document. Entries that are wrong stay in their places, so that indices agree with the
    /// document.
    init(reading section: SectionReader<GatewayKey>) {
        self.init(
            listeners: section.elements(.listeners).map {
                ListenerConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            },
            routes: section.elements(.routes).map {
                RouteConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            },
            upstreams: section.elements(.upstreams).map {
                UpstreamConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            })
        if let control = section.section(.control, keys: ControlKey.self) {
            self.control = ControlSettings(reading: control)
        }
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...10_000_000))
        section.readOptional(.loops, into: &self.loops, as: .integer(1...1024))
        section.read(.logFormat, into: &self.log.format, as: .choice)
        section.read(.logLevel, into: &self.log.level, as: .choice)
        self.drain = DrainSettings(reading: section)
    }
}

extension GatewayConfiguration {
    /// Configuration of `sluice serve` without a file: `ws://127.0.0.1:8080` with `/echo` and `/chat/{room}`.
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
        """
}

extension LocatedConfiguration {
    /// - Throws: never, as a test shows.
    package static func builtIn() throws(ConfigurationProblems) -> LocatedConfiguration {
        try ConfigurationReader.read(Array(GatewayConfiguration.builtInText.utf8), file: "built-in configuration")
    }
}

extension GatewayConfiguration {
    /// `2 listeners, 3 routes, 1 upstream`.
    package var summary: String {
        func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
        return [
            count(self.listeners.count, "listener"), count(self.routes.count, "route"),
            count(self.upstreams.count, "upstream"),
        ].joined(separator: ", ")
    }
}

/// How the gateway closes its connections when it shuts down.
package struct DrainSettings: Sendable, Equatable {
    /// From the signal to the end of whatever is still open. 0 to 1 day.
    package var timeout: Duration = .seconds(30)
    /// Closing handshakes (1001) begin evenly spread over this time, so that clients do not all come back at once. 0
    /// up to
    /// `timeout`.
    package var closeSpread: Duration = .seconds(5)

    package init() {}
}

extension DrainSettings {
    init(reading section: SectionReader<GatewayKey>) {
        self.init()
        section.read(.drainTimeout, into: &self.timeout, as: .duration(.day))
        self.closeSpread = min(self.closeSpread, self.timeout)
        section.read(.closeSpread, into: &self.closeSpread, as: .duration(.day))
        if self.closeSpread > self.timeout {
            section.add(
                .closeSpread, expected: "at most the drain timeout of \(DurationText(self.timeout))",
                remedy: "after that time connections are cut")
        }
    }
}

/// Level and format of the log.
package struct LogSettings: Sendable, Equatable {
    /// The form of a line.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// `time level message key=value …`
        case text
        /// One JSON object a line.
        case json
    }

    /// The least severe entry that is written; the names are those of swift-log.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    package var format = Format.text
    package var level = Level.info

    package init() {}
}
