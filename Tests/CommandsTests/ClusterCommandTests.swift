import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Commands in a cluster", .timeLimit(.minutes(5)))
struct ClusterCommandTests {
    private func run(_ gateway: LoopbackGateway, _ words: String...) async -> CommandRun {
        await CommandHost().run(words + ["--control", gateway.control])
    }

    @Test func listsShowTheNodes() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let ada = try await RoomProbe(a, user: "ada", in: "kept:a")
            let bob = try await RoomProbe(b, user: "ada", in: "kept:a")
            let ids = await self.run(a, "ls", "--direction", "opened").lines.dropFirst().map {
                $0.split(separator: " ")[0]
            }
            #expect(ids.map(String.init) == [ada.id, bob.id])
            let some = await self.run(a, "ls", "--direction", "opened", "--node", "b").lines
            #expect(some.count == 2 && some[1].contains(bob.id))
            #expect(await self.run(a, "show", bob.id).output.contains("open"))
            let rooms = await self.run(b, "rooms").lines
            #expect(rooms.count == 2 && rooms[1].hasPrefix("kept:a"))
            #expect(await self.run(b, "rooms", "kept:a").output.contains("nodes         1 on a, 1 on b"))
            #expect(await self.run(b, "rooms", "kept:a", "--members").output.contains("@a"))
            #expect(await self.run(b, "users", "ada").output.contains("@a, client \(ada.client)"))
            let users = await self.run(b, "users").lines
            #expect(users.count == 2 && users[1].contains("a, b"), "\(users)")
            let events = await self.run(b, "events", "--after", "0", "--type", "opened", "--node", "a", "--count", "1")
            #expect(events.code == 0 && events.output.contains("@a"), "\(events.output)\(events.errors)")
            #expect(await self.run(a, "close", bob.id).code == 0)
        }
    }

    @Test func eventsGoOnAfterThePositionOfAnEarlierRun() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            func opened(_ node: LoopbackGateway, after position: String, _ count: Int) async throws -> [JSONValue] {
                let run = await self.run(
                    node, "events", "--json", "--type", "opened", "--after", position, "--count", "\(count)")
                #expect(run.code == 0, "\(run.errors)")
                return try run.documents
            }
            for node in [a, b, b] { _ = try await node.open(node.raw) }
            // Both ends of each connection are connections of the node.
            let first = try await opened(a, after: "0", 4)
            for node in [b, a] { _ = try await node.open(node.raw) }
            let rest = try await opened(b, after: first.last?["position"]?.string ?? "", 6)
            let ids = (first + rest).compactMap { $0["connection"]?.string }
            #expect(ids.count == 10 && Set(ids).count == 10)
        }
    }

    @Test func nodesAreListed() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let run = await self.run(try cluster.node("b"), "nodes")
            #expect(run.code == 0 && run.lines.count == 3 && run.lines[0].hasPrefix("NODE"), "\(run.errors)")
            #expect(run.lines[1].hasPrefix("a ") && run.lines[2].hasPrefix("b * "))
            let names = try await self.run(try cluster.node("b"), "nodes", "--json").documents[0]["items"]?.items
            #expect(names?.map { $0["name"]?.string } == ["a", "b"])
        }
        try await LoopbackGateway.run { gateway in
            let alone = await self.run(gateway, "nodes")
            #expect(alone.code == 81 && alone.errors.contains("not a node of a cluster"), "\(alone.errors)")
        }
    }

    @Test func nodeThatDoesNotAnswerIsNoted() async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.gatherTimeout = .milliseconds(200) }) { cluster in
            cluster.network.setSilent("b", true)
            let run = await self.run(try cluster.node("a"), "ls")
            let note = "sluice: nodes that did not answer, whose entries are missing: b\n"
            #expect(run.code == 0 && run.errors == note)
            let host = CommandHost()
            let words = ["ls", "--watch", "--interval", "100ms", "--control", try cluster.node("a").control]
            async let watched = host.run(words)
            try await cluster.node("a").wait { host.errors.contains(note) }
            host.interrupt()
            #expect(await watched.code == 0)
        }
    }

    @Test(arguments: ["attach", "tap"])
    func connectionOfAnotherNodeIsReachedAtItsOwnControlPlane(_ command: String) async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let b = try cluster.node("b")
            let id = try await b.open(b.echo)
            let run = await self.run(try cluster.node("a"), command, id)
            #expect(run.code == 81 && run.errors.contains("the node b"), "\(run.errors)")
            #expect(run.errors.contains("give that node's control plane with --control"))
        }
    }

    @Test func nodesAreDrained() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for node in [a, b] { _ = try await node.open(node.raw) }
            let preview = await self.run(a, "drain", "--all", "--all-nodes", "--preview")
            #expect(preview.output.hasPrefix("4 connections"), "\(preview.errors)")
            let one = await self.run(a, "drain", "--direction", "opened", "--node", "b")
            #expect(one.code == 0 && one.lines.last?.hasPrefix("drain 1@b ended: 1 of 1") == true, "\(one.errors)")
            _ = try await b.open(b.raw)
            let all = await self.run(a, "drain", "--direction", "opened", "--all-nodes", "--one-by-one")
            let ended = all.lines.filter { $0.contains(" ended: ") }.map { $0.prefix { $0 != ":" } }
            #expect(ended == ["drain 1@a ended", "drain 2@b ended"], "\(all.output)\(all.errors)")
            let none = await self.run(a, "drain", "--direction", "opened", "--all-nodes")
            #expect(none.lines.count { $0.contains(" ended: 0 of 0") } == 2, "\(none.output)")
        }
    }

    @Test(arguments: [
        (["--all-nodes", "--node", "b"], "--all-nodes: cannot be combined with --node"),
        (["--all-nodes", "--one-by-one", "--background"], "--one-by-one: cannot be combined with --background"),
        (["--one-by-one"], "--one-by-one: requires --all-nodes or several --node"),
    ])
    func invalidOptionsAreRefused(_ words: [String], _ error: String) async {
        let run = await CommandHost().run(["drain", "--all"] + words)
        #expect(run.code == 64 && run.errors.hasPrefix(error), "\(run.errors)")
    }
}
