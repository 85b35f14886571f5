/// What may be set on a WebSocket task before it opens. Copies share their memory until one is changed, so that many
/// connections under the same options hold them once.
public struct WebSocketOptions: Sendable, Hashable {
    private struct Values: Sendable, Hashable {
        var maximumMessageSize: Int? = 1 << 20
        var pingInterval: Duration?
        var pongTimeout: Duration = .seconds(20)
        var handshakeTimeout: Duration = .seconds(10)
        var closeTimeout: Duration = .seconds(5)
    }

    private static let defaults = Apart.value(Values())

    private var kept = Self.defaults

    public init() {}

    /// Longest message accepted, in bytes, summed over its fragments after inflation; a longer one fails the connection
    /// with 1009. `nil`: no limit, only sensible where messages are not assembled. Default: 1 MiB.
    public var maximumMessageSize: Int? {
        get { self.kept.value.maximumMessageSize }
        set { self.kept.value.maximumMessageSize = newValue }
    }

    /// Between keep-alive pings; `nil` sends none. Default: none.
    public var pingInterval: Duration? {
        get { self.kept.value.pingInterval }
        set { self.kept.value.pingInterval = newValue }
    }

    /// How long the peer may stay silent after a keep-alive ping before it counts as gone. Default: 20 s.
    public var pongTimeout: Duration {
        get { self.kept.value.pongTimeout }
        set { self.kept.value.pongTimeout = newValue }
    }

    /// From the connection's being ready to the end of the opening handshake. Default: 10 s.
    public var handshakeTimeout: Duration {
        get { self.kept.value.handshakeTimeout }
        set { self.kept.value.handshakeTimeout = newValue }
    }

    /// How long to wait for the peer's Close frame and the end of the connection after our own Close. Default: 5 s.
    public var closeTimeout: Duration {
        get { self.kept.value.closeTimeout }
        set { self.kept.value.closeTimeout = newValue }
    }
}
