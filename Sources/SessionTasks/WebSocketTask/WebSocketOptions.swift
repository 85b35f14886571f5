/// What may be set on a WebSocket task before it opens.
public struct WebSocketOptions: Sendable, Hashable {
    /// Longest message accepted, in bytes, summed over its fragments after inflation; a longer one fails the connection
    /// with 1009. `nil`: no limit, only sensible where messages are not assembled. Default: 1 MiB.
    public var maximumMessageSize: Int? = 1 << 20
    /// Between keep-alive pings; `nil` sends none. Default: none.
    public var pingInterval: Duration?
    /// How long the peer may stay silent after a keep-alive ping before it counts as gone. Default: 20 s.
    public var pongTimeout: Duration = .seconds(20)
    /// From the connection's being ready to the end of the opening handshake. Default: 10 s.
    public var handshakeTimeout: Duration = .seconds(10)
    /// How long to wait for the peer's Close frame and the end of the connection after our own Close. Default: 5 s.
    public var closeTimeout: Duration = .seconds(5)

    public init() {}
}
