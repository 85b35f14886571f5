import Cluster
import ControlAPI
import ControlPlane
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Requests to other nodes of a cluster", .timeLimit(.minutes(5)))
struct NodeForwardingTests {
    @Test func verbsReachConnectionsOfOtherNodes() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let path = "/v1/connections/\(id)"
            #expect(try await a.get(path).json["id"]?.string == id)
            #expect(try await a.get(path + "?fields=state").json == ["state": "open"])
            let patch = try await a.request("PATCH", path, #"{"labels":{"team":"blue"}}"#)
            #expect(patch.json["labels"] == ["team": "blue"])
            #expect(try await a.post("\(path):send", #"{"text":"hello"}"#).json["state"]?.string == "sent")
            #expect(try await b.post("\(path):receive").json["text"]?.string == "hello")
            #expect(try await a.post("\(path):ping").json["rttMs"] != nil)
            #expect(try await a.post("\(path):suspend").json["suspended"]?.boolean == true)
            #expect(try await a.post("\(path):resume").json["suspended"]?.boolean == false)
            let patient = ["Prefer": "wait=60"]
            #expect(
                try await a.request("DELETE", "\(path)?code=4001", fields: patient).json["closeCode"]?.integer == 4001)
            let closed = try await a.get(path)
            #expect(closed.problem == "410 closed" && closed.json["connection"]?["id"]?.string == id)
            #expect(b.log.contains { $0.contains("peer=node:a") && $0.contains("operation=closeConnection") })
        }
    }

    @Test func connectionIsOpenedOnAnotherNode() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let body = #"{"url":"\#(b.raw)"}"#
            let reply = try await a.post("/v1/connections?node=b", body)
            #expect(reply.status == 201 && reply.json["node"]?.string == "b")
            let location = try #require(reply.fields["location"])
            #expect(try await a.get(location).json["id"] == reply.json["id"])
            let later = try await a.post("/v1/connections?node=b", body, fields: ["Prefer": "respond-async"])
            let operation = try await a.get(later.fields["location"] ?? "", fields: ["Prefer": "wait=20"])
            #expect(operation.json["answer"]?["node"]?.string == "b", "\(later.text) \(operation.text)")
        }
    }

    @Test func repeatedRequestWithItsKeyActsOnce() async throws {
        try await LoopbackCluster.run(["a", "b", "c"]) { cluster in
            let (a, b, c) = (try cluster.node("a"), try cluster.node("b"), try cluster.node("c"))
            let id = try await b.open(b.echo)
            let fields = ["Idempotency-Key": "once"]
            // Also when the client repeats it on another node.
            for node in [a, a, c] {
                let reply = try await node.post("/v1/connections/\(id):send", #"{"text":"x"}"#, fields: fields)
                #expect(reply.json["state"]?.string == "sent", "\(reply.text)")
            }
            let connection = try await a.get("/v1/connections/\(id)").json
            #expect(connection["sentMessages"]?.integer == 1)
        }
    }

    @Test(
        arguments: [
            ([], 0), ([1, 2], 3), ([5, -7], 5), ([.max, 1], .max), ([.max, .max, .min], .max), ([.min, .min], 0),
        ] as [([Int], Int)])
    func countsOfNodesAreAddedWithinTheirRange(_ counts: [Int], _ sum: Int) {
        #expect(counts.sumOfCounts() == sum)
    }

    @Test(arguments: [("/v1/connections:close", "{}"), ("/v1/drains", #"{"all":true,"code":1005}"#)])
    func refusalOfTheOnlyNamedNodeIsTheAnswer(_ path: String, _ body: String) async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let own = try await b.post(path, body)
            let forwarded = try await a.post("\(path)?node=b", body)
            #expect(own.status == 422 && forwarded.status == 422 && forwarded.problem == own.problem)
        }
    }

    @Test func bulkRequestActsOnItsNodeOrTheNamedOnes() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for node in [a, a, b] { _ = try await node.open(node.raw) }
            let body = #"{"selector":{"direction":"opened"},"preview":true}"#
            #expect(try await a.post("/v1/connections:close", body).json["matched"]?.integer == 2)
            #expect(try await a.post("/v1/connections:close?node=b", body).json["matched"]?.integer == 1)
            #expect(try await a.post("/v1/connections:close?node=a,b", body).json["matched"]?.integer == 3)
        }
    }

    // MARK: Refusals

    @Test func unknownAndSilentNodesHaveProblems() async throws {
        try await LoopbackCluster.run(
            ["a", "b"],
            limits: { limits in
                limits.gatherTimeout = .seconds(59)
                limits.requestTimeout = .seconds(59)
            }
        ) { cluster in
            let a = try cluster.node("a")
            let unknown = try await a.get("/v1/connections/17@x")
            #expect(unknown.problem == "404 unknown-node" && unknown.detail.contains("no node x "))
            #expect(try await a.get("/v1/connections/17@b?node=a").problem == "400 invalid-parameter node")
            #expect(try await a.get("/v1/connections/17@b").problem == "404 unknown-connection")
            cluster.network.setSilent("b", true)
            for (method, target) in [("GET", "/v1/connections/17@b"), ("POST", "/v1/connections/17@b:suspend")] {
                let reply = try await a.request(method, target)
                #expect(reply.problem == "504 node-silent" && reply.json["retryable"]?.boolean == true)
                #expect(reply.detail.contains("node b") && reply.detail.contains("59s"))
            }
            cluster.network.isAway = true
            #expect(try await a.get("/v1/connections/17@b").problem == "503 cluster-away")
        }
    }

    @Test func streamsAreLeftToTheirNode() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.raw)
            for target in ["/stream", "/tap"] {
                let reply = try await a.get("/v1/connections/\(id)\(target)")
                #expect(reply.problem == "421 other-node" && reply.detail.contains("node b"))
            }
        }
    }

    @Test func longBodyIsNotForwarded() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let id = try await b.open(b.echo)
            let text = String(repeating: "x", count: 1 << 20)
            let fields = ["Content-Type": "text/plain"]
            let reply = try await a.post("/v1/connections/\(id):send", text, fields: fields)
            #expect(reply.problem == "413 body-too-large" && reply.detail.contains("control plane of b"))
            #expect(try await b.post("/v1/connections/\(id):send", text, fields: fields).status == 200)
        }
    }

    @Test func longAnswerIsReplacedByAProblem() async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.messageSize = 12 << 10 }) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let text = String(repeating: "x", count: 250)
            let labels = (0..<60).map { #""l\#($0)":"\#(text)""# }.joined(separator: ",")
            let id = try await b.open(b.raw, more: #","labels":{\#(labels)}"#)
            #expect(try await a.get("/v1/connections/\(id)").problem == "502 node-answer-too-large")
            #expect(try await a.get("/v1/connections/\(id)?fields=id").json == ["id": .string(id)])
        }
    }

    /// What another node answers to a request.
    private func reply(_ gateway: LoopbackGateway, _ request: NodeRequest) async throws -> NodeReply {
        let cluster = try #require(gateway.gateway.cluster)
        return try #require(
            NodeReply(try await cluster.call("b", .request, request.encoded, timeout: .seconds(240))))
    }

    @Test(arguments: [
        ("GET", "/v1/connections/17@c", "421 other-node"), ("GET", "/v1/connections/17@a", "421 other-node"),
        ("POST", "/v1/connections?node=c", "421 other-node"), ("GET", "/v1/configuration", "421 not-forwarded"),
        ("GET", "/v1/events", "421 not-forwarded"), ("GET", "/v1/connections/17@b/tap", "421 not-forwarded"),
        ("GET", "/v1/nothing", "421 not-forwarded"), ("PUT", "/v1/connections", "421 not-forwarded"),
        ("GET", "/v1/connections/17@b?x=y", "400 unknown-parameter"),
        ("DELETE", "/v1/connections/17@b", "403 insufficient-scope"),
    ])
    func forwardedRequestIsChecked(_ method: String, _ target: String, _ problem: String) async throws {
        try await LoopbackCluster.run(["a", "b", "c"]) { cluster in
            let scopes = method == "DELETE" ? ["read", "root"] : ["read", "operate", "configure"]
            let request = NodeRequest(method, target, caller: "token:ops", scopes: scopes)
            let reply = try await self.reply(cluster.node("a"), request)
            let json = JSONValue(text: String(decoding: reply.body, as: UTF8.self))
            #expect("\(reply.status) \(json["code"]?.string ?? "")" == problem)
        }
    }

    @Test(arguments: [
        "", "x", "{}", "{}\n", #"{"method":"GET","target":"x","caller":"c","scopes":[]}"# + "\n",
        #"{"method":"GET","target":"/v1/connections","caller":"","scopes":["read"]}"# + "\n",
        #"{"method":"G ET","target":"/v1/connections","caller":"c","scopes":["read"]}"# + "\n",
        #"{"method":"GET","target":"/v1/ connections","caller":"c","scopes":["read"]}"# + "\n",
        #"{"method":"GET","target":"/v1/connections","caller":"c","fields":{"host":"x"},"scopes":["read"]}"# + "\n",
        #"{"method":"GET","target":"/v1/connections","caller":"c","fields":{"prefer":"a\nb"},"scopes":["read"]}"#
            + "\n",
    ])
    func malformedRequestOfANodeIsRefused(_ text: String) async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let bus = try #require(cluster.node("a").gateway.cluster)
            let answer = try await bus.call("b", .request, Array(text.utf8), timeout: .seconds(240))
            #expect(NodeReply(answer)?.status == 400)
        }
    }

    @Test func requestIsReadBack() {
        var request = NodeRequest("POST", "/v1/users/a%20b:send?node=b", caller: "uid:0", scopes: ["operate", "read"])
        request.fields = ["prefer": "wait=5", "idempotency-key": "ä\"\\"]
        request.body = [0, 10, 255]
        #expect(NodeRequest(request.encoded) == request)
        var reply = NodeReply(status: 201, body: [10, 10])
        reply.fields = ["location": "/v1/connections/1@b"]
        #expect(NodeReply(reply.encoded) == reply)
        #expect(NodeReply([]) == nil && NodeReply(Array("{\"status\":100}\n".utf8)) == nil)
    }

    // MARK: Without a cluster

    @Test func gatewayOfNoClusterHasNoNodes() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await gateway.open(gateway.raw)
            #expect(id.wholeMatch(of: /[0-9]+/) != nil)
            #expect(try await gateway.get("/v1/connections/\(id)").json["node"] == nil)
            #expect(try await gateway.get("/v1/connections?node=a").problem == "404 unknown-node")
            #expect(try await gateway.get("/v1/connections/\(id)@a").problem == "404 unknown-connection")
            #expect(try await gateway.get("/v1/connections?fields=node").json["items"]?.items == [[:], [:]])
        }
    }
}
