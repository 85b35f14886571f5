import GatewayCore
import Testing

@Suite("A bridge as a configuration")
struct BridgeRequestTests {
    private func configuration(
        _ listen: String, _ target: String, _ options: BridgeRequest.Option...
    ) throws -> GatewayConfiguration {
        try BridgeRequest(listen: listen, target: target, options: options).read().configuration
    }

    private func problems(_ listen: String, _ target: String, _ options: BridgeRequest.Option...) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try BridgeRequest(listen: listen, target: target, options: options).read()
            return []
        } catch {
            return error.all.map(\.description)
        }
    }

    @Test func joinsARawListenerWithAWebSocket() throws {
        let bridge = try self.configuration(
            "tcp://127.0.0.1:1883", "wss://broker.example/mqtt", .init(.subprotocol, "mqtt"),
            .init(.subprotocol, "mqttv3.1"))
        #expect(bridge.listeners.map(\.kind) == [.tcp])
        #expect(bridge.listeners[0].route == "bridge")
        #expect(bridge.routes[0].path == nil)
        let upstream = try #require(bridge.upstream(of: bridge.routes[0]))
        #expect(upstream.endpoints.map(\.url.description) == ["wss://broker.example/mqtt"])
        #expect(upstream.subprotocols == ["mqtt", "mqttv3.1"])
        #expect(upstream.tls.verifies)
    }

    @Test func givesThePathOfTheListenerToTheRoute() throws {
        func path(_ listen: String) throws -> String? {
            try self.configuration(listen, "tcp://127.0.0.1:5900").routes[0].path?.description
        }
        #expect(try path("ws://127.0.0.1:6080/vnc") == "/vnc")
        #expect(try path("ws://127.0.0.1:6080/") == "/")
        #expect(try path("ws://127.0.0.1:6080") == "/{path...}")
        #expect(try path("ws+unix:///run/a.sock:/vnc") == "/vnc")
        #expect(try path("ws+unix:///run/a.sock") == "/{path...}")
        let bridge = try self.configuration("ws+unix:///run/a.sock:/vnc", "echo")
        #expect(bridge.listeners[0].address == .unix(path: "/run/a.sock", mode: 0o660))
    }

    @Test func passesParametersOn() throws {
        let bridge = try self.configuration("ws://127.0.0.1:1/{room}", "ws://h/rooms/{room}")
        #expect(bridge.upstreams[0].endpoints[0].url.resource.parameters == ["room"])
    }

    @Test(
        arguments: [
            "tcp://127.0.0.1:0", "tls://127.0.0.1:0", "ws://127.0.0.1:0", "wss://127.0.0.1:0", "unix:///run/l.sock",
        ],
        ["tcp://h:1", "tls://h:1", "unix:///run/t.sock", "ws://h", "wss://h", "echo", "chat"])
    func joinsEveryKindOfListenerWithEveryKindOfTarget(listen: String, target: String) throws {
        let isSecure = listen.hasPrefix("tls") || listen.hasPrefix("wss")
        let certificate = isSecure ? [BridgeRequest.Option(.certificate, "c.pem"), .init(.key, "k.pem")] : []
        let bridge = try BridgeRequest(listen: listen, target: target, options: certificate).read().configuration
        #expect(bridge.listeners.count == 1)
        #expect(bridge.upstreams.count == (target == "echo" || target == "chat" ? 0 : 1))
    }

    @Test func takesEveryOption() throws {
        let bridge = try self.configuration(
            "wss://127.0.0.1:0/x", "wss://h/x", .init(.subprotocol, "a"), .init(.framing, "lines"),
            .init(.halfClose, "hold"),
            .init(.header, "A: b"), .init(.header, "C: d"), .init(.origin, "https://o"), .init(.certificate, "c"),
            .init(.key, "k"),
            .init(.clientCA, "cc"), .init(.ca, "ca"), .init(.clientCertificate, "cert"), .init(.clientKey, "key"),
            .init(.serverName, "n"), .init(.compress), .init(.pingInterval, "5s"), .init(.maxMessageSize, "1MiB"),
            .init(.maxConnections, "7"), .init(.idleTimeout, "1m"), .init(.handshakeTimeout, "2s"),
            .init(.connectTimeout, "3s"),
            .init(.drainTimeout, "4s"), .init(.proxyProtocol, "in,v1"), .init(.logFormat, "json"), .init(.quiet))
        let listener = bridge.listeners[0]
        let route = bridge.routes[0]
        let upstream = bridge.upstreams[0]
        #expect(listener.tls?.certificates == [CertificateFiles(certificate: "c", key: "k")])
        #expect(listener.tls?.clientCA == "cc")
        #expect(listener.tls?.clientAuthentication == .require)
        #expect(listener.limits.maximumConnections == 7)
        #expect(listener.limits.maximumConnectionsPerClient == 7)
        #expect(listener.limits.handshakeTimeout == .seconds(2))
        #expect(listener.proxyProtocol.mode == .accept)
        #expect(route.subprotocols == ["a"])
        #expect(route.tunnel.framing == .lines)
        #expect(route.tunnel.halfClose == .hold)
        #expect(route.headers == [ExtraHeader(name: "A", value: "b"), ExtraHeader(name: "C", value: "d")])
        #expect(route.origins.map(\.description) == ["https://o"])
        #expect(route.tunnel.compression == CompressionPolicy())
        #expect(route.tunnel.pingInterval == .seconds(5))
        #expect(route.tunnel.maximumMessageSize == 1_048_576)
        #expect(route.tunnel.idleTimeout == .seconds(60))
        #expect(route.proxyProtocol == .v1)
        #expect(upstream.connectTimeout == .seconds(3))
        #expect(upstream.tls.authorities == "ca")
        #expect(upstream.tls.identity == CertificateFiles(certificate: "cert", key: "key"))
        #expect(upstream.tls.serverName == "n")
        #expect(bridge.maximumConnections == 7)
        #expect(bridge.drain.timeout == .seconds(4))
        #expect(bridge.log.format == .json)
        #expect(bridge.log.level == .error)
        let insecure = try self.configuration("tcp://127.0.0.1:0", "tls://h:1", .init(.insecure))
        #expect(!insecure.upstreams[0].tls.verifies)
    }

    @Test func takesTheWordsForOrigins() throws {
        let bridge = try self.configuration("ws://127.0.0.1:0", "tcp://h:1", .init(.origin, "null"))
        #expect(bridge.routes[0].origins == [.opaque])
        let open = try self.configuration("ws://127.0.0.1:0", "tcp://h:1", .init(.origin, "*"))
        #expect(open.routes[0].origins == [.any])
    }

    @Test(
        arguments: [
            (["in"], ProxyProtocolAcceptance.Mode.accept, nil), (["out"], .off, .v2), (["v1"], .off, .v1),
            (["in", "v2"], .accept, .v2),
            (["out,v1"], .off, .v1), ([], .off, nil),
        ] as [([String], ProxyProtocolAcceptance.Mode, ProxyProtocolVersion?)])
    func readsTheWordsOfTheProxyProtocol(
        words: [String], mode: ProxyProtocolAcceptance.Mode, version: ProxyProtocolVersion?
    ) throws {
        let options = words.map { BridgeRequest.Option(.proxyProtocol, $0) }
        let bridge = try BridgeRequest(listen: "tcp://127.0.0.1:0", target: "tcp://h:1", options: options).read()
            .configuration
        #expect(bridge.listeners[0].proxyProtocol.mode == mode)
        #expect(bridge.routes[0].proxyProtocol == version)
    }

    @Test func namesTheOptionThatIsWrong() {
        #expect(
            self.problems("ws://127.0.0.1:0", "tcp://h:1", .init(.pingInterval, "5"), .init(.maxConnections, "0")) == [
                "--max-connections: expected a whole number from 1 to 10000000, found \"0\"",
                "--ping-interval: expected a duration from 1s to 1d, or none, found \"5\"; add a unit: 5s is seconds",
            ])
        #expect(
            self.problems("ws://example.com:80", "tcp://h") == [
                "LISTEN: expected an IP address to listen on, found \"ws://example.com:80\"; "
                    + "write an address of this machine, an IPv6 one in brackets, localhost, or * for all addresses",
                "TARGET: expected a port behind the host of tcp://, found \"tcp://h\"; write it like :5900",
            ])
        #expect(
            self.problems("wss://127.0.0.1:0", "echo") == [
                "LISTEN: expected a certificate for wss://, found none; give the listener a certificate and its key"
            ])
        #expect(
            self.problems("ws://127.0.0.1:0", "tcp://h:1", .init(.ca, "c"), .init(.proxyProtocol, "in,v3")) == [
                "--proxy-protocol: expected one of v1, v2, found \"v3\"; did you mean v1?",
                "--ca: expected no tls, as no endpoint begins with tls or wss, found a mapping; "
                    + "leave it out, or begin the endpoints with tls or wss",
            ])
    }
}
