import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Access to the REST interface", .timeLimit(.minutes(5)))
struct AccessTests {
    /// SHA-256 of `read`, `operate`, `configure`, `metrics`, `expired` and `later`, as `sha256sum` prints them.
    private static let tokens = """
          tokens:
            - {name: read, hash: 'sha256:3316348dbadfb7b11c7c2ea235949419e23f9fa898ad2c198f999617912a9925', scopes: [read]}
            - {name: operate, hash: 'sha256:2c29d39181de8f853de5e48ba983a5c88612b9dbaa5ab32c7748800a0840aeb8', scopes: [operate]}
            - {name: configure, hash: 'sha256:90d08e583c4c9c6f391b2ae90f819f600a6326928ea9512c9e0c6d98e9f29ac2', scopes: [configure]}
            - {name: metrics, hash: 'sha256:177a7ea3611fe6b138557deaf44941614b66c0ece1766308044c8b65c8ba2123', scopes: [metrics]}
            - {name: expired, hash: 'sha256:fa64ea1e82e1206f828ab2a02917c7e92accb98e3b95881a1b4ad52b914b66e3', scopes: [read], expires: '2020-01-01T00:00:00Z'}
            - {name: later, hash: 'sha256:1d9283d848ea941ace1fe0d2378ef8b70056a0d4d1648b95a322d90163e78285', scopes: [read], expires: '2999-01-01T00:00:00Z'}

        """

    private static func bearer(_ token: String) -> [String: String] {
        ["Authorization": "Bearer \(token)"]
    }

    private static func withTokens(_ body: (LoopbackGateway) async throws -> Void) async throws {
        try await LoopbackGateway.run(LoopbackGateway.echo + self.tokens, body)
    }

    // MARK: Tokens

    @Test func tokenAllowsTheOperationsOfItsScopesOnly() async throws {
        try await Self.withTokens { gateway in
            let opened = try await gateway.post(
                "/v1/connections", #"{"url":"\#(gateway.echo)"}"#, fields: Self.bearer("operate"))
            let id = opened.json["id"]?.string ?? ""
            let requests = [
                ("read", "GET", "/v1/connections"), ("read", "GET", "/v1/connections/\(id)"),
                ("read", "GET", "/version"), ("operate", "POST", "/v1/connections/\(id):ping"),
                ("operate", "PATCH", "/v1/connections/\(id)"), ("metrics", "GET", "/metrics"),
                ("configure", "GET", "/v1/configuration"),
            ]
            for (scope, method, path) in requests {
                for holder in ["read", "operate", "configure", "metrics"] {
                    let reply = try await gateway.request(
                        method, path, method == "GET" ? nil : "{}", fields: Self.bearer(holder))
                    if holder == scope {
                        #expect(reply.status == 200, "\(path): \(reply.text)")
                    } else {
                        #expect(reply.problem == "403 insufficient-scope", "\(path) by \(holder)")
                        #expect(reply.detail.contains(scope) && reply.detail.contains("token:\(holder)"))
                        #expect(reply.fields["www-authenticate"]?.contains(#"scope="\#(scope)""#) == true)
                        #expect(!reply.text.contains(gateway.echo))
                    }
                }
            }
            _ = try await gateway.request("DELETE", "/v1/connections/\(id)", fields: Self.bearer("read"))
            let shown = try await gateway.get("/v1/connections/\(id)", fields: Self.bearer("read"))
            #expect(shown.json["state"]?.string == "open")
        }
    }

    @Test func refusedReadsAreLoggedOnceInAWhile() async throws {
        try await Self.withTokens { gateway in
            let start = ContinuousClock.now
            for _ in 0..<40 {
                _ = try await gateway.get("/v1/connections", fields: Self.bearer("metrics"))
            }
            // One more in each second.
            let seconds = Int(start.duration(to: .now).components.seconds) + 1
            let lines = gateway.log.filter { $0.contains("operation=listConnections") }
            #expect(lines.count >= 20 && lines.count <= 20 + seconds, "\(lines.count)")
            let line = lines.first ?? ""
            #expect(
                line.contains("path=/v1/connections caller=token:metrics peer=127.0.0.1:")
                    && line.contains("status=403 code=insufficient-scope"), "\(line)")
            _ = try await gateway.get("/v1/connections", fields: Self.bearer("read"))
            #expect(!gateway.log.contains { $0.contains("caller=token:read") })
        }
    }

    @Test(arguments: [
        nil, "Bearer ", "Bearer", "Bearer x", "Bearer readx", "Bearer rea", "Bearer READ", "Bearer expired",
        "Basic dTpw", "Bearer read read", "read", "Bearer " + String(repeating: "x", count: 5000),
    ])
    func requestWithoutAValidTokenIsUnauthorized(_ authorization: String?) async throws {
        try await Self.withTokens { gateway in
            let fields = authorization.map { ["Authorization": $0] } ?? [:]
            let reply = try await gateway.get("/v1/connections", fields: fields)
            #expect(reply.problem == "401 unauthorized")
            #expect(reply.fields["www-authenticate"]?.hasPrefix("Bearer ") == true)
        }
    }

    @Test func probesPathsAndMethodsNeedNoToken() async throws {
        try await Self.withTokens { gateway async throws in
            for probe in ["/livez", "/readyz", "/startupz", "/openapi.json"] {
                #expect(try await gateway.get(probe).status == 200)
            }
            #expect(try await gateway.get("/v1/secrets").problem == "404 unknown-path")
            #expect(try await gateway.request("PUT", "/v1/connections").problem == "405 method-not-allowed")
            #expect(try await gateway.get("/v1/connections", fields: Self.bearer("later")).status == 200)
        }
    }

    // MARK: Audit log

    @Test func refusedWritesAreLoggedOnceWithTheirCaller() async throws {
        try await Self.withTokens { gateway in
            let body = #"{"all":true,"preview":true}"#
            let cases: [([String: String], String, String)] = [
                (["Origin": "http://evil.example"], "/v1/drains", "caller=nobody @ status=403 code=cross-origin"),
                (["Sec-Fetch-Site": "cross-site"], "/v1/drains", "caller=nobody @ status=403 code=cross-origin"),
                (["Host": "evil.example"], "/v1/drains", "caller=nobody @ status=421 code=unknown-host"),
                ([:], "/v1/drains?x=1", "caller=token:operate @ status=400 code=unknown-parameter"),
                ([:], "/v1/drains?%zz", "caller=token:operate @ status=400 code=malformed-query"),
                (
                    ["Idempotency-Key": String(repeating: "k", count: 256)], "/v1/drains",
                    "caller=token:operate @ status=400 code=invalid-header"
                ),
            ]
            for (fields, path, _) in cases {
                let all = fields.merging(Self.bearer("operate")) { first, _ in first }
                _ = try await gateway.post(path, body, fields: all)
            }
            let lines = gateway.log.filter { $0.contains("operation=startDrain") }
            #expect(lines.count == cases.count)
            for (line, expected) in zip(lines, cases.map(\.2)) {
                let parts = expected.split(separator: "@")
                #expect(parts.allSatisfy { line.contains($0) }, "\(line)")
                #expect(line.contains("path=/v1/drains "))
            }
        }
    }

    @Test func everyWriteIsLoggedWithoutItsQueryAndToken() async throws {
        try await Self.withTokens { gateway in
            let fields = Self.bearer("operate")
            let opened = try await gateway.post("/v1/connections", #"{"url":"\#(gateway.echo)"}"#, fields: fields)
            let id = opened.json["id"]?.string ?? ""
            _ = try await gateway.request(
                "DELETE", "/v1/connections/\(id)?reason=private", fields: Self.bearer("read"))
            _ = try await gateway.request("DELETE", "/v1/connections/\(id)")
            _ = try await gateway.get("/v1/connections/\(id)/tap?durationMs=0", fields: fields)
            let audited = gateway.log.filter { $0.contains("operation=") }
            let expected = [
                ["operation=openConnection", "path=/v1/connections", "caller=token:operate", "status=201"],
                ["operation=closeConnection", "caller=token:read", "status=403", "code=insufficient-scope"],
                ["operation=closeConnection", "caller=nobody", "status=401", "code=unauthorized"],
                ["operation=tap", "path=/v1/connections/\(id)/tap", "caller=token:operate", "status=200"],
            ]
            #expect(audited.count == expected.count, "\(audited)")
            for (line, parts) in zip(audited, expected) { #expect(parts.allSatisfy(line.contains), "\(line)") }
            #expect(!audited.joined().contains("private"))
        }
    }

    // MARK: Web pages

    @Test func pageOfAnotherOriginIsRefused() async throws {
        try await LoopbackGateway.run(LoopbackGateway.echo + "  hosts: [control.example]\n") { gateway in
            let port = gateway.control.split(separator: ":").last ?? ""
            let refused: [([String: String], String)] = [
                (["Origin": "http://evil.example"], "403 cross-origin"), (["Origin": "null"], "403 cross-origin"),
                (["Origin": "http://127.0.0.1:1"], "403 cross-origin"),
                (["Sec-Fetch-Site": "cross-site"], "403 cross-origin"),
                (["Host": "evil.example:\(port)"], "421 unknown-host"),
                (["Host": "127.0.0.1.evil.example:\(port)"], "421 unknown-host"),
            ]
            for (fields, problem) in refused {
                let fields = fields.merging(["Content-Type": "text/plain"]) { first, _ in first }
                for (method, path) in [("GET", "/v1/connections"), ("POST", "/v1/connections"), ("GET", "/livez")] {
                    let reply = try await gateway.request(
                        method, path, method == "GET" ? nil : #"{"url":"\#(gateway.echo)"}"#, fields: fields)
                    #expect(reply.problem == problem, "\(method) \(path) \(fields)")
                }
            }
            let allowed: [[String: String]] = [
                ["Origin": "http://127.0.0.1:\(port)"], ["Host": "control.example"], ["Host": "localhost:\(port)"],
                ["Origin": "https://control.example", "Host": "control.example"], ["Sec-Fetch-Site": "none"],
            ]
            for fields in allowed {
                #expect(try await gateway.get("/v1/connections", fields: fields).status == 200, "\(fields)")
            }
        }
    }

    // MARK: Targets

    @Test(arguments: [
        "tcp://169.254.169.254:80", "ws://169.254.169.254/latest/meta-data", "tcp://[fd00:ec2::254]:80",
        "tcp://10.0.0.1:22", "tcp://192.168.1.1:80", "tcp://[::ffff:169.254.169.254]:80", "tcp://0.0.0.0:80",
        "tcp://[::]:80", "tcp://[fe80::1]:80", "tcp://[64:ff9b::a9fe:a9fe]:80", "tcp://100.64.0.1:80",
        "tcp://224.0.0.1:80", "unix:///run/docker.sock", "tcp://8.8.8.8:53",
    ])
    func targetThatIsNotListedIsRefused(_ url: String) async throws {
        try await LoopbackGateway.run { gateway in
            let reply = try await gateway.post("/v1/connections", #"{"url":"\#(url)"}"#)
            #expect(reply.problem == "403 target-not-allowed /url")
            #expect(reply.detail.contains("control.targets"))
        }
    }

    @Test func nameIsAllowedByItsAddresses() async throws {
        let configuration = LoopbackGateway.echo.replacing("[127.0.0.1]", with: "['127.0.0.0/8:1']")
        try await LoopbackGateway.run(configuration) { gateway in
            for host in ["127.0.0.1", "localhost"] {
                let url = "tcp://\(host):\(gateway.port("raw"))"
                let reply = try await gateway.post("/v1/connections", #"{"url":"\#(url)"}"#)
                #expect(reply.problem.hasPrefix("403 target-not-allowed"), "\(url)")
            }
        }
    }

    // MARK: Limits

    @Test func callerIsLimitedToItsRequestRate() async throws {
        try await LoopbackGateway.run(LoopbackGateway.echo + "  request-rate: 1/s\n") { gateway in
            // One after another, each may take more than a second.
            let refused = try await withThrowingTaskGroup(of: HTTPReply.self) { group in
                for _ in 0..<20 { group.addTask { try await gateway.get("/version") } }
                return try await group.first { $0.status != 200 }
            }
            #expect(refused?.problem == "429 too-many-requests")
            #expect(refused?.json["retryable"]?.boolean == true)
            #expect(refused?.fields["retry-after"] == "1")
            #expect(try await gateway.get("/livez").status == 200)
        }
    }

    @Test func requestsBeyondTheLimitAtOnceAreRefused() async throws {
        try await LoopbackGateway.run(LoopbackGateway.echo + "  max-requests: 1\n") { gateway in
            let id = try await gateway.open(gateway.raw)
            let waiting = HTTPExchange(gateway.control)
            defer { waiting.close() }
            let head = "GET /v1/connections/\(id)/tap?durationMs=60000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            try await waiting.send(Array(head.utf8))
            _ = try await waiting.receive(through: "\r\n\r\n")
            // A stream is not a running request once its head is sent; a receive is, unless it coincides with the end of the
            // request before it and is refused itself.
            let request =
                "POST /v1/connections/\(id):receive?timeoutMs=60000 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                + "Content-Length: 0\r\n\r\n"
            try await gateway.wait {
                let receiving = HTTPExchange(gateway.control)
                defer { receiving.close() }
                try await receiving.send(Array(request.utf8))
                let reply = try await gateway.get("/v1/connections")
                guard reply.status != 200 else { return false }
                #expect(reply.problem == "503 too-many-requests-at-once")
                #expect(reply.fields["retry-after"] == "1")
                return true
            }
            #expect(try await gateway.get("/livez").status == 200)
        }
    }
}
