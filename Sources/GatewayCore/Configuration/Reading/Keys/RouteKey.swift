/// Keys of an entry of `routes`.
package enum RouteKey: String, CaseIterable, Sendable {
    case name
    case listeners
    case host
    case path
    case target
    case framing
    case halfClose = "half-close"
    case origins
    case subprotocols
    case compress
    case keepFragmentation = "keep-fragmentation"
    case passQuery = "pass-query"
    case headers
    case proxyProtocol = "proxy-protocol"
    case pingInterval = "ping-interval"
    case pongTimeout = "pong-timeout"
    case maxMessageSize = "max-message-size"
    case idleTimeout = "idle-timeout"
    case maxAge = "max-age"
    case buffer
    case keepAlive = "keep-alive"
    case userTimeout = "user-timeout"
}
