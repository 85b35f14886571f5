import ControlAPI
import ControlPlane
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Events of a cluster", .timeLimit(.minutes(5)))
struct ClusterEventTests {
    /// The ids and events of a stream that ends.
    private func events(
        _ gateway: LoopbackGateway, _ query: String, fields: [String: String] = [:]
    ) async throws -> (ids: [String], events: [JSONValue]) {
        let reply = try await gateway.get("/v1/events?\(query)", fields: fields)
        #expect(reply.status == 200 && reply.fields["content-type"] == "text/event-stream", "\(reply.text)")
        let lines = reply.text.split(separator: "\n")
        return (
            lines.filter { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) },
            lines.filter { $0.hasPrefix("data: ") }.map { JSONValue(text: String($0.dropFirst(6))) }
        )
    }

    /// Opens connections on the nodes, and returns their ids.
    private func open(_ cluster: LoopbackCluster, _ nodes: String...) async throws -> [String] {
        var ids: [String] = []
        for name in nodes {
            let node = try cluster.node(name)
            ids.append(try await node.open(node.raw))
        }
        return ids
    }

    private let opened = "type=opened&upstream="

    @Test func everyNodeFollowsTheEventsOfAll() async throws {
        try await LoopbackCluster.run { cluster in
            let ids = try await self.open(cluster, "a", "b", "c")
            for name in ["a", "b", "c"] {
                let found = try await self.events(
                    cluster.node(name), "after=0&type=opened&connection=\(ids.joined(separator: ","))&limit=3")
                #expect(found.events.compactMap { $0["connection"]?.string }.sorted() == ids)
                #expect(found.events.compactMap { $0["node"]?.string }.sorted() == ["a", "b", "c"])
                #expect(found.ids.last?.split(separator: ",").count == 3)
            }
            let own = try await self.events(cluster.node("a"), "after=0&type=opened&node=b&limit=2")
            #expect(own.events.allSatisfy { $0["node"]?.string == "b" })
        }
    }

    @Test func followerGetsWhatHappensOnOtherNodes() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let a = try cluster.node("a")
            let exchange = HTTPExchange(a.control)
            defer { exchange.close() }
            let host = a.control.dropFirst("http://".count)
            try await exchange.send(Array("GET /v1/events?type=opened HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
            _ = try await exchange.receive(through: ":\n\n")
            let id = try await self.open(cluster, "b")[0]
            let text = try await exchange.receive(through: #""connection":"\#(id)""#)
            #expect(text.contains(#""node":"b""#))
        }
    }

    @Test func lostStreamGoesOnOnAnotherNode() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let ids = try await self.open(cluster, "a", "b", "a", "b")
            let filter = "type=opened&connection=\(ids.joined(separator: ","))"
            let first = try await self.events(cluster.node("a"), "\(filter)&after=0&limit=2")
            let fields = ["Last-Event-ID": try #require(first.ids.last)]
            let second = try await self.events(cluster.node("b"), "\(filter)&limit=2", fields: fields)
            let all = (first.events + second.events).compactMap { $0["connection"]?.string }
            #expect(all.sorted() == ids.sorted())
        }
    }

    @Test func eachEventHasThePositionThatFollowsIt() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let ids = try await self.open(cluster, "a", "b").joined(separator: ",")
            let found = try await self.events(cluster.node("a"), "after=0&type=opened&connection=\(ids)&limit=2")
            #expect(found.events.map { $0["position"]?.string } == found.ids)
            let pattern = /[0-9]+@a\/[0-9a-f]{8},[0-9]+@b\/[0-9a-f]{8}/
            #expect(found.ids.last?.wholeMatch(of: pattern) != nil, "\(found.ids)")
        }
        try await LoopbackGateway.run { gateway in
            _ = try await gateway.open(gateway.raw)
            let found = try await self.events(gateway, "after=0&type=opened&limit=1")
            #expect(found.events.map { $0["position"]?.string } == found.ids)
        }
    }

    @Test func nodeThatAPositionDoesNotNameIsFollowedFromItsFirstEvent() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let ids = try await self.open(cluster, "a", "b")
            let filter = "type=opened&connection=\(ids.joined(separator: ","))"
            let first = try await self.events(cluster.node("a"), "\(filter)&after=0&node=a&limit=1")
            #expect(first.ids.last?.contains("@b") == false)
            let rest = try await self.events(cluster.node("b"), "\(filter)&after=\(first.ids.last ?? "")&limit=1")
            #expect(rest.events.map { $0["connection"]?.string } == [ids[1]])
        }
    }

    @Test func positionInAnotherProcessOfTheNodeIsFollowedByAGapAndAllEvents() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let ids = try await self.open(cluster, "b", "b")
            let filter = "type=opened&connection=\(ids.joined(separator: ","))"
            let gap = try await self.events(cluster.node("a"), "\(filter)&after=2@b/00000000&limit=1")
            #expect(gap.events.map { $0["type"]?.string } == ["gap"])
            let rest = try await self.events(cluster.node("a"), "\(filter)&after=\(gap.ids.last ?? "")&limit=2")
            #expect(rest.events.map { $0["connection"]?.string } == ids)
        }
    }

    @Test func eventsThatAreNotKeptAreAGapOfTheirNode() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let found = try await self.events(cluster.node("a"), "after=999999%40b&node=b&type=reloaded&limit=1")
            #expect(found.events.map { $0["type"]?.string } == ["gap"])
            #expect(found.events[0]["node"]?.string == "b" && found.events[0]["missedTo"]?.integer == 999_999)
        }
    }

    @Test func nodeThatWasSilentLosesNothing() async throws {
        try await LoopbackCluster.run(
            ["a", "b"],
            limits: { limits in
                limits.gatherTimeout = .milliseconds(50)
                limits.eventWait = .milliseconds(50)
            }
        ) { cluster in
            let a = try cluster.node("a")
            cluster.network.setSilent("b", true)
            let ids = try await self.open(cluster, "b")
            async let found = self.events(a, "after=0&type=opened&connection=\(ids[0])&limit=1")
            // Asked at least once while it is silent.
            let calls = cluster.network.calls.count
            try await a.wait { cluster.network.calls.count > calls + 1 }
            cluster.network.setSilent("b", false)
            #expect(try await found.events.map { $0["connection"]?.string } == [ids[0]])
        }
    }

    @Test(arguments: ["", "&node=b,c"])
    func nodeThatIsGoneIsNotAskedUntilItReturns(_ more: String) async throws {
        try await LoopbackCluster.run(
            limits: { limits in
                limits.gatherTimeout = .milliseconds(20)
                limits.eventWait = .milliseconds(20)
                limits.membershipInterval = .milliseconds(20)
            }
        ) { cluster in
            let a = try cluster.node("a")
            let exchange = HTTPExchange(a.control)
            defer { exchange.close() }
            let host = a.control.dropFirst("http://".count)
            try await exchange.send(
                Array("GET /v1/events?type=opened\(more) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
            _ = try await exchange.receive(through: ":\n\n")
            try await a.wait { cluster.network.calls.suffix(20).contains("b") }
            cluster.network.remove("b")
            // The other node is asked as before.
            try await a.wait { cluster.network.calls.suffix(30) == Array(repeating: "c", count: 30)[...] }
            let id = try await self.open(cluster, "b")[0]
            cluster.network.restore("b")
            let text = try await exchange.receive(through: #""connection":"\#(id)""#)
            #expect(text.contains(#""node":"b""#))
        }
    }

    @Test func quietStreamSendsHeartbeatsAndEnds() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let reply = try await cluster.node("a").get("/v1/events?heartbeatMs=10&durationMs=1000")
            #expect(reply.text.split(separator: "\n").count { $0.hasPrefix(":") } >= 1)
            #expect(!reply.text.contains("data:"))
        }
    }

    @Test(arguments: [
        ("after=x", "400 invalid-parameter after"), ("after=1@a,2", "400 invalid-parameter after"),
        ("after=1@", "400 invalid-parameter after"), ("after=1@a/", "400 invalid-parameter after"),
        ("type=x", "400 invalid-parameter type"),
        ("connection=x@b", "400 invalid-parameter connection"), ("limit=0", "400 invalid-parameter limit"),
        ("node=x", "404 unknown-node"),
    ])
    func invalidQueryIsRefused(_ query: String, _ problem: String) async throws {
        try await LoopbackCluster.run(["a"]) { cluster in
            let reply = try await cluster.node("a").get("/v1/events?\(query)")
            #expect(reply.problem == problem)
        }
    }

    // MARK: Messages between nodes

    @Test(arguments: ["0", "17@a", "17@a,5@b", "17@a/5b1c8fa0,5@b/90e1c20d"])
    func positionIsReadBack(_ text: String) throws {
        let position = try #require(EventPosition(text, own: "a"))
        #expect(position.others == 0)
        #expect(text == "0" || position.text == text)
    }

    @Test func batchAndRequestAreReadBack() {
        var batch = EventBatch(instance: "7f", position: .max)
        batch.items = [.init(number: 17, type: "gap", text: Array(#"{"a":"\n"}"#.utf8))]
        #expect(EventBatch(batch.encoded) == batch)
        var request = EventRequest()
        (request.position, request.instance, request.waitMs, request.query) = (.max, "7f", 5000, "type=a%20b&x=y")
        #expect(EventRequest(request.encoded) == request)
        for text in [
            "", "x", "[]", #"{"items":[{"type":"x\ny"}]}"#, #"{"position":-1}"#,
            #"{"items":[{"type":"gap","event":7}]}"#,
        ] {
            #expect(EventBatch(Array(text.utf8)) == nil)
        }
    }

    @Test func batchOfAnotherProcessBeginsWithAGap() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            _ = try await self.open(cluster, "b")
            var request = EventRequest()
            (request.position, request.instance, request.query) = (1, "other", "type=opened")
            let bus = try #require(cluster.node("a").gateway.cluster)
            let answer = try await bus.call("b", .events, request.encoded, timeout: .seconds(20))
            let batch = try #require(EventBatch(answer))
            #expect(batch.items.map(\.type).first == "gap" && batch.items.count > 1)
        }
    }
}
