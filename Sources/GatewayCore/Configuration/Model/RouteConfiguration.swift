/// Which connections go where, and how their bytes are carried.
package struct RouteConfiguration: Sendable, Equatable {
    /// Unique among routes; the form of a listener's name.
    package var name: String
    /// Listeners whose requests are compared with this route; empty is every `ws` and `wss` listener.
    package var listeners: [String] = []
    /// The request's host; `nil` is any.
    package var host: HostPattern?
    /// The request's path. `nil` for a route that only raw listeners take, by its name.
    package var path: PathPattern?
    package var target: RouteTarget
    /// Pages that may connect, by the request's `Origin`; empty is all of them, and requests without `Origin` always
    /// pass. Others get 403.
    package var origins: [OriginPattern] = []
    /// Subprotocols this route speaks, in order of preference; a client that offers none of them is connected without
    /// one. In front of a WebSocket upstream they limit what is passed on of the client's offers, and the upstream
    /// chooses; empty passes all of them on. In front of a stream the framing's own stands behind them; empty chooses
    /// none elsewhere.
    package var subprotocols: [String] = []
    /// The client's query is appended to the target's resource. Only towards WebSocket upstreams.
    package var passesQuery = true
    /// Fields added to the opening handshake towards a WebSocket upstream.
    package var headers: [ExtraHeader] = []
    /// Header written first on connections to the upstream, before TLS, naming the client; `nil` writes none.
    package var proxyProtocol: ProxyProtocolVersion?
    package var tunnel = TunnelSettings()

    package init(name: String, path: PathPattern?, target: RouteTarget) {
        self.name = name
        self.path = path
        self.target = target
    }

    /// The subprotocol for a client whose bytes go to a stream: the first of its offers that is listed, else the
    /// framing's own if it is offered.
    func subprotocol(towardStream offered: [String]) -> String? {
        offered.first { self.subprotocols.contains($0) } ?? offered.first { $0 == self.tunnel.framing.subprotocol }
    }
}
