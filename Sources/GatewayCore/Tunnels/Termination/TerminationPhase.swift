/// Where in its life a connection ended. The raw value stands in logs and metrics.
package enum TerminationPhase: String, CaseIterable, Sendable {
    case accepting
    case proxyProtocol = "proxy-protocol"
    /// TLS with the client.
    case tls
    /// The client's opening handshake.
    case openingHandshake = "opening-handshake"
    /// Reaching the upstream: resolution, TCP, TLS and its opening handshake.
    case connecting
    case relaying
    /// After the first Close frame or the first order to end.
    case closing
}
