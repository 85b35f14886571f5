/// Configuration of the gateway: listeners, routes, upstreams and limits.
///
/// A value made by `ConfigurationReader` has passed every check: names are unique, every reference resolves, every
/// number is in its range. Files (certificates, keys) are checked later, by `FileAudit`.
package struct Configuration: Sendable, Equatable {
    package var listeners: [ListenerConfiguration]
    package var routes: [RouteConfiguration]
    package var upstreams: [UpstreamConfiguration]
    /// Limit of open connections of all listeners together; above it 503, or a reset for raw kinds.
    package var maximumConnections: Int = Self.defaultMaximumConnections
    /// Number of socket loops, each with a thread; `nil` is one per core that the process may use.
    package var loops: Int?
    package var drain = DrainSettings()
    package var log = LogSettings()
    package var control = ControlSettings()

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
    /// name, and default settings. `nil` for `echo` and `chat`.
    package func upstream(of route: RouteConfiguration) -> UpstreamConfiguration? {
        switch route.target {
        case .upstream(let name): self.upstream(named: name)
        case .url(let url): UpstreamConfiguration(name: url.description, endpoints: [UpstreamEndpoint(url: url)])
        case .echo, .chat: nil
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

extension Configuration {
    /// Reads the top level of a document. Invalid entries are kept, so that indices agree with the document.
    init(reading section: SectionReader<GatewayKey>) {
        self.init(
            listeners: section.elements(.listeners, read: ListenerConfiguration.init(reading:)),
            routes: section.elements(.routes, read: RouteConfiguration.init(reading:)),
            upstreams: section.elements(.upstreams, read: UpstreamConfiguration.init(reading:)))
        if let control = section.section(.control, keys: ControlKey.self) {
            self.control = ControlSettings(reading: control)
        }
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...10_000_000))
        section.readOptional(.loops, into: &self.loops, as: .integer(1...1024))
        section.read(.logFormat, into: &self.log.format, as: .choice)
        section.read(.logLevel, into: &self.log.level, as: .choice)
        self.drain = DrainSettings(reading: section)
    }

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
    /// The built-in configuration. A test shows that it has no problems.
    package static func builtIn() throws(ConfigurationProblems) -> LocatedConfiguration {
        try ConfigurationReader.read(Array(Configuration.builtInText.utf8), file: "built-in configuration")
    }
}

/// How the gateway closes its connections when it shuts down.
package struct DrainSettings: Sendable, Equatable {
    /// Time from the signal until connections that are still open are reset. 0 to 1 day.
    package var timeout: Duration = .seconds(30)
    /// Closing handshakes (1001) start evenly spread over this time, so that clients do not all reconnect at once. 0 to
    /// `timeout`.
    package var closeSpread: Duration = .seconds(5)

    package init() {}

    init(reading section: SectionReader<GatewayKey>) {
        self.init()
        section.read(.drainTimeout, into: &self.timeout, as: .duration(.day))
        self.closeSpread = min(self.closeSpread, self.timeout)
        section.read(.closeSpread, into: &self.closeSpread, as: .duration(.day))
        if self.closeSpread > self.timeout {
            section.add(
                .closeSpread, expected: "at most the drain timeout of \(DurationText(self.timeout))",
                remedy: "after the drain timeout connections are reset")
        }
    }
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
}
