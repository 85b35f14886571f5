/// Everything the gateway is told before it runs: where it listens, which requests go where, and its bounds.
///
/// A value made by `ConfigurationReader` has passed every check: names are unique, every reference leads somewhere,
/// every number is in its range. Only files on disk (certificates, keys) are looked at later, by `FileAudit`.
package struct GatewayConfiguration: Sendable, Equatable {
    package var listeners: [ListenerConfiguration]
    package var routes: [RouteConfiguration]
    package var upstreams: [UpstreamConfiguration]
    /// Connections of all listeners together; what comes above it is refused (503 after a WebSocket handshake, else a
    /// reset).
    package var maximumConnections: Int = Self.standardConnections
    /// Socket loops, a thread each; `nil` is one per core of the machine that the process may use.
    package var loops: Int?
    package var drain = DrainSettings()
    package var log = LogSettings()
    package var control = ControlSettings()

    static let standardConnections = 65_536

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
