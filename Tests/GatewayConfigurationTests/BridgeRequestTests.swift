import GatewayConfiguration
import Testing

@Suite("A bridge as a configuration")
struct BridgeRequestTests {
    private func configuration(
        _ listen: String, _ target: String, _ options: BridgeRequest.Option...
    ) throws -> Configuration {
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

    @Test func listenersPathBecomesTheRoutesPath() throws {
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

    @Test func bridgePassesParametersOn() throws {
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

    @Test func bridgeTakesEveryOption() throws {
        let bridge = try self.configuration(
            "wss://127.0.0.1:0/x", "wss://h/x", .init(.subprotocol, "a"), .init(.header, "A: b"),
            .init(.header, "C: d"), .init(.origin, "https://o"), .init(.certificate, "c"),
            .init(.key, "k"),
            .init(.clientCA, "cc"), .init(.clientCRL, "cr"), .init(.clientCRL, "cs"), .init(.ca, "ca"),
            .init(.crl, "cl"), .init(.clientCertificate, "cert"), .init(.clientKey, "key"),
            .init(.serverName, "n"), .init(.compress), .init(.pingInterval, "5s"),
            .init(.pongTimeout, "6s"), .init(.maxMessageSize, "1MiB"),
            .init(.maxConnections, "7"), .init(.idleTimeout, "1m"), .init(.handshakeTimeout, "2s"),
            .init(.connectTimeout, "3s"),
            .init(.drainTimeout, "4s"), .init(.proxyProtocol, "in,v1"), .init(.logFormat, "json"), .init(.quiet))
        let listener = bridge.listeners[0]
        let route = bridge.routes[0]
        let upstream = bridge.upstreams[0]
        #expect(listener.tls?.certificates == [CertificateFiles(certificate: "c", key: "k")])
        #expect(listener.tls?.clientCA == "cc")
        #expect(listener.tls?.clientAuthentication == .require)
        #expect(listener.tls?.clientRevocationLists == ["cr", "cs"])
        #expect(listener.limits.maximumConnections == 7)
        #expect(listener.limits.maximumConnectionsPerClient == 7)
        #expect(listener.limits.handshakeTimeout == .seconds(2))
        #expect(listener.proxyProtocol.mode == .accept)
        #expect(route.subprotocols == ["a"])
        #expect(route.headers == [ExtraHeader(name: "A", value: "b"), ExtraHeader(name: "C", value: "d")])
        #expect(route.origins.map(\.description) == ["https://o"])
        #expect(route.tunnel.compression == CompressionPolicy())
        #expect(route.tunnel.pingInterval == .seconds(5))
        #expect(route.tunnel.pongTimeout == .seconds(6))
        #expect(route.tunnel.maximumMessageSize == 1_048_576)
        #expect(route.tunnel.idleTimeout == .seconds(60))
        #expect(route.proxyProtocol == .v1)
        #expect(upstream.connectTimeout == .seconds(3))
        #expect(upstream.tls.authorities == "ca")
        #expect(upstream.tls.revocationLists == ["cl"])
        #expect(upstream.tls.identity == CertificateFiles(certificate: "cert", key: "key"))
        #expect(upstream.tls.serverName == "n")
        #expect(bridge.maximumConnections == 7)
        #expect(bridge.drain.timeout == .seconds(4))
        #expect(bridge.log.format == .json)
        #expect(bridge.log.level == .error)
        let insecure = try self.configuration("tcp://127.0.0.1:0", "tls://h:1", .init(.insecure))
        #expect(!insecure.upstreams[0].tls.verifies)
        let framed = try self.configuration(
            "tcp://127.0.0.1:0", "ws://h/x", .init(.framing, "lines"), .init(.halfClose, "hold"))
        #expect(framed.routes[0].tunnel.framing == .lines && framed.routes[0].tunnel.halfClose == .hold)
    }

    @Test func bridgeTakesTheWordsForOrigins() throws {
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
    func bridgeReadsTheModesOfTheProxyProtocol(
        words: [String], mode: ProxyProtocolAcceptance.Mode, version: ProxyProtocolVersion?
    ) throws {
        let options = words.map { BridgeRequest.Option(.proxyProtocol, $0) }
        let bridge = try BridgeRequest(listen: "tcp://127.0.0.1:0", target: "tcp://h:1", options: options).read()
            .configuration
        #expect(bridge.listeners[0].proxyProtocol.mode == mode)
        #expect(bridge.routes[0].proxyProtocol == version)
    }

    @Test func problemNamesTheOption() {
        #expect(
            self.problems("ws://127.0.0.1:0", "tcp://h:1", .init(.pingInterval, "5"), .init(.maxConnections, "0")) == [
                "--max-connections: expected a whole number from 1 to 10000000, found \"0\"",
                "--ping-interval: expected a duration from 1s to 1d, or none, found \"5\"; add a unit: 5s is seconds",
            ])
        #expect(
            self.problems("ws://example.com:80", "tcp://h") == [
                "LISTEN: expected an IP address to listen on, found \"ws://example.com:80\"; "
                    + "write an address of this machine, an IPv6 one in brackets, localhost, or * for all addresses",
                "TARGET: expected a port after the host of tcp://, found \"tcp://h\"; write it like :5900",
            ])
        #expect(
            self.problems("ws://127.0.0.1:0", "tcp://h:1", .init(.ca, "c"), .init(.proxyProtocol, "in,v3")) == [
                "--ca: expected TARGET to begin with tls:// or wss://, found \"tcp://h:1\"; change it, or leave out --ca",
                "--proxy-protocol: expected one of in, out, v1, v2, found \"v3\"; separate several with commas, like in,v1",
            ])
        #expect(
            self.problems("tcp://127.0.0.1:0", "tcp://h:1", .init(.proxyProtocol, "")) == [
                "--proxy-protocol: expected one of in, out, v1, v2, found \"\"; separate several with commas, like in,v1"
            ])
        #expect(
            self.problems("tcp://127.0.0.1:0", "tcp://h:1", .init(.proxyProtocol, "v1"), .init(.proxyProtocol, "v2"))
                == ["--proxy-protocol: expected one version towards TARGET, found v1 and v2; leave out one of them"])
    }

    @Test(arguments: ["wss", "tls", "wss+unix"])
    func secureListenerRequiresACertificate(_ scheme: String) {
        let listen = scheme.hasSuffix("unix") ? "\(scheme):///run/a.sock" : "\(scheme)://127.0.0.1:0"
        let lack =
            "--certificate: expected a certificate for LISTEN, found none; "
            + "add --certificate FILE and --key FILE, or begin LISTEN with \(scheme.hasPrefix("tls") ? "tcp" : "ws")://"
        #expect(self.problems(listen, "echo") == [lack])
        #expect(self.problems(listen, "echo", .init(.key, "k"), .init(.clientCA, "c")) == [lack])
        #expect(
            self.problems(listen, "tcp://h") == [
                lack, "TARGET: expected a port after the host of tcp://, found \"tcp://h\"; write it like :5900",
            ])
    }

    @Test func optionForAnotherKindOfListenerOrTargetIsNamed() {
        func misplaced(_ option: String, _ place: String, _ schemes: String, _ found: String) -> String {
            "--\(option): expected \(place) to begin with \(schemes), found \(found); change it, or leave out --\(option)"
        }
        #expect(
            self.problems(
                "ws://127.0.0.1:0", "echo", .init(.certificate, "c"), .init(.key, "k"), .init(.clientCA, "a"),
                .init(.clientCRL, "l"), .init(.ca, "a"), .init(.crl, "l"), .init(.insecure))
                == ["certificate", "key", "client-ca", "client-crl"].map {
                    misplaced($0, "LISTEN", "tls:// or wss://", "\"ws://127.0.0.1:0\"")
                } + ["ca", "crl", "insecure"].map { misplaced($0, "TARGET", "tls:// or wss://", "\"echo\"") })
        #expect(
            self.problems(
                "tcp://127.0.0.1:0", "tcp://h:1", .init(.header, "A: b"), .init(.header, "C: d"),
                .init(.origin, "https://o"), .init(.subprotocol, "s"), .init(.serverName, "n"),
                .init(.clientCertificate, "c"), .init(.clientKey, "k")) == [
                    misplaced(
                        "subprotocol", "LISTEN or TARGET", "ws:// or wss://", "\"tcp://127.0.0.1:0\" and \"tcp://h:1\""),
                    misplaced("header", "TARGET", "ws:// or wss://", "\"tcp://h:1\""),
                    misplaced("origin", "LISTEN", "ws:// or wss://", "\"tcp://127.0.0.1:0\""),
                    misplaced("client-certificate", "TARGET", "tls:// or wss://", "\"tcp://h:1\""),
                    misplaced("client-key", "TARGET", "tls:// or wss://", "\"tcp://h:1\""),
                    misplaced("server-name", "TARGET", "tls:// or wss://", "\"tcp://h:1\""),
                ])
    }

    @Test(
        arguments: [
            ("tcp://127.0.0.1:0", "tcp://h:1", "compress", nil), ("tcp://127.0.0.1:0", "chat", "ping-interval", "5s"),
            ("tcp://127.0.0.1:0", "echo", "pong-timeout", "5s"),
            ("tcp://127.0.0.1:0", "tcp://h:1", "max-message-size", "1KiB"),
            ("tcp://127.0.0.1:0", "tcp://h:1", "framing", "lines"), ("ws://127.0.0.1:0", "ws://h", "framing", "lines"),
            ("tcp://127.0.0.1:0", "echo", "framing", "lines"), ("ws://127.0.0.1:0", "chat", "framing", "lines"),
            ("unix:///run/a.sock", "tcp://h:1", "half-close", "hold"),
            ("ws://127.0.0.1:0", "ws://h", "half-close", "hold"),
            ("tcp://127.0.0.1:0", "chat", "half-close", "hold"), ("ws://127.0.0.1:0", "echo", "half-close", "hold"),
            ("tcp://127.0.0.1:0", "tcp://h:1", "handshake-timeout", "5s"),
            ("ws://127.0.0.1:0", "echo", "connect-timeout", "5s"),
        ] as [(String, String, String, String?)])
    func optionWithoutEffectIsNamed(listen: String, target: String, name: String, text: String?) throws {
        let option = try #require(BridgeOption(rawValue: name))
        let problems = self.problems(listen, target, .init(option, text))
        #expect(problems.count == 1 && problems[0].hasPrefix("--\(name): expected "))
        #expect(problems[0].hasSuffix("; change it, or leave out --\(name)"))
    }

    @Test(
        arguments: [
            ("tcp://127.0.0.1:0", "ws://h", "compress", nil), ("ws://127.0.0.1:0", "echo", "max-message-size", "1KiB"),
            ("tcp://127.0.0.1:0", "chat", "max-message-size", "1KiB"),
            ("tcp://127.0.0.1:0", "chat", "framing", "lines"),
            ("ws://127.0.0.1:0", "unix:///t.sock", "framing", "lines"),
            ("ws://127.0.0.1:0", "tcp://h:1", "half-close", "hold"),
            ("ws://127.0.0.1:0", "tcp://h:1", "handshake-timeout", "5s"),
            ("ws://127.0.0.1:0", "tcp://h:1", "connect-timeout", "5s"),
        ] as [(String, String, String, String?)])
    func optionWithAnEffectIsTaken(listen: String, target: String, name: String, text: String?) throws {
        let option = try #require(BridgeOption(rawValue: name))
        #expect(self.problems(listen, target, .init(option, text)) == [])
    }

    @Test func handshakeTimeoutAppliesToAPROXYHeader() {
        #expect(
            self.problems(
                "tcp://127.0.0.1:0", "tcp://h:1", .init(.handshakeTimeout, "5s"), .init(.proxyProtocol, "in,v1")) == [])
    }

    @Test func optionsThatBelongTogetherOrExcludeEachOtherAreNamed() {
        #expect(
            self.problems("tcp://127.0.0.1:0", "tls://h:1", .init(.clientKey, "k")) == [
                "--client-key: expected --client-certificate with it, found none; add --client-certificate FILE"
            ])
        #expect(
            self.problems("tcp://127.0.0.1:0", "tls://h:1", .init(.ca, "c"), .init(.insecure)) == [
                "--insecure: expected either --ca or --insecure, found both; leave out one of them"
            ])
        #expect(
            self.problems("tcp://127.0.0.1:0", "tls://h:1", .init(.crl, "c"), .init(.insecure)) == [
                "--insecure: expected either --crl or --insecure, found both; leave out one of them"
            ])
        #expect(
            self.problems(
                "tls://127.0.0.1:0", "tcp://h:1", .init(.certificate, "c"), .init(.key, "k"), .init(.clientCRL, "c"))
                == ["--client-crl: expected --client-ca with it, found none; add --client-ca FILE"])
        #expect(
            self.problems("tcp://127.0.0.1:0", "tls+unix:///run/t.sock") == [
                "--server-name: expected the name to verify over a Unix socket, found none; "
                    + "add --server-name NAME, or --insecure for a test"
            ])
        #expect(
            self.problems(
                "tcp://127.0.0.1:0", "ws://h", .init(.framing, "length-prefixed"), .init(.halfClose, "signal"))
                == [
                    "--half-close: expected hold or close, as an empty message is data in length-prefixed framing "
                        + "and cannot mark an end, found \"signal\"; choose one of them, or another framing"
                ])
    }

    @Test func unreadableAddressSuppressesFurtherProblems() {
        #expect(
            self.problems("http://127.0.0.1:0", "tcp://h:1", .init(.certificate, "c"), .init(.origin, "https://o")).map
            {
                $0.prefix { $0 != ":" }
            } == ["LISTEN"])
    }

    @Test func logOptionsSetTheLogSettings() throws {
        func level(_ options: BridgeRequest.Option...) throws -> LogSettings.Level {
            try BridgeRequest(listen: "tcp://127.0.0.1:0", target: "echo", options: options).read().configuration.log
                .level
        }
        #expect(try level() == .info)
        #expect(try level(.init(.logLevel, "warning")) == .warning)
        #expect(try level(.init(.quiet)) == .error)
        #expect(try level(.init(.quiet), .init(.logLevel, "info")) == .info)
        #expect(
            self.problems("tcp://127.0.0.1:0", "echo", .init(.logLevel, "loud")) == [
                "--log-level: expected one of trace, debug, info, notice, warning, error, critical, found \"loud\""
            ])
    }
}
