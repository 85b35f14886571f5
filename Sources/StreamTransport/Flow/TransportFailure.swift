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
    /// No process listens at the address.
    case refused
    /// No Unix socket has this path.
    case noSuchFile
    /// The address is none that we may connect to; nothing was sent.
    case notPermitted(SocketAddress)
    case unreachable(SystemError)
    /// The endpoint takes no connection as it is: its queue is full, its file forbids it, its socket is of another kind.
    case unusableEndpoint(SystemError)
    /// This process or this machine lacks what a connection needs: descriptors, memory, local ports.
    case ownResources(SystemError)
    /// TLS failed.
    indirect case tls(LayerFailure)
    case system(SystemError)
}
