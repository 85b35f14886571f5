/// A named group of endpoints that stand for each other.
package struct UpstreamConfiguration: Sendable, Equatable {
    /// How an endpoint is chosen among those that are not ejected.
    package enum Policy: String, Sendable, Equatable, CaseIterable {
        /// In turn, by weight.
        case roundRobin = "round-robin"
        /// The one with the fewest open connections for its weight.
        case leastConnections = "least-connections"
        /// The first in the list that works.
        case failover
    }

    /// Unique among upstreams; the form of a listener's name.
    package var name: String
    /// At least one; all are streams (`tcp`, `tls`, `unix`) or all are WebSockets (`ws`, `wss`).
    package var endpoints: [UpstreamEndpoint]
    package var policy = Policy.roundRobin
    /// For one attempt to connect, resolution included. 10 ms to 10 min; at its end the next attempt, or 504.
    package var connectTimeout: Duration = .seconds(10)
    /// For the TLS handshake and the opening handshake together. 10 ms to 10 min; at its end 504.
    package var handshakeTimeout: Duration = .seconds(10)
    package var retry = RetryPolicy()
    package var ejection = EjectionPolicy()
    /// Used by `tls` and `wss` endpoints.
    package var tls = ClientTLSSettings()
    /// Subprotocols offered to WebSocket endpoints whatever the client offered; empty passes the client's offers on.
    package var subprotocols: [String] = []

    package init(name: String, endpoints: [UpstreamEndpoint]) {
        self.name = name
        self.endpoints = endpoints
    }

    /// Whether its endpoints take messages rather than bytes.
    package var speaksWebSocket: Bool {
        self.endpoints.first?.url.scheme.speaksWebSocket ?? false
    }
}
