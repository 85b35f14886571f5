import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Lists of a cluster", .timeLimit(.minutes(5)))
struct ClusterListTests {
    private func items(_ reply: HTTPReply, _ member: String) -> [String] {
        (reply.json["items"]?.items ?? []).compactMap { $0[member]?.string }
    }

    /// All pages of a list.
    private func pages(_ gateway: LoopbackGateway, _ target: String) async throws -> [HTTPReply] {
        var (pages, next) = ([HTTPReply](), Optional(target))
        while let current = next {
            pages.append(try await gateway.get(current))
            next = pages.last?.json["next"]?.string
        }
        return pages
    }

    // MARK: Connections

    @Test func everyNodeListsTheConnectionsOfAll() async throws {
        try await LoopbackCluster.run { cluster in
            var opened: [String] = []
            for name in ["a", "b", "c"] {
                let node = try cluster.node(name)
                opened += [try await node.open(node.raw), try await node.open(node.raw)]
            }
            #expect(opened.allSatisfy { $0.wholeMatch(of: /[0-9]+@[abc]/) != nil })
            for name in ["a", "b", "c"] {
                let reply = try await cluster.node(name).get("/v1/connections?direction=opened")
                #expect(self.items(reply, "id") == opened)
                #expect(self.items(reply, "node") == ["a", "a", "b", "b", "c", "c"])
                #expect(reply.json["unreachable"] == nil)
            }
            let some = try await cluster.node("a").get("/v1/connections?node=b,c&direction=opened&fields=id")
            #expect(self.items(some, "id") == Array(opened[2...]))
            let ids = try await cluster.node("a").get("/v1/connections?id=\(opened[0]),\(opened[5])")
            #expect(self.items(ids, "id") == [opened[0], opened[5]])
        }
    }

    @Test(arguments: ["", "&sort=-id", "&sort=age", "&sort=-receivedBytes"])
    func pagesListEachConnectionOnce(_ order: String) async throws {
        try await LoopbackCluster.run { cluster in
            var opened: Set<String> = []
            for name in ["a", "b", "c", "b", "a", "c", "b"] {
                let node = try cluster.node(name)
                opened.insert(try await node.open(node.raw))
            }
            let pages = try await self.pages(cluster.node("b"), "/v1/connections?direction=opened&limit=2\(order)")
            let found = pages.flatMap { self.items($0, "id") }
            #expect(Set(found) == opened && found.count == opened.count)
            #expect(pages.allSatisfy { ($0.json["items"]?.items.count ?? 0) <= 2 })
        }
    }

    @Test func sortedListIsMergedByValue() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            var ids: [String] = []
            for (index, node) in [a, b, a, b].enumerated() {
                ids.append(try await node.open(node.echo))
                let text = String(repeating: "x", count: 10 - index)
                _ = try await node.post("/v1/connections/\(ids[index]):send", #"{"text":"\#(text)"}"#)
                _ = try await node.post("/v1/connections/\(ids[index]):receive")
            }
            let most = try await self.pages(a, "/v1/connections?direction=opened&sort=-receivedBytes&limit=3")
            #expect(most.flatMap { self.items($0, "id") } == ids)
            let least = try await self.pages(b, "/v1/connections?direction=opened&sort=receivedBytes&limit=1")
            #expect(least.flatMap { self.items($0, "id") } == ids.reversed())
        }
    }

    @Test func pagesGoOnWhileConnectionsComeAndGo() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            var ids: [String] = []
            for node in [a, a, a, b, b, b] { ids.append(try await node.open(node.raw)) }
            let first = try await a.get("/v1/connections?direction=opened&limit=2")
            #expect(self.items(first, "id") == Array(ids[..<2]))
            for id in [ids[0], ids[3]] {
                let path = "/v1/connections/\(id)?abort=true"
                #expect(try await b.request("DELETE", path, fields: ["Prefer": "wait=60"]).status == 200)
            }
            let late = try await b.open(b.raw)
            // A cursor is valid on every node.
            let rest = try await self.pages(b, try #require(first.json["next"]?.string))
            #expect(rest.flatMap { self.items($0, "id") } == [ids[2], ids[4], ids[5], late])
        }
    }

    @Test(arguments: ["", "&sort=-age"])
    func nodeThatDoesNotAnswerIsNamed(_ order: String) async throws {
        try await LoopbackCluster.run { cluster in
            let (a, c) = (try cluster.node("a"), try cluster.node("c"))
            let ids = [try await a.open(a.raw), try await c.open(c.raw)]
            cluster.network.setSilent("b", true)
            let reply = try await a.get("/v1/connections?direction=opened\(order)")
            // Each node takes the ages when it is asked: those of connections opened one after another may be in any order.
            #expect(reply.status == 200 && Set(self.items(reply, "id")) == Set(ids))
            #expect(reply.json["items"]?.items.count == 2 && reply.json["unreachable"] == ["b"])
            cluster.network.isAway = true
            let alone = try await a.get("/v1/connections?direction=opened\(order)")
            #expect(self.items(alone, "id") == [ids[0]] && alone.json["unreachable"] == ["b", "c"])
        }
    }

    /// As a server that stands still, which loses no connection: the nodes' names come after the list, or never.
    @Test(arguments: ["/v1/connections", "/v1/rooms", "/v1/users", "/v1/drains"])
    func listDoesNotWaitForTheNamesOfTheNodes(_ path: String) async throws {
        try await LoopbackCluster.run(["a", "b"], limits: { $0.lookupTimeout = .milliseconds(20) }) { cluster in
            let a = try cluster.node("a")
            // The names that it knows from now on.
            try await a.wait { try await a.get("/v1/nodes").json["items"]?.items.count == 2 }
            cluster.network.setFrozen(true)
            defer { cluster.network.setFrozen(false) }
            cluster.network.setSilent("b", true)
            let reply = try await a.get(path)
            #expect(reply.status == 200, "\(reply.text)")
            if path != "/v1/drains" { #expect(reply.json["unreachable"] == ["b"]) }
        }
    }

    @Test(arguments: [
        ("node=x", "404 unknown-node"), ("cursor=x", "400 invalid-cursor cursor"),
        ("cursor=a17", "400 invalid-cursor cursor"), ("cursor=mb%3A", "400 invalid-cursor cursor"),
        ("cursor=nb%3Aa0", "400 invalid-cursor cursor"), ("sort=x", "400 invalid-parameter sort"),
        ("id=x%40b", "400 invalid-parameter id"), ("limit=0", "400 invalid-parameter limit"),
        ("fields=x", "400 invalid-parameter fields"), ("kind=x", "400 invalid-parameter kind"),
        ("sort=age&cursor=mb%3Akff.1", "410 cursor-expired cursor"),
    ])
    func invalidListIsRefused(_ query: String, _ problem: String) async throws {
        try await LoopbackCluster.run(["b"]) { cluster in
            let reply = try await cluster.node("b").get("/v1/connections?\(query)")
            #expect(reply.problem == problem)
        }
    }

    @Test func expiredCursorOfAnotherNodeIsRefused() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let reply = try await cluster.node("a").get("/v1/connections?sort=age&cursor=mb%3Akff.1")
            #expect(reply.problem == "410 cursor-expired cursor")
        }
    }

    @Test func partOfALongListFitsIntoOneMessage() async throws {
        try await LoopbackCluster.run(["a", "b"]) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let text = String(repeating: "x", count: 250)
            let labels = (0..<60).map { #""l\#($0)":"\#(text)""# }.joined(separator: ",")
            var ids: [String] = []
            for _ in 0..<60 { ids.append(try await b.open(b.raw, more: #","labels":{\#(labels)}"#)) }
            let pages = try await self.pages(a, "/v1/connections?direction=opened")
            #expect(pages.count == 2)
            #expect(pages.flatMap { self.items($0, "id") } == ids)
            #expect(pages.allSatisfy { $0.json["unreachable"] == nil })
        }
    }

    // MARK: Rooms and users

    @Test func roomsOfOneNameAreOneRoom() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let ada = try await RoomProbe(a, user: "ada", in: "kept:a", "plain")
            let bob = try await RoomProbe(b, user: "bob", in: "kept:a")
            _ = try await b.post("/v1/rooms/kept%3Aa:publish", #"{"data":1}"#)
            let reply = try await a.get("/v1/rooms")
            #expect(self.items(reply, "name") == ["kept:a", "plain"])
            let room = try #require(reply.json["items"]?.items.first)
            #expect(room["members"]?.integer == 2 && room["offset"]?.integer == 1 && room["nodes"] == nil)
            let single = try await a.get("/v1/rooms/kept%3Aa").json
            #expect(single["members"]?.integer == 2 && single["publications"]?.integer == 1)
            #expect(single["nodes"] == JSONValue(text: #"[{"node":"a","members":1},{"node":"b","members":1}]"#))
            #expect(self.items(try await a.get("/v1/rooms?minMembers=2"), "name") == ["kept:a"])
            #expect(self.items(try await a.get("/v1/rooms?node=b"), "name") == ["kept:a"])
            let members = try await self.pages(b, "/v1/rooms/kept%3Aa/members?limit=1")
            #expect(members.flatMap { self.items($0, "client") } == [ada.client, bob.client])
            #expect(members.flatMap { self.items($0, "node") } == ["a", "b"])
            let id = try #require(members.flatMap { self.items($0, "connection") }.first)
            #expect(try await b.get("/v1/connections/\(id)").json["route"]?.string == "rooms")
            for target in ["/v1/rooms/kept%3Anone", "/v1/rooms/kept%3Anone/members"] {
                #expect(try await a.get(target).problem == "404 unknown-room")
            }
        }
    }

    @Test func pagesOfRoomsListEachRoomOnce() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for name in ["plain1", "plain3", "plain4", "plain6"] { _ = try await RoomProbe(a, in: name) }
            for name in ["plain2", "plain3", "plain5", "plain6"] { _ = try await RoomProbe(b, in: name) }
            let all = (1...6).map { "plain\($0)" }
            for limit in 1...4 {
                let pages = try await self.pages(a, "/v1/rooms?limit=\(limit)")
                #expect(pages.flatMap { self.items($0, "name") } == all)
            }
            let crowded = try await self.pages(b, "/v1/rooms?limit=1&minMembers=2")
            #expect(crowded.flatMap { self.items($0, "name") } == ["plain3", "plain6"])
        }
    }

    @Test func userOfSeveralNodesIsOneEntryOfTheListOfUsers() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            _ = try await RoomProbe(a, user: "ada", in: "kept:a", "plain")
            _ = try await RoomProbe(b, user: "ada", in: "plain", "plain2")
            _ = try await RoomProbe(b, user: "bob")
            for node in [a, b] {
                let items = try await node.get("/v1/users").json["items"]
                #expect(
                    items
                        == JSONValue(
                            text: """
                                [{"connectionCount":2,"hasMoreRooms":false,"id":"ada","nodes":["a","b"],\
                                "rooms":["kept:a","plain","plain2"]},\
                                {"connectionCount":1,"hasMoreRooms":false,"id":"bob","nodes":["b"],"rooms":[]}]
                                """))
            }
            let some = try await a.get("/v1/users?room=plain2&fields=connectionCount,nodes").json["items"]
            #expect(some == JSONValue(text: #"[{"connectionCount":1,"id":"ada","nodes":["b"]}]"#))
            #expect(self.items(try await b.get("/v1/users?node=a"), "id") == ["ada"])
            #expect(self.items(try await a.get("/v1/users?pattern=b*"), "id") == ["bob"])
            for query in ["limit=0", "fields=x", "limit=1001"] {
                let name = query.split(separator: "=")[0]
                #expect(try await a.get("/v1/users?node=b&\(query)").problem == "400 invalid-parameter \(name)")
            }
            #expect(try await a.get("/v1/users?node=x").problem == "404 unknown-node")
        }
    }

    @Test func pagesOfUsersListEachUserOnce() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for name in ["u1", "u3", "u4", "u6"] { _ = try await RoomProbe(a, user: name) }
            for name in ["u2", "u3", "u5", "u6"] { _ = try await RoomProbe(b, user: name) }
            for limit in 1...4 {
                let pages = try await self.pages(a, "/v1/users?limit=\(limit)")
                #expect(pages.flatMap { self.items($0, "id") } == (1...6).map { "u\($0)" })
                #expect(pages.allSatisfy { ($0.json["items"]?.items.count ?? 0) <= limit })
            }
        }
    }

    @Test func usersOfANodeThatDoesNotAnswerAreMissing() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            for (node, user) in [(a, "ada"), (b, "ada"), (b, "bob")] { _ = try await RoomProbe(node, user: user) }
            cluster.network.setSilent("b", true)
            let reply = try await a.get("/v1/users")
            #expect(reply.status == 200 && reply.json["unreachable"] == ["b"])
            #expect(self.items(reply, "id") == ["ada"])
            #expect(reply.json["items"]?.items.first?["connectionCount"]?.integer == 1)
        }
    }

    @Test func userHasConnectionsOnAllNodes() async throws {
        try await LoopbackCluster.run(["a", "b"], RoomProbe.configuration.replacing("%KEYS%", with: "")) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let probes = [try await RoomProbe(a, user: "ada", in: "plain"), try await RoomProbe(b, user: "ada")]
            let user = try await b.get("/v1/users/ada").json
            #expect(user["connectionCount"]?.integer == 2)
            let connections = user["connections"]?.items ?? []
            #expect(connections.map { $0["client"]?.string } == probes.map(\.client))
            #expect(connections.map { $0["node"]?.string } == ["a", "b"])
            #expect(try await a.post("/v1/users/ada:send", #"{"data":1}"#).json == ["clients": 2])
            for probe in probes { #expect(try await probe.receiveText().contains("message")) }
            #expect(try await a.post("/v1/users/ada:disconnect?node=b").json == ["clients": 1])
            #expect(try await probes[1].end() == "3503 force disconnect")
            #expect(try await b.post("/v1/rooms/plain:kick", #"{"user":"ada"}"#).json == ["clients": 1])
            #expect(try await b.post("/v1/rooms/plain:kick").problem == "404 unknown-room")
            #expect(try await b.get("/v1/users/nobody").problem == "404 unknown-user")
        }
    }
}
