import StreamTransport

/// What a client's opening handshake says about the way it came, and what we know of it ourselves.
package struct ForwardedRequest: Hashable, Sendable {
    /// The other end of the connection, or whom a trusted PROXY header named.
    package var client: SocketAddress
    /// Whether the client spoke TLS to us.
    package var isSecure: Bool
    /// Its `Host` field; `nil` without one.
    package var host: String?
    /// Its own fields of these names, each line's value in order.
    package var forwarded: [String] = []
    package var forwardedFor: [String] = []
    package var forwardedProto: [String] = []
    package var forwardedHost: [String] = []

    package init(client: SocketAddress, isSecure: Bool, host: String?) {
        self.client = client
        self.isSecure = isSecure
        self.host = host
    }
}
