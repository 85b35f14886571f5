import StreamTransport

/// What a PROXY protocol header says about a connection (haproxy's proxy-protocol.txt, versions 1 and 2).
package enum ProxyHeader: Hashable, Sendable {
    /// The connection stands for itself: version 2's LOCAL, or addresses the sender does not know. Use those of the
    /// connection.
    case local
    /// The client is `source`, and connected to `destination`.
    case proxied(source: SocketAddress, destination: SocketAddress)
}
