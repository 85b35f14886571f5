import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Reading a configuration")
struct ConfigurationReaderTests {
    private let minimal = """
        listeners: [{name: web, listen: "ws://127.0.0.1:8080"}]
        routes: [{name: echo, path: /echo, target: echo}]
        """

    @Test func missingKeysHaveTheirDefaults() throws {
        let configuration = try ConfigurationSamples.configuration(self.minimal)
        let listener = ListenerConfiguration(name: "web", address: .tcp(.loopback, port: 8080), kind: .ws)
        var route = RouteConfiguration(name: "echo", path: PathPattern([.literal("echo")]), target: .echo)
        route.tunnel.maximumMessageSize = 1_048_576
        #expect(configuration == Configuration(listeners: [listener], routes: [route]))
        #expect(route.tunnel.compression == nil)
        #expect(route.tunnel.pingInterval == .seconds(25))
    }

    /// YAML 1.2 §5.2
    @Test(arguments: ["", "# comment\n", "\n"])
    func byteOrderMarkIsNoPartOfTheFirstLine(_ start: String) throws {
        let block = """
            listeners:
              - {name: web, listen: "ws://127.0.0.1:8080"}
            routes:
              - {name: echo, path: /echo, target: echo}
            """
        let configuration = try ConfigurationSamples.configuration("\u{FEFF}" + start + block)
        #expect(try configuration == ConfigurationSamples.configuration(block))
    }

    @Test func everyOptionOfTheGatewayAndItsListenersIsRead() throws {
        let configuration = try ConfigurationSamples.configuration(ConfigurationSamples.everything)
        #expect(configuration.control.address == .unix(path: "/run/sluice/control.sock", mode: 0o660))
        #expect(configuration.control.closedConnections == 50)
        #expect(!configuration.control.keepsHandshakes)
        #expect(configuration.maximumConnections == 1000)
        #expect(configuration.loops == 2)
        #expect(configuration.drain.timeout == .seconds(60))
        #expect(configuration.drain.closeSpread == .seconds(10))
        #expect(configuration.log.format == .json)
        #expect(configuration.log.level == .debug)

        let raw = try #require(configuration.listener(named: "raw"))
        #expect(raw.address == .unix(path: "/run/raw.sock", mode: 0o600))
        #expect(raw.kind == .unix)
        #expect(raw.route == "raw")

        let front = try #require(configuration.listener(named: "front"))
        #expect(front.address == .tcp(.v6(high: 0, low: 1), port: 8443))
        #expect(front.kind == .wss)
        #expect(front.acceptsPlain)
        #expect(front.proxyProtocol.mode == .accept)
        #expect(front.proxyProtocol.trusted.map(\.description) == ["10.0.0.0/8"])
        #expect(front.trustedForwarders.map(\.description) == ["fd00::/8"])
        #expect(front.limits.maximumConnections == 500)
        #expect(front.limits.maximumConnectionsPerClient == 50)
        #expect(front.limits.acceptRate == AcceptRate(perSecond: 100, burst: 200))
        #expect(front.limits.handshakeTimeout == .seconds(5))
        #expect(front.limits.maximumHeaderSize == 8192)
        #expect(front.limits.maximumHeaderCount == 50)
        #expect(front.keepAlive.idle == .seconds(30))
        #expect(front.keepAlive.interval == .seconds(5))
        #expect(front.keepAlive.probes == 3)
        #expect(front.keepAlive.userTimeout == .seconds(60))
        #expect(front.backlog == 128)
    }

    private static let records = "RECORDS"

    @Test func everyOptionOfTLSTowardsClientsIsRead() throws {
        let configuration = try ConfigurationSamples.configuration(ConfigurationSamples.everything)
        let tls = try #require(configuration.listener(named: "front")?.tls)
        #expect(tls.certificates.map(\.certificate) == ["a.pem", "b.pem"])
        #expect(tls.certificates.map(\.key) == ["a.key", "b.key"])
        #expect(tls.certificates.map(\.password) == [.text("secret"), .file("b.txt")])
        #expect(tls.certificates[1].serverNames == [.exact("b.example"), .wildcard(suffix: "b.example")])
        #expect(tls.clientCA == "ca.pem")
        #expect(tls.clientAuthentication == .request)
        #expect(tls.clientRevocationLists == ["ca.crl", "more.crl"])
        #expect(tls.alpn == ["http/1.1"])
        #expect(tls.minimumVersion == .tls13)
        #expect(tls.records == .compact)
        #expect(tls.keyLog == "keys.log")
    }

    @Test func recordLayerIsOpenSSLsByDefault() throws {
        let text = """
            listeners:
              - {name: a, listen: "tls://127.0.0.1:1", route: r, tls: {certificate: c.pem\(Self.records)}}
            routes: [{name: r, target: echo}]
            """
        func records(_ key: String) throws -> ServerTLSSettings.Records? {
            try ConfigurationSamples.configuration(text.replacing(Self.records, with: key)).listener(named: "a")?.tls?
                .records
        }
        #expect(try records("") == .openssl)
        #expect(try records(", records: openssl") == .openssl)
        #expect(try records(", records: compact") == .compact)
    }

    @Test func everyOptionOfARouteIsRead() throws {
        let configuration = try ConfigurationSamples.configuration(ConfigurationSamples.everything)
        let route = try #require(configuration.route(named: "room"))
        #expect(route.listeners == ["front"])
        #expect(route.host == .wildcard(suffix: "b.example"))
        #expect(route.path == PathPattern([.literal("rooms"), .parameter("room")]))
        #expect(route.target == .upstream("talk"))
        #expect(route.origins.map(\.description) == ["https://app.example", "http://*.app.example:3000"])
        #expect(route.subprotocols == ["v2", "v1"])
        #expect(!route.passesQuery)
        #expect(route.headers == [ExtraHeader(name: "X-One", value: "a"), ExtraHeader(name: "X-Two", value: "b")])
        #expect(route.proxyProtocol == .v1)
        let tunnel = route.tunnel
        #expect(tunnel.framing == .base64)
        #expect(tunnel.halfClose == .signal)
        let compression = try #require(tunnel.compression)
        #expect(compression.level == 9)
        #expect(compression.minimumSize == 1024)
        #expect(compression.keepsContext == false)
        #expect(compression.windowBits == 12)
        #expect(tunnel.keepsFragmentation)
        #expect(tunnel.pingInterval == .seconds(10))
        #expect(tunnel.pongTimeout == .seconds(5))
        #expect(tunnel.maximumMessageSize == 2_097_152)
        #expect(tunnel.idleTimeout == .seconds(7200))
        #expect(tunnel.maximumAge == .seconds(86_400))
        #expect(tunnel.buffer == BufferWatermarks(high: 131_072, low: 8192))
        #expect(tunnel.keepAlive.idle == nil)
        #expect(tunnel.keepAlive.interval == .seconds(7))
        #expect(tunnel.keepAlive.probes == 2)
        #expect(tunnel.keepAlive.userTimeout == nil)
    }

    @Test func everyOptionOfAnUpstreamIsRead() throws {
        let configuration = try ConfigurationSamples.configuration(ConfigurationSamples.everything)
        let upstream = try #require(configuration.upstream(named: "talk"))
        #expect(
            upstream.endpoints.map(\.url.description) == ["wss://one.internal/r/{room}", "wss://two.internal/r/{room}"])
        #expect(upstream.endpoints.map(\.weight) == [3, 1])
        #expect(upstream.policy == .failover)
        #expect(upstream.connectTimeout == .seconds(2))
        #expect(upstream.handshakeTimeout == .seconds(3))
        #expect(upstream.retry.attempts == 4)
        #expect(upstream.retry.initialDelay == .milliseconds(50))
        #expect(upstream.retry.maximumDelay == .seconds(1))
        #expect(upstream.ejection.failures == 2)
        #expect(upstream.ejection.duration == .seconds(10))
        #expect(upstream.subprotocols == ["v2"])
        let tls = upstream.tls
        #expect(tls.authorities == "up.pem")
        #expect(tls.revocationLists == ["up.crl"])
        #expect(tls.identity == CertificateFiles(certificate: "me.pem", key: "me.key", password: .file("me.txt")))
        #expect(tls.serverName == "one.internal")
        #expect(tls.verifies)
        #expect(tls.pins.count == 1)
        #expect(tls.alpn == ["http/1.1"])
        #expect(tls.minimumVersion == .tls13)
        #expect(tls.keyLog == "up.log")
    }

    @Test func theSampleOfASecureControlPlaneIsRight() {
        #expect(ConfigurationSamples.problems(ConfigurationSamples.secureControl) == [])
    }

    @Test func sampleConfigurationHasEveryKey() {
        for (key, _) in ConfigurationSchema.keys {
            let name = key.split(separator: ".").last.map(String.init) ?? key
            let samples = [ConfigurationSamples.everything, ConfigurationSamples.secureControl]
            #expect(samples.contains { $0.contains("\(name):") }, "\(key)")
        }
    }

    @Test func messageLimitNoneIsAllowedForTunnelsOnly() throws {
        func limit(_ route: String) throws -> Int? {
            let text = self.minimal.replacing("target: echo", with: route)
            return try ConfigurationSamples.configuration(text).routes[0].tunnel.maximumMessageSize
        }
        #expect(try limit("target: tcp://127.0.0.1:1") == nil)
        #expect(try limit("target: tcp://127.0.0.1:1, max-message-size: 5") == 5)
        #expect(try limit("target: tcp://127.0.0.1:1, max-message-size: none") == nil)
        #expect(try limit("target: tcp://127.0.0.1:1, framing: length-prefixed") == 1_048_576)
        #expect(try limit("target: chat") == 1_048_576)
        #expect(throws: ConfigurationProblems.self) { try limit("target: echo, max-message-size: none") }
    }

    @Test func oneDefaultIsDerivedFromAnother() throws {
        func gateway(_ top: String) throws -> Configuration {
            try ConfigurationSamples.configuration(top + "\n" + self.minimal)
        }
        #expect(try gateway("drain-timeout: 2s").drain.closeSpread == .seconds(2))
        #expect(try gateway("drain-timeout: 2m").drain.closeSpread == .seconds(5))
        func route(_ more: String) throws -> RouteConfiguration {
            try ConfigurationSamples.configuration(
                self.minimal.replacing("target: echo", with: "target: echo, \(more)")
            ).routes[0]
        }
        #expect(try route("buffer: 1MiB").tunnel.buffer == BufferWatermarks(high: 1_048_576, low: 262_144))
        #expect(try route("buffer: {high: 8KiB}").tunnel.buffer == BufferWatermarks(high: 8192, low: 2048))
        #expect(try route("compress: true").tunnel.compression == CompressionPolicy())
        #expect(try route("compress: false").tunnel.compression == nil)
    }

    @Test func wordsAmongOriginsAreRead() throws {
        func origins(_ text: String) throws -> [OriginPattern] {
            let route = self.minimal.replacing("target: echo", with: "target: echo, origins: \(text)")
            return try ConfigurationSamples.configuration(route).routes[0].origins
        }
        #expect(try origins("\"*\"") == [.any])
        #expect(try origins("[\"null\", https://o]").map(\.description) == ["null", "https://o"])
    }

    @Test func urlInARouteBecomesAnUpstream() throws {
        let text = self.minimal.replacing("target: echo", with: "target: 'tls://h:1'")
        let configuration = try ConfigurationSamples.configuration(text)
        let upstream = try #require(configuration.upstream(of: configuration.routes[0]))
        #expect(upstream.name == "tls://h:1")
        #expect(upstream.endpoints == [UpstreamEndpoint(url: try EndpointURL("tls://h:1"))])
        #expect(upstream.tls.verifies)
    }

    @Test func aliasesShareSections() throws {
        let text = """
            listeners:
              - {name: a, listen: "wss://127.0.0.1:1", tls: &t {certificate: c.pem}}
              - {name: b, listen: "wss://127.0.0.1:2", tls: *t}
            routes: [{name: echo, path: /echo, target: echo}]
            """
        let configuration = try ConfigurationSamples.configuration(text)
        #expect(configuration.listeners[0].tls == configuration.listeners[1].tls)
        #expect(configuration.listeners[1].tls?.certificates.first?.certificate == "c.pem")
    }

    @Test func builtInConfigurationMatchesTheDocumentation() throws {
        let text = """
            listeners: [{name: web, listen: "ws://127.0.0.1:8080"}]
            routes:
              - {name: echo, path: /echo, target: echo, compress: true, max-message-size: 16MiB, keep-fragmentation: true}
              - {name: chat, path: "/chat/{room}", target: chat}
              - {name: rooms, path: /connection/websocket, target: rooms, compress: {context-takeover: false}}
              - {name: events, path: /connection/uni_sse, target: room-events}
              - {name: stream, path: /connection/uni_http_stream, target: room-events}
              - {name: page, path: /, target: page}
              - {name: page-script, path: /sluice-chat.js, target: page}
            rooms:
              policies:
                - name: all
                  pattern: "*"
                  publish: everyone
                  history-size: 100
                  history-time: 1h
                  recovery: stream
                  presence: true
                  join-leave: true
            """
        #expect(try ConfigurationSamples.configuration(text) == LocatedConfiguration.builtIn().configuration)
    }

    @Test func passwordIsNeverShown() {
        #expect(!"\(KeyPassword.text("hunter2"))".contains("hunter2"))
        #expect(!String(reflecting: KeyPassword.text("hunter2")).contains("hunter2"))
        var dumped = ""
        dump(CertificateFiles(certificate: "c", password: .text("hunter2")), to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }
}
