import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Drain operations of the REST interface", .timeLimit(.minutes(5)))
struct DrainOperationTests {
    private static let selector = #""selector":{"label":"of:test"}"#

    /// Opens connections with the label `of: test`.
    private static func open(_ count: Int, _ gateway: LoopbackGateway) async throws -> [String] {
        var ids: [String] = []
        for _ in 0..<count { ids.append(try await gateway.open(gateway.echo, more: #","labels":{"of":"test"}"#)) }
        return ids
    }

    private static func remaining(_ gateway: LoopbackGateway) async throws -> Int {
        try await gateway.get("/v1/connections?label=of:test").json["items"]?.items.count ?? -1
    }

    /// Polls until the drain has ended.
    private static func end(_ path: String, _ gateway: LoopbackGateway) async throws -> JSONValue {
        var drain = JSONValue.null
        try await gateway.wait {
            drain = try await gateway.get(path).json
            return drain["endedAt"] != nil
        }
        return drain
    }

    @Test func drainClosesTheSelectedConnectionsAtItsRate() async throws {
        try await LoopbackGateway.run { gateway in
            let ids = try await Self.open(5, gateway)
            let body = #"{\#(Self.selector),"ratePerSecond":100,"code":4001,"reason":"moving"}"#
            let started = try await gateway.post("/v1/drains", body)
            #expect(started.status == 202)
            #expect(started.json["state"]?.string == "running" && started.json["total"]?.integer == 5)
            let path = started.fields["location"] ?? ""
            let drain = try await Self.end(path, gateway)
            #expect(drain["state"]?.string == "ended" && drain["told"]?.integer == 5)
            #expect(drain["remaining"]?.integer == 0 && drain["cut"]?.integer == 0)
            let closed = try await gateway.get("/v1/connections/\(ids[0])").json["connection"]
            #expect(closed?["closeCode"]?.integer == 4001 && closed?["closeReason"]?.string == "moving")
            #expect(try await gateway.get("/v1/drains").json.items.count == 1)
        }
    }

    @Test func previewCountsAndClosesNothing() async throws {
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(3, gateway)
            for (path, more) in [("/v1/drains", #","preview":true"#), ("/v1/drains?preview=true", "")] {
                let reply = try await gateway.post(path, "{\(Self.selector)\(more)}")
                #expect(reply.status == 200 && reply.json["matched"]?.integer == 3)
            }
            #expect(try await Self.remaining(gateway) == 3)
        }
    }

    @Test func previewWarnsOfADeadlineThatIsTooEarly() async throws {
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(3, gateway)
            let body = #"{\#(Self.selector),"ratePerSecond":1,"deadlineMs":500,"preview":true}"#
            let reply = try await gateway.post("/v1/drains", body)
            #expect(reply.json["takesMs"] == .integer(2000), "\(reply.text)")
            #expect(reply.json["warning"]?.string?.hasPrefix("2 of 3 connections are reset") == true)
        }
    }

    @Test func pausedDrainContinuesWhenResumed() async throws {
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(2, gateway)
            let started = try await gateway.post("/v1/drains", #"{\#(Self.selector),"ratePerSecond":0.25}"#)
            let path = started.fields["location"] ?? ""
            #expect(try await gateway.post(path + ":pause").json["state"]?.string == "paused")
            #expect(try await gateway.post(path + ":pause").problem == "409 state-conflict")
            #expect(try await Self.remaining(gateway) > 0)
            #expect(try await gateway.post(path + ":resume").json["state"]?.string == "running")
            #expect(try await Self.end(path, gateway)["state"]?.string == "ended")
            #expect(try await Self.remaining(gateway) == 0)
        }
    }

    @Test(arguments: ["DELETE", "POST"])
    func cancelledDrainLeavesTheRestOpen(_ method: String) async throws {
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(3, gateway)
            let started = try await gateway.post("/v1/drains", #"{\#(Self.selector),"ratePerSecond":0.001}"#)
            let path = started.fields["location"] ?? ""
            let target = method == "POST" ? path + ":cancel" : path
            try await gateway.wait {
                let drain = try await gateway.get(path).json
                return drain["told"]?.integer == 1 && drain["remaining"]?.integer == 2
            }
            #expect(try await gateway.request(method, target).json["state"]?.string == "cancelled")
            let drain = try await Self.end(path, gateway)
            #expect(drain["told"]?.integer == 1 && drain["remaining"]?.integer == 2 && drain["total"]?.integer == 3)
            #expect(try await Self.remaining(gateway) == 2)
            #expect(try await gateway.request(method, target).problem == "409 state-conflict")
        }
    }

    @Test func bulkCloseTakesItsSelectionFromTheQuery() async throws {
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(2, gateway)
            #expect(try await gateway.post("/v1/connections:close", "{}").problem.hasPrefix("422 invalid-value"))
            // Each of them has an accepted connection at its other end.
            let preview = try await gateway.post("/v1/connections:close?all=true&preview=true")
            #expect(preview.json == JSONValue(text: #"{"matched":4,"told":0}"#))
            #expect(try await gateway.post("/v1/connections:close?all=true").json["matched"]?.integer == 4)
            try await gateway.wait { try await Self.remaining(gateway) == 0 }
        }
    }

    @Test func selectorTakesJSONValues() async throws {
        try await LoopbackGateway.run { gateway in
            let ids = try await Self.open(2, gateway)
            for selector in [
                #"{"minAgeMs":0,"labels":{"of":"test"}}"#, #"{"id":["\#(ids[0])","\#(ids[1])"],"stalled":false}"#,
                #"{"kind":["webSocket","stream"],"direction":"opened"}"#,
            ] {
                let reply = try await gateway.post("/v1/drains", #"{"selector":\#(selector),"preview":true}"#)
                #expect(reply.json["matched"]?.integer == 2, "\(selector): \(reply.text)")
            }
            let invalid = try await gateway.post("/v1/drains", #"{"selector":{"minAgeMs":true},"preview":true}"#)
            #expect(invalid.problem == "422 invalid-value /selector/minAgeMs")
        }
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
        try await LoopbackGateway.run { gateway in
            _ = try await Self.open(1, gateway)
            for value in values {
                let reply = try await gateway.post("/v1/drains", #"{"all":true,"\#(member)":\#(value)}"#)
                #expect(reply.problem == "422 invalid-value /\(member)", "\(value)")
            }
            #expect(try await Self.remaining(gateway) == 1)
        }
    }

    @Test(arguments: [("GET", ""), ("DELETE", ""), ("POST", ":pause"), ("POST", ":resume"), ("POST", ":cancel")])
    func unknownDrainIsNotFound(_ method: String, _ verb: String) async throws {
        try await LoopbackGateway.run { gateway async throws in
            #expect(try await gateway.request(method, "/v1/drains/7\(verb)").problem == "404 unknown-drain")
        }
    }
}
