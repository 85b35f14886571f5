import StreamTransport

/// What a PROXY protocol header says about a connection (haproxy's proxy-protocol.txt, versions 1 and 2).
package enum ProxyHeader: Hashable, Sendable {
    /// The connection stands for itself: version 2's LOCAL, or addresses the sender does not know. Use those of the connection.
    case local
    /// The client is `source`, and connected to `destination`.
    case proxied(source: SocketAddress, destination: SocketAddress)

    /// - Parameter destination: unless known, the unspecified address of the source's family, port 0.
    package init(source: SocketAddress, destination: SocketAddress?) {
        let unspecified: SocketAddress =
            switch source {
            case .ipv4: .ipv4(address: 0, port: 0)
            case .ipv6: .ipv6(high: 0, low: 0, scope: 0, port: 0)
            case .unix: .unix(path: "")
            }
        self = .proxied(source: source, destination: destination ?? unspecified)
    }

    package var source: SocketAddress? {
        switch self {
        case .local: nil
        case .proxied(let source, _): source
        }
    }

    package var destination: SocketAddress? {
        switch self {
        case .local: nil
        case .proxied(_, let destination): destination
        }
    }
}
