/// Keys of an entry of `listeners`.
package enum ListenerKey: String, CaseIterable, Sendable {
    case name
    case listen
    case mode
    case plainAndTLS = "plain-and-tls"
    case tls
    case route
    case proxyProtocol = "proxy-protocol"
    case proxyProtocolTrusted = "proxy-protocol-trusted"
    case forwardingTrusted = "forwarding-trusted"
    case maxConnections = "max-connections"
    case maxConnectionsPerClient = "max-connections-per-client"
    case acceptRate = "accept-rate"
    case acceptBurst = "accept-burst"
    case handshakeTimeout = "handshake-timeout"
    case maxTLSHandshakes = "max-tls-handshakes"
    case maxTLSHandshakeSize = "max-tls-handshake-size"
    case maxHeaderSize = "max-header-size"
    case maxHeaderCount = "max-header-count"
    case keepAlive = "keep-alive"
    case userTimeout = "user-timeout"
    case backlog
}
