extension GatewayConfiguration {
    /// What `sluice serve` runs without a file: `ws://127.0.0.1:8080` with `/echo` and `/chat/{room}`.
    ///
    /// `/echo` accepts permessage-deflate when a client offers it and takes messages up to 16 MiB.
    package static var builtIn: GatewayConfiguration {
        let listener = ListenerConfiguration(
            name: "web", address: .tcp(.loopback, port: 8080), kind: .ws)
        var echo = RouteConfiguration(name: "echo", path: PathPattern([.literal("echo")]), target: .echo)
        echo.tunnel.compression = CompressionPolicy()
        echo.tunnel.maximumMessageSize = 16 * 1024 * 1024
        echo.tunnel.keepsFragmentation = true
        var chat = RouteConfiguration(
            name: "chat", path: PathPattern([.literal("chat"), .parameter("room")]), target: .chat)
        chat.tunnel.maximumMessageSize = TunnelSettings.assembledMessageSize
        return GatewayConfiguration(listeners: [listener], routes: [echo, chat])
    }
}
