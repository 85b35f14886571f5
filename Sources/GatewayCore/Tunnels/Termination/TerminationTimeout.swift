/// Which time ran out.
package enum TerminationTimeout: String, CaseIterable, Sendable {
    /// The client's whole way to a tunnel: PROXY header, TLS, opening handshake.
    case handshake
    case connect
    /// The upstream's TLS and opening handshake.
    case upstreamHandshake = "upstream-handshake"
    case idle
    case maximumAge = "maximum-age"
    /// The closing handshake, or the last bytes' way out.
    case closing
}
