import ControlAPI
import ControlPlane
import GatewayTestSupport
import Testing

@Suite("Service operations of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct ServiceOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    @Test(arguments: [
        ("/livez", ["ok", "ok", "ok"]), ("/readyz", ["not up yet", "ok", "not taking more"]),
        ("/startupz", ["not up yet", "ok", "ok"]),
    ])
    func probesReportThePhase(_ path: String, _ statuses: [String]) async throws {
        for (phase, status) in zip(ServicePhase.allCases, statuses) {
            self.gateway.phase = phase
            for prefix in ["", "/v1"] {
                let reply = try await self.gateway.get(prefix + path)
                #expect(reply.status == (status == "ok" ? 200 : 503), "\(phase)")
                #expect(reply.fields["content-type"] == "application/json")
                #expect(reply.json["phase"]?.string == phase.rawValue)
                #expect(reply.json["status"]?.string == status)
            }
        }
    }

    @Test func versionNamesServiceAndInterface() async throws {
        for path in ["/version", "/v1/version"] {
            let reply = try await self.gateway.get(path)
            #expect(reply.json == JSONValue(text: #"{"name":"sluice","version":"0.1.0","api":"/v1"}"#))
        }
    }

    @Test func metricsAreOpenMetricsText() async throws {
        _ = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.get("/metrics")
        #expect(reply.fields["content-type"]?.hasPrefix("application/openmetrics-text") == true)
        #expect(reply.text.hasSuffix("# EOF\n"))
        #expect(reply.text.contains("# TYPE "))
    }

    @Test func documentIsServedWithoutScope() async throws {
        let reply = try await self.gateway.get("/openapi.json")
        #expect(reply.status == 200)
        #expect(reply.json["openapi"]?.string == "3.1.0")
    }

    @Test func headHasTheFieldsOfGetWithoutItsBody() async throws {
        let get = try await self.gateway.get("/version")
        let head = try await self.gateway.request("HEAD", "/version")
        #expect(head.status == 200)
        #expect(head.body.isEmpty)
        #expect(head.fields["content-length"] == "\(get.body.count)")
    }

    @Test(arguments: ["/v1/connections/nothing", "/nothing", "/v1/connections:close", "/livez?x=1"])
    func problemHasNoBodyForHead(_ path: String) async throws {
        let get = try await HTTPExchange.run(self.gateway.control, "GET", path)
        let head = try await HTTPExchange.run(self.gateway.control, "HEAD", path)
        #expect(get.status >= 400 && head.status == get.status)
        #expect(head.body.isEmpty)
        #expect(head.fields["content-type"] == "application/problem+json")
        #expect(head.fields["content-length"] == "\(get.body.count)")
    }

    @Test func unknownPathIsNotFound() async throws {
        for path in ["/", "/v1", "/v1/nothing", "/v1/connections/1/x", "/livez/"] {
            let reply = try await self.gateway.get(path)
            #expect(reply.problem == "404 unknown-path", "\(path)")
            #expect(reply.detail == "There is no resource at this path; /openapi.json lists all paths.")
        }
    }

    @Test(arguments: [
        ("PUT", "/v1/connections", "GET, HEAD, POST"), ("DELETE", "/livez", "GET, HEAD"),
        ("PUT", "/v1/connections/1", "DELETE, GET, HEAD, PATCH"), ("GET", "/v1/connections/1:send", "POST"),
    ])
    func disallowedMethodNamesTheAllowedOnes(_ method: String, _ path: String, _ allowed: String) async throws {
        let reply = try await self.gateway.request(method, path)
        #expect(reply.problem == "405 method-not-allowed")
        #expect(reply.fields["allow"] == allowed)
        #expect(reply.detail == "This resource allows \(allowed).")
    }

    @Test func everyBodyEndsWithOneLineFeed() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        for path in [
            "/livez", "/version", "/metrics", "/openapi.json", "/v1/connections", "/v1/connections/\(id)",
            "/v1/listeners", "/v1/listeners/web", "/v1/configuration", "/v1/configuration?format=yaml",
            "/v1/drains", "/v1/operations", "/v1/transfers", "/v1/nothing", "/livez?x=1",
        ] {
            let reply = try await self.gateway.get(path)
            #expect(reply.text.hasSuffix("\n") && !reply.text.hasSuffix("\n\n"), "\(path)")
            #expect(reply.fields["content-length"] == "\(reply.body.count)", "\(path)")
        }
    }
}
