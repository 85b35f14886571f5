import ArgumentParser
import GatewayCore

/// Options of a bridge about how much and how long.
struct LimitOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Between pings to WebSocket peers, 1s to 1d, or none. (default: 25s)", valueName: "duration")
    )
    var pingInterval: String?

    @Option(
        help: ArgumentHelp(
            "A WebSocket peer that answers a ping with nothing for this long counts as dead, 1s to 1h. (default: 20s)",
            valueName: "duration"))
    var pongTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Largest WebSocket message, 1B to 8192TiB; a larger one ends its connection with 1009. (default: none)",
            valueName: "size"))
    var maxMessageSize: String?

    @Option(
        help: ArgumentHelp("Open connections, 1 to 10000000; others are refused. (default: 32768)", valueName: "number")
    )
    var maxConnections: String?

    @Option(
        help: ArgumentHelp(
            "A connection that carries no data for this long ends, 1s to 365d, or none. (default: 1d)",
            valueName: "duration"))
    var idleTimeout: String?

    @Option(
        help: ArgumentHelp(
            "For a client's PROXY header, TLS and opening handshake together, 100ms to 10m. (default: 10s)",
            valueName: "duration"))
    var handshakeTimeout: String?

    @Option(
        help: ArgumentHelp("For connecting to the target, 10ms to 10m. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(
        help: ArgumentHelp(
            "From the first signal to the end of whatever is still open, 0s to 1d. (default: 30s)",
            valueName: "duration"))
    var drainTimeout: String?

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.pingInterval, [self.pingInterval]), (.pongTimeout, [self.pongTimeout]),
            (.maxMessageSize, [self.maxMessageSize]),
            (.maxConnections, [self.maxConnections]), (.idleTimeout, [self.idleTimeout]),
            (.handshakeTimeout, [self.handshakeTimeout]), (.connectTimeout, [self.connectTimeout]),
            (.drainTimeout, [self.drainTimeout]))
    }
}
