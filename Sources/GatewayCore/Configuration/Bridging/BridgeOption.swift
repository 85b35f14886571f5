/// The options of `sluice bridge` that end up in its configuration.
package enum BridgeOption: String, Sendable, CaseIterable {
    case subprotocol, framing
    case halfClose = "half-close"
    case header, origin, certificate, key
    case clientCA = "client-ca"
    case clientCRL = "client-crl"
    case ca, crl
    case clientCertificate = "client-certificate"
    case clientKey = "client-key"
    case serverName = "server-name"
    case insecure, compress
    case pingInterval = "ping-interval"
    case pongTimeout = "pong-timeout"
    case maxMessageSize = "max-message-size"
    case maxConnections = "max-connections"
    case idleTimeout = "idle-timeout"
    case handshakeTimeout = "handshake-timeout"
    case connectTimeout = "connect-timeout"
    case drainTimeout = "drain-timeout"
    case proxyProtocol = "proxy-protocol"
    case logFormat = "log-format"
    case logLevel = "log-level"
    case quiet
}
