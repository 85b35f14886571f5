import StreamTransport

/// Who a connection is, from its acceptance to its last log line.
struct ConnectionPassport: Sendable {
    /// Unique in the process, from 1 up; stands in both log lines and in the REST interface.
    let identifier: UInt64
    let listener: String
    /// The other end of the connection that was accepted.
    let peer: SocketAddress
    /// The client itself: the peer, or whom a trusted PROXY header named.
    var client: SocketAddress
    /// Where the client connected to: by the PROXY header if there was one, else our own address, looked up only where
    /// it is passed on.
    var destination: SocketAddress?
    let acceptedAt: MonotonicInstant
    var route: String?
    /// The URL of the endpoint that the tunnel leads to.
    var upstream: String?
    /// The upstream that it is an endpoint of.
    var upstreamPlan: UpstreamPlan?
}
