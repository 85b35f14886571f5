import ControlAPI
import GatewayConfiguration

/// Examples of the OpenAPI document, in the order of the members' declarations. Tests read those of models as their types.
/// Nested models take their examples from the enclosing ones.
enum Examples {
    /// By schema name.
    static let all = [Self.models, Self.configuration, Self.rooms, Self.cluster].reduce(into: [:]) { all, more in
        all.merge(more) { first, _ in first }
    }

    private static let models: [String: JSONValue] = [
        "BulkAnswer": ["matched": 12, "notified": 12],
        "BulkRequest": [
            "selector": ["route": "chat", "minAgeMs": 60_000], "code": 1001, "reason": "maintenance",
            "ratePerSecond": 100,
        ],
        "ConfigurationDifference": [
            "applied": true,
            "changes": [
                [
                    "resource": "/v1/listeners/public", "change": "changed",
                    "members": [["pointer": "/max-connections", "from": 10_000, "to": 20_000]],
                ]
            ],
        ],
        "Connection": Self.connection,
        "ConnectionPage": ["items": [Self.connection], "next": "/v1/connections?cursor=k11.100"],
        "ConnectionPatch": ["description": "nightly import", "priority": 0.8, "labels": ["team": "blue"]],
        "Drain": [
            "id": "1", "state": "running", "total": 600, "notified": 0, "remaining": 600, "cut": 0,
            "startedAt": "2026-11-22T10:20:30.400Z", "unnotified": 0,
        ],
        "Event": Self.closed, "ListenerStatus": ["address": "0.0.0.0:443"],
        "OpenRequest": [
            "url": "wss://chat.example.com/lobby", "headers": ["Authorization": "Bearer TOKEN"],
            "subprotocols": ["chat.v1"], "tls": ["minimumVersion": "1.3"],
            "keepAlive": ["idleMs": 60_000, "intervalMs": 10_000, "probes": 3], "pingIntervalMs": 30_000,
            "description": "nightly import", "labels": ["team": "blue"],
        ],
        "OperationList": [
            "items": [
                [
                    "id": "1", "operation": "openConnection", "state": "succeeded", "caller": "token:ops",
                    "startedAt": "2026-11-22T10:20:30.400Z", "endedAt": "2026-11-22T10:20:30.812Z",
                    "connection": "17", "status": 201, "location": "/v1/connections/17",
                ]
            ]
        ],
        "PingAnswer": ["rttMs": 1.204],
        "Problem": [
            "type": "about:blank", "title": "Unprocessable Content", "status": 422, "code": "wrong-type",
            "detail": "/keepAlive/probes must be a whole number.", "retryable": false,
            "errors": [["pointer": "/keepAlive/probes", "detail": "/keepAlive/probes must be a whole number."]],
        ],
        "ReceiveRequest": ["timeoutMs": 5000], "Received": ["type": "text", "text": "hello", "sizeBytes": 5],
        "SendAnswer": ["state": "sent", "sizeBytes": 5, "queuedSendBytes": 0, "suspended": false],
        "SendRequest": ["text": "hello", "timeoutMs": 5000], "ServiceHealth": ["status": "ok", "phase": "ready"],
        "ServiceVersion": ["name": "sluice", "version": "1.0.0", "api": "/v1"], "TapRecord": Self.tapped,
        "TLSRequest": ["serverName": "backend.example.com", "minimumVersion": "1.3"], "Transfer": Self.transfer,
        "TransferCancel": ["keepResumeData": true],
        "TransferPage": ["items": [Self.transfer], "next": "/v1/transfers?cursor=3"],
        "TransferRequest": [
            "url": "https://files.example.com/report.pdf", "destination": "/srv/files/report.pdf", "overwrite": true,
            "labels": ["team": "blue"],
        ],
        "TransferRestart": ["fromBeginning": false],
        "TunnelRequest": [
            "downstream": ["url": "wss://relay.example.com/agent"], "upstream": ["url": "tcp://10.0.0.5:5900"],
            "framing": "binary",
        ],
        "UpstreamStatus": ["endpoints": [["url": "tcp://10.0.0.5:5900", "connections": 3, "ejected": false]]],
    ]

    private static let connection: JSONValue = [
        "id": "17", "kind": "webSocket", "direction": "accepted", "state": "open", "taskState": "running",
        "priority": 0.5, "listener": "web", "route": "chat", "peerAddress": "192.0.2.7:51234", "user": "ada",
        "localAddress": "198.51.100.1:443", "createdAt": "2026-11-22T10:20:30.400Z",
        "openedAt": "2026-11-22T10:20:30.412Z", "ageMs": 61_204.118, "receivedBytes": 2048, "sentBytes": 8192,
        "receivedMessages": 12, "sentMessages": 48, "queuedSendBytes": 0,
        "ping": ["lastMs": 1.204, "p50Ms": 1.1, "p99Ms": 3.9, "count": 4], "compression": ["sentRatio": 3.2],
        "tls": [
            "version": "TLS 1.3", "cipher": "TLS_AES_128_GCM_SHA256", "applicationProtocol": "http/1.1",
            "serverName": "chat.example.com", "resumed": false, "peerCertificateSizesBytes": [1274],
        ],
        "handshake": [
            "request": [
                "line": "GET /chat/lobby HTTP/1.1", "headers": [["name": "Host", "value": "chat.example.com"]],
            ],
            "response": [
                "line": "HTTP/1.1 101 Switching Protocols", "headers": [["name": "Upgrade", "value": "websocket"]],
            ],
        ],
        "labels": ["team": "blue"],
    ]

    private static let tapped: JSONValue = [
        "number": 1, "at": "2026-11-22T10:20:31.002Z", "way": "received", "content": "text", "sizeBytes": 5,
        "startsMessage": true, "endsMessage": true, "text": "hello", "skipped": 0,
    ]

    private static let closed: JSONValue = [
        "number": 4712, "position": "5b1c8fa0.4712", "type": "closed", "at": "2026-11-22T10:21:31.604Z",
        "connection": "17", "listener": "web",
        "route": "chat", "peerAddress": "192.0.2.7:51234", "user": "ada", "reason": "downstream/relaying/clean(1000)",
        "closeCode": 1000, "closeReason": "bye", "receivedBytes": 2048, "sentBytes": 8192, "labels": ["team": "blue"],
    ]

    private static let transfer: JSONValue = [
        "id": "3", "kind": "download", "state": "failed", "method": "GET",
        "url": "https://files.example.com/report.pdf", "destination": "/srv/files/report.pdf", "priority": 0.5,
        "createdAt": "2026-11-22T10:20:30.400Z", "startedAt": "2026-11-22T10:20:30.401Z",
        "endedAt": "2026-11-22T10:20:34.100Z", "attempt": 1, "sentBytes": 0, "receivedBytes": 524_288,
        "expectedReceiveBytes": 1_048_576, "writtenBytes": 524_288, "expectedWriteBytes": 1_048_576, "progress": 0.5,
        "canResume": true,
        "response": [
            "status": 200, "headers": [["name": "Content-Type", "value": "application/pdf"]],
            "mediaType": "application/pdf",
        ],
        "error": ["code": "connection-lost", "detail": "The connection was lost.", "retryable": true],
        "metrics": [
            "durationMs": 3699, "redirects": 0,
            "transactions": [
                [
                    "method": "GET", "url": "https://files.example.com/report.pdf", "status": 200, "protocol": "h2",
                    "reusedConnection": false, "remoteAddress": "203.0.113.9:443", "tlsVersion": "TLS 1.3",
                    "lookupMs": 1.2, "connectMs": 24.9, "secureMs": 12.1, "requestMs": 0.1, "responseAfterMs": 20.4,
                    "sentBytes": 310, "receivedBytes": 524_700,
                ]
            ],
        ],
    ]

    // MARK: The configuration

    private static let listener: JSONValue = [
        "name": "public", "listen": "wss://0.0.0.0:443",
        "tls": [
            "certificate": "/etc/sluice/server.pem", "key": "/etc/sluice/server.key",
            "certificates": [["certificate": "/etc/sluice/chat.pem", "server-names": ["chat.example.com"]]],
        ],
        "max-connections": 20_000, "keep-alive": ["idle": "60s", "interval": "10s", "probes": 3],
    ]

    private static let route: JSONValue = [
        "name": "screens", "path": "/screens/{name}", "target": "backend", "origins": ["https://app.example.com"],
        "compress": ["level": 6, "min-size": 1024], "buffer": ["high": "256KiB", "low": "64KiB"],
        "headers": ["X-Served-By": "sluice"], "ping-interval": "30s", "keep-alive": ["idle": "60s"],
    ]

    private static let upstream: JSONValue = [
        "name": "backend", "endpoints": [["url": "wss://backend.example.com/screens", "weight": 2]],
        "connect-timeout": "5s", "retries": 2,
        "tls": ["ca": "/etc/sluice/backend-ca.pem", "server-name": "backend.example.com"],
    ]

    private static let control: JSONValue = [
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

    private static let configuration: [String: JSONValue] = [
        "Listener": Self.listener, "Route": Self.route, "Upstream": Self.upstream,
        "RouteAuthSettings": ["tokens": "main", "cookie": "session"], "RouteAuthSettingsPatch": ["cookie": "session"],
        "TokenVerifierSettings": [
            "name": "main", "key-url": "https://issuer.example/keys", "issuer": "https://issuer.example",
        ],
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
            "control": Self.control, "rooms": Self.roomSettings, "max-connections": 100_000, "drain-timeout": "30s",
            "log-level": "info",
        ],
        "ClusterSettings": [
            "redis": "redis+sentinel://10.0.0.1,10.0.0.2,10.0.0.3/main", "password-file": "/etc/sluice/redis.txt",
            "node": "gateway-1",
        ],
        "ClusterSettingsPatch": ["when-away": "local", "presence-time": "30s"],
        "ProxySettings": [
            "url": "http://proxy.example:3128", "user": "gateway", "password-file": "/etc/sluice/proxy.txt",
        ],
        "ProxySettingsPatch": ["user": "gateway", "password-file": "/etc/sluice/proxy.txt"],
        "FilesSettings": ["directory": "/srv/www", "cache-control": "public, max-age=3600"],
        "FilesSettingsPatch": ["cache-control": "public, max-age=3600"],
        "TargetsSettings": ["file": "/etc/sluice/desks", "parameter": "desk"],
        "TargetsSettingsPatch": ["parameter": "desk"],
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

    static let event: JSONValue = ["id": "5b1c8fa0.4712", "event": "closed", "data": .string(Self.line(Self.closed))]
    static let piece: JSONValue = ["id": "1", "event": "piece", "data": .string(Self.line(Self.tapped))]

    static let metrics = """
        # TYPE sluice_loops gauge
        # HELP sluice_loops Event loops that carry connections.
        sluice_loops 2
        # EOF

        """

    static let document: JSONValue = [
        "openapi": "3.1.0", "info": ["title": "Sluice control plane", "version": "1.0.0"], "paths": [:],
    ]

    private static func line(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
}
