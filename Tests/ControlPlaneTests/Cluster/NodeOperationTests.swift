import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Nodes of a cluster in the REST interface", .timeLimit(.minutes(5)))
struct NodeOperationTests {
    @Test func nodesAreListedByEachOfThem() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            for name in ["a", "b"] {
                let items = try await cluster.node(name).get("/v1/nodes").json["items"]?.items ?? []
                #expect(items.map { $0["name"]?.string } == ["a", "b"])
                #expect(items.map { $0["answering"]?.boolean } == [name == "a", name == "b"])
                let node = try #require(items.first)
                #expect(node["version"]?.string == "0.1.0" && node["leaseMs"]?.integer == 9000)
                #expect(node["clockDifferenceMs"]?.integer == 2 && node["connections"]?.integer == 3)
                #expect(node["startedAt"]?.string == "2026-09-21T14:13:20.000Z")
                #expect(try await cluster.node(name).get("/v1/nodes/a").json == node)
            }
            let a = try cluster.node("a")
            #expect(try await a.get("/v1/nodes/x").problem == "404 unknown-node")
            cluster.network.isAway = true
            #expect(try await a.get("/v1/nodes").problem == "503 cluster-away")
        }
    }

    @Test func gatewayOfNoClusterListsNoNodes() async throws {
        try await LoopbackGateway.run { gateway in
            for (method, target) in [("GET", "/v1/nodes"), ("GET", "/v1/nodes/a"), ("POST", "/v1/nodes/a:drain")] {
                let reply = try await gateway.request(method, target)
                #expect(reply.problem == "409 no-cluster")
            }
        }
    }

    // MARK: Drains

    @Test func nodeIsDrainedThroughAnother() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for node in [a, b, b] { _ = try await node.open(node.raw) }
            let reply = try await a.post(
                "/v1/nodes/b:drain", #"{"ratePerSecond":1000,"deadlineMs":10000}"#, fields: ["Prefer": "wait=30"])
            // Both ends of each connection are on the node.
            #expect(reply.status == 200 && reply.json["total"]?.integer == 4, "\(reply.text)")
            #expect(reply.json["node"]?.string == "b" && reply.json["id"]?.string == "1@b")
            let left = try await a.get("/v1/connections").json["items"]?.items ?? []
            #expect(Set(left.map { $0["node"]?.string }) == ["a"])
            #expect(try await a.post("/v1/nodes/a:drain", fields: ["Prefer": "wait=30"]).json["id"]?.string == "1@a")
            #expect(try await a.post("/v1/nodes/x:drain").problem == "404 unknown-node")
            #expect(try await a.post("/v1/nodes/b:drain", #"{"all":true}"#).problem == "422 unknown-member /all")
        }
    }

    @Test func drainsOfAllNodesAreListedAndControlled() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for node in [a, b] { _ = try await node.open(node.raw) }
            let body = #"{"all":true,"ratePerSecond":0.001}"#
            let started = try await a.post("/v1/drains?node=b", body)
            #expect(started.status == 202 && started.json["id"]?.string == "1@b")
            let path = try #require(started.fields["location"])
            _ = try await a.post("/v1/drains", body)
            for node in [a, b] {
                let ids = try await node.get("/v1/drains").json.items.map { $0["id"]?.string }
                #expect(ids == ["1@a", "1@b"])
            }
            #expect(try await a.post("\(path):pause").json["state"]?.string == "paused")
            #expect(try await b.get(path).json["state"]?.string == "paused")
            #expect(try await a.request("DELETE", path).json["state"]?.string == "cancelled")
            #expect(try await a.get("/v1/drains/7@b").problem == "404 unknown-drain")
        }
    }

    @Test func severalNodesAreDrainedAtOnce() async throws {
        try await LoopbackCluster.run(limits: { $0.requestTimeout = .seconds(60) }) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for node in [a, b, b] { _ = try await node.open(node.raw) }
            let preview = try await a.post("/v1/drains", #"{"all":true,"nodes":["*"],"preview":true}"#)
            #expect(preview.json["matched"]?.integer == 6)
            let body = #"{"selector":{"direction":"opened"},"nodes":["b","a"]}"#
            let reply = try await a.post("/v1/drains", body, fields: ["Prefer": "wait=30"])
            let items = reply.json["items"]?.items ?? []
            #expect(reply.status == 200 && items.map { $0["id"]?.string } == ["1@a", "1@b"], "\(reply.text)")
            #expect(items.map { $0["total"]?.integer } == [1, 2])
            cluster.network.setSilent("c", true)
            let rest = try await a.post("/v1/drains", #"{"all":true,"nodes":["*"],"ratePerSecond":0.001}"#)
            #expect(rest.json["items"]?.items.count == 2 && rest.json["unreachable"] == ["c"])
            let unknown = try await a.post("/v1/drains", #"{"all":true,"nodes":["x"]}"#)
            #expect(unknown.problem == "404 unknown-node /nodes")
            #expect(try await a.post("/v1/drains", #"{"nodes":["b"]}"#).problem == "422 invalid-value /selector")
            let none = try await a.post("/v1/drains", #"{"all":true,"nodes":[]}"#)
            #expect(none.problem == "422 invalid-value /nodes")
        }
    }
}
