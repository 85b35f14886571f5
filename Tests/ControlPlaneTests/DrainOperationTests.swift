import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Drain operations of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct DrainOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private static let selector = #""selector":{"label":"of:test"}"#

    /// Opens connections with the label `of: test`.
    private func open(_ count: Int) async throws -> [String] {
        var ids: [String] = []
        for _ in 0..<count {
            ids.append(try await self.gateway.open(self.gateway.echo, more: #","labels":{"of":"test"}"#))
        }
        return ids
    }

    private func remaining() async throws -> Int {
        try await self.gateway.get("/v1/connections?label=of:test").json["items"]?.items.count ?? -1
    }

    /// Polls until the drain has ended.
    private func end(_ path: String) async throws -> JSONValue {
        var drain = JSONValue.null
        try await self.gateway.wait {
            drain = try await self.gateway.get(path).json
            return drain["endedAt"] != nil
        }
        return drain
    }

    @Test func drainClosesTheSelectedConnectionsAtItsRate() async throws {
        let ids = try await self.open(5)
        let body = #"{\#(Self.selector),"ratePerSecond":5,"code":4001,"reason":"moving"}"#
        let started = try await self.gateway.post("/v1/drains", body)
        #expect(started.status == 202)
        #expect(started.json["state"]?.string == "running" && started.json["total"]?.integer == 5)
        let path = started.fields["location"] ?? ""
        let drain = try await self.end(path)
        #expect(drain["state"]?.string == "ended" && drain["notified"]?.integer == 5)
        #expect(drain["remaining"]?.integer == 0 && drain["cut"]?.integer == 0)
        let closed = try await self.gateway.get("/v1/connections/\(ids[0])").json["connection"]
        #expect(closed?["closeCode"]?.integer == 4001 && closed?["closeReason"]?.string == "moving")
        #expect(try await self.gateway.get("/v1/drains").json.items.count == 1)
    }

    @Test func previewCountsAndClosesNothing() async throws {
        _ = try await self.open(3)
        for (path, more) in [("/v1/drains", #","preview":true"#), ("/v1/drains?preview=true", "")] {
            let reply = try await self.gateway.post(path, "{\(Self.selector)\(more)}")
            #expect(reply.status == 200 && reply.json["matched"]?.integer == 3)
        }
        #expect(try await self.remaining() == 3)
    }

    @Test func previewWarnsOfADeadlineThatIsTooEarly() async throws {
        _ = try await self.open(3)
        let body = #"{\#(Self.selector),"ratePerSecond":1,"deadlineMs":500,"preview":true}"#
        let reply = try await self.gateway.post("/v1/drains", body)
        #expect(reply.json["takesMs"] == .integer(2000), "\(reply.text)")
        #expect(reply.json["warning"]?.string?.hasPrefix("2 of 3 connections are reset") == true)
    }

    @Test func pausedDrainContinuesWhenResumed() async throws {
        _ = try await self.open(2)
        let started = try await self.gateway.post("/v1/drains", #"{\#(Self.selector),"ratePerSecond":0.1}"#)
        let path = started.fields["location"] ?? ""
        #expect(try await self.gateway.post(path + ":pause").json["state"]?.string == "paused")
        #expect(try await self.gateway.post(path + ":pause").problem == "409 state-conflict")
        #expect(try await self.remaining() > 0)
        #expect(try await self.gateway.post(path + ":resume").json["state"]?.string == "running")
        #expect(try await self.end(path)["state"]?.string == "ended")
        #expect(try await self.remaining() == 0)
    }

    @Test(arguments: ["DELETE", "POST"])
    func cancelledDrainLeavesTheRestOpen(_ method: String) async throws {
        _ = try await self.open(3)
        let started = try await self.gateway.post("/v1/drains", #"{\#(Self.selector),"ratePerSecond":0.001}"#)
        let path = started.fields["location"] ?? ""
        let target = method == "POST" ? path + ":cancel" : path
        try await self.gateway.wait {
            let drain = try await self.gateway.get(path).json
            return drain["notified"]?.integer == 1 && drain["remaining"]?.integer == 2
        }
        #expect(try await self.gateway.request(method, target).json["state"]?.string == "cancelled")
        let drain = try await self.end(path)
        #expect(drain["notified"]?.integer == 1 && drain["remaining"]?.integer == 2 && drain["total"]?.integer == 3)
        #expect(try await self.remaining() == 2)
        #expect(try await self.gateway.request(method, target).problem == "409 state-conflict")
    }

    @Test func bulkCloseTakesItsSelectionFromTheQuery() async throws {
        _ = try await self.open(2)
        #expect(try await self.gateway.post("/v1/connections:close", "{}").problem.hasPrefix("422 invalid-value"))
        // Each of them has an accepted connection at its other end.
        let preview = try await self.gateway.post("/v1/connections:close?all=true&preview=true")
        #expect(preview.json == JSONValue(text: #"{"matched":4,"notified":0}"#))
        #expect(try await self.gateway.post("/v1/connections:close?all=true").json["matched"]?.integer == 4)
        try await self.gateway.wait { try await self.remaining() == 0 }
    }

    @Test func selectorTakesJSONValues() async throws {
        let ids = try await self.open(2)
        for selector in [
            #"{"minAgeMs":0,"labels":{"of":"test"}}"#, #"{"id":["\#(ids[0])","\#(ids[1])"],"stalled":false}"#,
            #"{"kind":["webSocket","stream"],"direction":"opened"}"#,
        ] {
            let reply = try await self.gateway.post("/v1/drains", #"{"selector":\#(selector),"preview":true}"#)
            #expect(reply.json["matched"]?.integer == 2, "\(selector): \(reply.text)")
        }
        let invalid = try await self.gateway.post("/v1/drains", #"{"selector":{"minAgeMs":true},"preview":true}"#)
        #expect(invalid.problem == "422 invalid-value /selector/minAgeMs")
    }

    @Test(arguments: [
        (
            "ratePerSecond",
            ["0", "-1", "5.584981425933862e-133", "5e-324", "0.0009", "100001", "9.08e126", "1.7976931348623157e308"]
        ),
        ("jitterMs", ["-1", "3600001", "1e18", "1.7e308"]),
        ("deadlineMs", ["-1", "86400001", "5.320639728400362e16", "1.7e308"]),
        ("code", ["-4096", "0", "999", "1005", "5000", "65536", "1099511627776"]),
    ])
    func numberOutOfItsRangeIsRefusedAndNothingDrained(_ member: String, _ values: [String]) async throws {
        _ = try await self.open(1)
        for value in values {
            let reply = try await self.gateway.post("/v1/drains", #"{"all":true,"\#(member)":\#(value)}"#)
            #expect(reply.problem == "422 invalid-value /\(member)", "\(value)")
        }
        #expect(try await self.remaining() == 1)
    }

    @Test(arguments: [("GET", ""), ("DELETE", ""), ("POST", ":pause"), ("POST", ":resume"), ("POST", ":cancel")])
    func unknownDrainIsNotFound(_ method: String, _ verb: String) async throws {
        #expect(try await self.gateway.request(method, "/v1/drains/7\(verb)").problem == "404 unknown-drain")
    }
}
