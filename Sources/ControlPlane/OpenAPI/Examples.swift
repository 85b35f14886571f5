import ControlAPI
import FoundationEssentials
import GatewayConfiguration
import GatewayCore

/// Examples of the OpenAPI document. Those of wire models are values of their types, so that they stay complete; nested
/// models take their examples from the enclosing ones.
enum Examples {
    /// By schema name.
    static let all: [String: OrderedJSON] = Self.models.mapValues { Self.value($0) }
        .merging(Self.configuration) { first, _ in first }

    private static func value(_ model: any ControlModel) -> OrderedJSON {
        (try? JSONDecoder().decode(JSONValue.self, from: Data(JSONBody.encode(model)))).map { OrderedJSON($0) } ?? [:]
    }

    private static let models: [String: any ControlModel] = [
        "BulkAnswer": BulkAnswer(matched: 12, told: 12), "BulkRequest": Self.bulk,
        "ConfigurationDifference": Self.difference, "Connection": Self.connection,
        "ConnectionPage": ConnectionPage(items: [Self.connection], next: "/v1/connections?cursor=k11.100"),
        "ConnectionPatch": ConnectionPatch(description: "nightly import", priority: 0.8, labels: ["team": "blue"]),
        "Drain": Self.drain, "Event": Self.closed, "ListenerStatus": ListenerStatus(address: "0.0.0.0:443"),
        "OpenRequest": Self.open, "OperationList": OperationList(items: [Self.operation]),
        "PingAnswer": PingAnswer(rttMs: 1.204), "Problem": Self.problem,
        "ReceiveRequest": ReceiveRequest(timeoutMs: 5000),
        "Received": Received(type: "text", text: "hello", sizeBytes: 5),
        "SendAnswer": SendAnswer(state: "sent", sizeBytes: 5, queuedSendBytes: 0, suspended: false),
        "SendRequest": SendRequest(text: "hello", timeoutMs: 5000),
        "ServiceHealth": ServiceHealth(status: "ok", phase: "ready"),
        "ServiceVersion": ServiceVersion(name: "sluice", version: "1.0.0", api: "/v1"), "TapRecord": Self.tapped,
        "TLSRequest": TLSRequest(serverName: "backend.example.com", minimumVersion: "1.3"),
        "Transfer": Self.transfer, "TransferCancel": TransferCancel(keepResumeData: true),
        "TransferPage": TransferPage(items: [Self.transfer], next: "/v1/transfers?cursor=3"),
        "TransferRequest": TransferRequest(
            url: "https://files.example.com/report.pdf", destination: "/srv/files/report.pdf", overwrite: true,
            labels: ["team": "blue"]),
        "TransferRestart": TransferRestart(fromBeginning: false),
        "TunnelRequest": TunnelRequest(
            downstream: OpenRequest(url: "wss://relay.example.com/agent"),
            upstream: OpenRequest(url: "tcp://10.0.0.5:5900"),
            framing: "binary"),
        "UpstreamStatus": UpstreamStatus(endpoints: [
            EndpointStatus(url: "tcp://10.0.0.5:5900", connections: 3, ejected: false)
        ]),
    ]

    // MARK: Connections

    private static let tls = TLSDetails(
        version: "TLS 1.3", cipher: "TLS_AES_128_GCM_SHA256", applicationProtocol: "http/1.1",
        serverName: "chat.example.com", resumed: false, peerCertificateSizesBytes: [1274])

    private static let connection = {
        var one = Connection(id: "17")
        one.kind = "webSocket"
        one.direction = "accepted"
        one.state = "open"
        one.taskState = "running"
        one.priority = 0.5
        one.listener = "web"
        one.route = "chat"
        one.peerAddress = "192.0.2.7:51234"
        one.localAddress = "198.51.100.1:443"
        one.createdAt = "2026-11-22T10:20:30.400Z"
        one.openedAt = "2026-11-22T10:20:30.412Z"
        one.ageMs = 61_204.118
        one.receivedBytes = 2048
        one.sentBytes = 8192
        one.receivedMessages = 12
        one.sentMessages = 48
        one.queuedSendBytes = 0
        one.ping = RoundTripTimes(lastMs: 1.204, p50Ms: 1.1, p99Ms: 3.9, count: 4)
        one.compression = Compression(sentRatio: 3.2)
        one.tls = Self.tls
        one.handshake = Handshake(
            request: HandshakeHead(
                line: "GET /chat/lobby HTTP/1.1", headers: [Header(name: "Host", value: "chat.example.com")]),
            response: HandshakeHead(
                line: "HTTP/1.1 101 Switching Protocols", headers: [Header(name: "Upgrade", value: "websocket")]))
        one.labels = ["team": "blue"]
        return one
    }()

    private static let open = OpenRequest(
        url: "wss://chat.example.com/lobby", headers: ["Authorization": "Bearer TOKEN"], subprotocols: ["chat.v1"],
        tls: TLSRequest(minimumVersion: "1.3"),
        keepAlive: KeepAliveRequest(idleMs: 60_000, intervalMs: 10_000, probes: 3),
        pingIntervalMs: 30_000, description: "nightly import", labels: ["team": "blue"])

    private static let tapped = TapRecord(
        number: 1, at: "2026-11-22T10:20:31.002Z", way: "received", content: "text", sizeBytes: 5, startsMessage: true,
        endsMessage: true, text: "hello", skipped: 0)

    // MARK: Drains, operations and events

    private static let bulk = {
        var request = BulkRequest()
        request.selector = ["route": .string("chat"), "minAgeMs": .integer(60_000)]
        request.code = 1001
        request.reason = "maintenance"
        request.ratePerSecond = 100
        return request
    }()

    private static let drain = Drain(
        id: "1", state: "running", total: 600, startedAt: "2026-11-22T10:20:30.400Z")

    private static let operation = {
        var record = OperationRecord(
            id: "1", operation: "openConnection", state: "succeeded", caller: "token:ops",
            startedAt: "2026-11-22T10:20:30.400Z")
        record.endedAt = "2026-11-22T10:20:30.812Z"
        record.connection = "17"
        record.status = 201
        record.location = "/v1/connections/17"
        return record
    }()

    private static let closed = {
        var event = Event(number: 4712, type: "closed")
        event.at = "2026-11-22T10:21:31.604Z"
        event.connection = "17"
        event.listener = "web"
        event.route = "chat"
        event.peerAddress = "192.0.2.7:51234"
        event.reason = "downstream/relaying/clean(1000)"
        event.closeCode = 1000
        event.closeReason = "bye"
        event.receivedBytes = 2048
        event.sentBytes = 8192
        event.labels = ["team": "blue"]
        return event
    }()

    private static let problem = Problem(
        title: "Unprocessable Content", status: 422, code: "wrong-type",
        detail: "/keepAlive/probes must be a whole number.", retryable: false,
        errors: [ProblemField(pointer: "/keepAlive/probes", detail: "/keepAlive/probes must be a whole number.")])

    // MARK: Transfers

    private static let transfer = Transfer(
        id: "3", kind: "download", state: "failed", method: "GET", url: "https://files.example.com/report.pdf",
        destination: "/srv/files/report.pdf", priority: 0.5, createdAt: "2026-11-22T10:20:30.400Z",
        startedAt: "2026-11-22T10:20:30.401Z", endedAt: "2026-11-22T10:20:34.100Z", attempt: 1, sentBytes: 0,
        receivedBytes: 524_288, expectedReceiveBytes: 1_048_576, writtenBytes: 524_288, expectedWriteBytes: 1_048_576,
        progress: 0.5, canResume: true,
        response: TransferResponse(
            status: 200, headers: [Header(name: "Content-Type", value: "application/pdf")], mediaType: "application/pdf"
        ),
        error: TransferError(code: "connection-lost", detail: "The connection was lost.", retryable: true),
        metrics: TransferMetrics(
            durationMs: 3699, redirects: 0,
            transactions: [
                TransferTransaction(
                    method: "GET", url: "https://files.example.com/report.pdf", status: 200, protocol: "h2",
                    reusedConnection: false, remoteAddress: "203.0.113.9:443", tlsVersion: "TLS 1.3", lookupMs: 1.2,
                    connectMs: 24.9, secureMs: 12.1, requestMs: 0.1, responseAfterMs: 20.4, sentBytes: 310,
                    receivedBytes: 524_700)
            ]))

    // MARK: The configuration

    private static let difference = ConfigurationDifference(
        applied: true,
        changes: [
            ConfigurationDifferenceItem(
                resource: "/v1/listeners/public", change: "changed",
                members: [
                    ConfigurationDifferenceMember(
                        pointer: "/max-connections", from: .integer(10_000), to: .integer(20_000))
                ])
        ])

    private static let listener: OrderedJSON = [
        "name": "public", "listen": "wss://0.0.0.0:443",
        "tls": [
            "certificate": "/etc/sluice/server.pem", "key": "/etc/sluice/server.key",
            "certificates": [["certificate": "/etc/sluice/chat.pem", "server-names": ["chat.example.com"]]],
        ],
        "max-connections": 20_000, "keep-alive": ["idle": "60s", "interval": "10s", "probes": 3],
    ]

    private static let route: OrderedJSON = [
        "name": "screens", "path": "/screens/{name}", "target": "backend", "origins": ["https://app.example.com"],
        "compress": ["level": 6, "min-size": 1024], "buffer": ["high": "256KiB", "low": "64KiB"],
        "headers": ["X-Served-By": "sluice"], "ping-interval": "30s", "keep-alive": ["idle": "60s"],
    ]

    private static let upstream: OrderedJSON = [
        "name": "backend", "endpoints": [["url": "wss://backend.example.com/screens", "weight": 2]],
        "connect-timeout": "5s", "retries": 2,
        "tls": ["ca": "/etc/sluice/backend-ca.pem", "server-name": "backend.example.com"],
    ]

    private static let control: OrderedJSON = [
        "address": "unix:///run/sluice/control.sock", "targets": ["10.0.0.0/8"],
        "tokens": [
            [
                "name": "ops", "scopes": ["read", "operate"],
                "hash": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ]
        ],
        "peers": [["uid": 1000, "scopes": ["read"]]],
        "transfers": [
            "directories": ["/srv/files"],
            "credentials": [
                ["name": "files", "hosts": ["files.example.com"], "token-file": "/etc/sluice/files.token"]
            ],
        ],
    ]

    private static let configuration: [String: OrderedJSON] = [
        "Listener": Self.listener, "Route": Self.route, "Upstream": Self.upstream,
        "ListenerPatch": [
            "max-connections": 20_000, "keep-alive": ["probes": 5], "tls": ["min-version": "1.3"],
        ],
        "RoutePatch": [
            "origins": ["https://app.example.com"], "compress": ["level": 9], "buffer": ["high": "512KiB"],
        ],
        "UpstreamPatch": [
            "endpoints": ["wss://backend.example.com/screens", "wss://backup.example.com/screens"],
            "tls": ["server-name": "backend.example.com"],
        ],
        "GatewayConfiguration": [
            "listeners": [Self.listener], "routes": [Self.route], "upstreams": [Self.upstream],
            "control": Self.control, "max-connections": 100_000, "drain-timeout": "30s", "log-level": "info",
        ],
        "ProxySettings": [
            "url": "http://proxy.example:3128", "user": "gateway", "password-file": "/etc/sluice/proxy.txt",
        ],
        "ProxySettingsPatch": ["user": "gateway", "password-file": "/etc/sluice/proxy.txt"],
        "ControlClientSettings": ["name": "ops", "subject": "CN=ops", "scopes": ["read", "operate"]],
    ]

    static func name(of section: ConfigurationSection) -> String {
        switch section {
        case .listeners: "web"
        case .routes: "chat"
        case .upstreams: "backend"
        }
    }

    static func yaml(of section: ConfigurationSection) -> String {
        switch section {
        case .listeners: "name: plain\nlisten: ws://127.0.0.1:8080\n"
        case .routes: "name: chat\npath: /chat/{room}\ntarget: chat\n"
        case .upstreams: "name: backend\nendpoints: [tcp://10.0.0.5:5900]\n"
        }
    }

    static let yaml = """
        listeners:
          - {name: web, listen: "ws://127.0.0.1:8080"}
        routes:
          - {name: chat, path: "/chat/{room}", target: chat}

        """

    // MARK: Texts

    static let event: OrderedJSON = ["id": "4712", "event": "closed", "data": .string(Self.line(Self.closed))]
    static let piece: OrderedJSON = ["id": "1", "event": "piece", "data": .string(Self.line(Self.tapped))]

    static let metrics = """
        # TYPE sluice_loops gauge
        # HELP sluice_loops Event loops that carry connections.
        sluice_loops 2
        # EOF

        """

    static let document: OrderedJSON = [
        "openapi": "3.1.0", "info": ["title": "Sluice control plane", "version": "1.0.0"], "paths": [:],
    ]

    private static func line(_ model: some Encodable) -> String {
        String(decoding: JSONBody.encode(model), as: UTF8.self)
    }
}
