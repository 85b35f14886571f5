/// How the bytes of one tunnel are carried.
package struct TunnelSettings: Sendable, Equatable {
    /// The message limit where messages must be assembled (`echo`, `chat`, `length-prefixed`) and none is given: 1 MiB.
    package static let assembledMessageSize = 1024 * 1024

    package var framing = Framing.binary
    package var halfClose = HalfClose.close
    /// permessage-deflate: accepted from clients that offer it and offered to WebSocket upstreams; `nil` is off.
    package var compression: CompressionPolicy?
    /// Messages leave `echo` in the fragments they came in. Between two WebSocket sides they do anyway, unless one
    /// compresses.
    package var keepsFragmentation = false
    /// Between pings on WebSocket sides, 1 s to 1 day; `nil` sends none.
    package var pingInterval: Duration? = .seconds(25)
    /// How long a ping may stay unanswered before the peer counts as dead, 1 s to 1 h.
    package var pongTimeout: Duration = .seconds(20)
    /// Largest message in bytes after inflation, 1 to 2^53; above it 1009. `nil` (a tunnel's default) is no limit, as
    /// tunnels carry messages without assembling them; never `nil` where they are assembled.
    package var maximumMessageSize: Int?
    /// A tunnel that carried no data for this long ends; pings do not count. 1 s to 365 days; `nil` never.
    package var idleTimeout: Duration? = .seconds(86_400)
    /// A tunnel this old ends. 1 s to 365 days; `nil` never.
    package var maximumAge: Duration? = .seconds(30 * 86_400)
    package var buffer = BufferWatermarks()
    /// Towards the upstream's side, when it is TCP.
    package var keepAlive = KeepAliveSettings()

    package init() {}
}
