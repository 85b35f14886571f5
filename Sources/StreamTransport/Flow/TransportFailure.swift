/// The world failed us: neither the peer's bytes nor our caller are to blame.
package enum TransportFailure: Error, Hashable, Sendable {
    /// The peer reset the connection (`ECONNRESET`, or `EPIPE` on a write).
    case reset
    /// The peer stopped answering: keep-alive or user timeout (`ETIMEDOUT`).
    case peerUnresponsive
    /// The peer vanished without close_notify: bytes may be missing (RFC 8446 §6.1).
    case truncated
    /// A deadline of ours passed in the named phase.
    case deadlinePassed(ConnectPhase)
    case nameResolution(ResolutionFailure)
    case refused
    /// The address is none that we may connect to; nothing was sent.
    case notPermitted(SocketAddress)
    case unreachable(SystemError)
    /// TLS failed, in words (OpenSSL's reason, or what verification found).
    case tls(String)
    case system(SystemError)
}
