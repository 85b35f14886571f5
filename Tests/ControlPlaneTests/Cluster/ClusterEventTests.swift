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

    /// A number alone may be of another process, and a gateway may have had no cluster before.
    @Test(arguments: [("2@b/00000000", "b"), ("2@b", "b"), ("2", "a"), ("00000000.2", "a")])
    func positionInAnotherProcessOfTheNodeIsFollowedByAGapAndAllEvents(
        _ position: String, _ node: String
    ) async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let ids = try await self.open(cluster, node, node)
            let filter = "type=opened&connection=\(ids.joined(separator: ","))"
            let gap = try await self.events(cluster.node("a"), "\(filter)&after=\(position)&limit=1")
            #expect(gap.events.map { $0["type"]?.string } == ["gap"])
            #expect(gap.events[0]["node"]?.string == node)
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
                limits.gatherTimeout = .seconds(2)
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

    /// - Parameter isEarly: whether the node goes when the stream has found where its events end, and has not yet begun.
    @Test(arguments: ["", "&node=b,c"], [false, true])
    func nodeThatIsGoneIsNotAskedUntilItReturns(_ more: String, isEarly: Bool) async throws {
        try await LoopbackCluster.run(
            limits: { limits in
                // Also the pause after a call that failed.
                limits.gatherTimeout = isEarly ? .seconds(60) : .milliseconds(500)
                limits.eventWait = .milliseconds(20)
                limits.membershipInterval = .milliseconds(20)
            }
        ) { cluster in
            let a = try cluster.node("a")
            if isEarly { cluster.network.removeAfterCall("b") }
            let exchange = try await self.follow(a, "type=opened\(more)")
            defer { exchange.close() }
            if !isEarly {
                try await a.wait { cluster.network.calls.count { $0 == "b" } > 1 }
                cluster.network.remove("b")
            }
            // The other node is asked as before. Each call of many would take long on a busy machine.
            try await a.wait { cluster.network.calls.suffix(8) == Array(repeating: "c", count: 8)[...] }
            let id = try await self.open(cluster, "b")[0]
            cluster.network.restore("b")
            let text = try await exchange.receive(through: #""connection":"\#(id)""#)
            #expect(text.contains(#""node":"b""#))
        }
    }

    /// Follows events on a node, and has found where they end.
    private func follow(_ gateway: LoopbackGateway, _ query: String) async throws -> HTTPExchange {
        let exchange = HTTPExchange(gateway.control)
        let host = gateway.control.dropFirst("http://".count)
        try await exchange.send(Array("GET /v1/events?\(query) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
        _ = try await exchange.receive(through: ":\n\n")
        return exchange
    }

    @Test func followersShareTheirWaitAndLeaveOtherCallsTheirPlaces() async throws {
        try await LoopbackCluster.run(
            ["a", "b"],
            limits: { limits in
                limits.sentRequests = 8
                // Longer than the test, which would take more calls.
                limits.eventWait = .seconds(240)
            }
        ) { cluster in
            let a = try cluster.node("a")
            var followers: [HTTPExchange] = []
            defer { for follower in followers { follower.close() } }
            for _ in 0..<20 { followers.append(try await self.follow(a, "type=opened")) }
            for _ in 0..<10 {
                let list = try await a.get("/v1/connections")
                #expect(list.status == 200 && list.json["unreachable"] == nil, "\(list.text)")
            }
            // Each has asked for its beginning, and the list was of both nodes.
            #expect(cluster.network.calls.count < 45)
            let id = try await self.open(cluster, "b")[0]
            for follower in followers { _ = try await follower.receive(through: #""connection":"\#(id)""#) }
        }
    }

    @Test func waitWithoutAPlaceEndsAtOnce() async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.servedEventWaits = 1 }) { cluster in
            let bus = try #require(cluster.node("a").gateway.cluster)
            var request = EventRequest()
            request.query = "type=opened"
            let end = EventBatch(try await bus.call("b", .events, request.encoded, timeout: .seconds(240)))
            (request.position, request.waitMs) = (try #require(end).position, 10_000)
            let content = request.encoded
            try await withThrowingTaskGroup(of: EventBatch?.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        EventBatch(try await bus.call("b", .events, content, as: .eventWait, timeout: .seconds(240)))
                    }
                }
                let first = try await group.next() ?? nil
                #expect(first?.isImmediate == true && first?.items.isEmpty == true)
                _ = try await self.open(cluster, "b")
                let second = try await group.next() ?? nil
                #expect(second?.isImmediate == false && second?.items.first?.type == "opened")
            }
        }
    }

    @Test(arguments: [(0, 64), (64, 0)])
    func followerThatCannotWaitAsksAgainAndAgain(_ sent: Int, _ served: Int) async throws {
        try await LoopbackCluster.run(
            ["a", "b"],
            limits: { limits in
                (limits.sentEventWaits, limits.servedEventWaits) = (sent, served)
                limits.eventPollInterval = .milliseconds(20)
            }
        ) { cluster in
            let a = try cluster.node("a")
            let follower = try await self.follow(a, "type=opened")
            defer { follower.close() }
            let calls = cluster.network.calls.count
            try await a.wait { cluster.network.calls.count > calls + 5 }
            let id = try await self.open(cluster, "b")[0]
            _ = try await follower.receive(through: #""connection":"\#(id)""#)
        }
    }

    /// More events than are read at once do not match.
    @Test func answerWithoutAWaitReadsAllEventsThatAreThere() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let b = try cluster.node("b")
            let log = try #require(b.gateway.eventLog)
            let start = log.last
            for _ in 0..<600 { log.publish(GatewayEvent(.reloaded)) }
            let id = try await self.open(cluster, "b")[0]
            let bus = try #require(cluster.node("a").gateway.cluster)
            var request = EventRequest()
            (request.position, request.query) = (start, "type=opened&connection=\(id.prefix { $0 != "@" })")
            let batch = EventBatch(try await bus.call("b", .events, request.encoded, timeout: .seconds(240)))
            #expect(batch?.items.map(\.type) == ["opened"])
        }
    }

    @Test func quietStreamSendsHeartbeats() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let exchange = try await self.follow(cluster.node("a"), "heartbeatMs=10")
            defer { exchange.close() }
            for _ in 0..<3 { #expect(!(try await exchange.receive(through: ":\n\n").contains("data:"))) }
        }
    }

    @Test func quietStreamEndsAfterItsDuration() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let found = try await self.events(cluster.node("a"), "durationMs=50")
            #expect(found.events.isEmpty)
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

    @Test func positionOfAGatewayWithoutOtherNodesIsReadBack() throws {
        let position = try #require(EventPosition("5b1c8fa0.17", own: "a"))
        #expect(position.nodes == ["a": .init(17, "5b1c8fa0")] && position.others == 0)
        #expect(position.nodes["a"]?.text == "5b1c8fa0.17")
    }

    @Test(arguments: [
        "", "x", ".17", "5b1c8fa0.", "5b1c8fa0.x", "a.b.17", "A.17", "g.17", "5b.17@a", "17,5", "17@a,5", "17@",
        "17@a/",
    ])
    func invalidPositionIsRefused(_ text: String) {
        #expect(EventPosition(text, own: "a") == nil)
    }

    @Test func batchAndRequestAreReadBack() {
        var batch = EventBatch(instance: "7f", position: .max)
        batch.items = [.init(number: 17, type: "gap", text: Array(#"{"a":"\n"}"#.utf8))]
        #expect(EventBatch(batch.encoded) == batch)
        batch.isImmediate = true
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
            let answer = try await bus.call("b", .events, request.encoded, timeout: .seconds(240))
            let batch = try #require(EventBatch(answer))
            #expect(batch.items.map(\.type).first == "gap" && batch.items.count > 1)
        }
    }
}
