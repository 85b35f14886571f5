import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Bans and mutes of a cluster", .timeLimit(.minutes(5)))
struct ClusterRestrictionTests {
    private static let configuration = RoomProbe.configuration.replacing("%KEYS%", with: "")

    private func items(_ gateway: LoopbackGateway, _ room: String = "kept%3Aa") async throws -> [String] {
        let items = try await gateway.get("/v1/rooms/\(room)/restrictions").json["items"]?.items ?? []
        return items.map { "\($0["kind"]?.string ?? "") \($0["user"]?.string ?? "")" }
    }

    @Test func bannedUserLeavesAndStaysOutOnAllNodes() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let ada = try await RoomProbe(b, user: "ada", in: "kept:a", "plain")
            let ban = try await a.post("/v1/rooms/kept%3Aa:ban", #"{"user":"ada"}"#)
            #expect(ban.json["items"]?.items.count == 1)
            #expect(try await ada.receive()["push"]?["unsubscribe"]?["code"]?.integer == 2000)
            let enter = #"{"id":7,"subscribe":{"channel":"kept:a"}}"#
            #expect(try await ada.command(enter)["error"]?["code"]?.integer == 103)
            #expect(try await self.items(b) == ["ban ada"])
            #expect(try await b.post("/v1/rooms/kept%3Aa:unban", #"{"user":"ada"}"#).status == 204)
            #expect(try await self.items(a) == [])
            #expect(try await ada.command(enter)["subscribe"] != nil)
            #expect(try await a.post("/v1/rooms/kept%3Aa:unban", #"{"user":"ada"}"#).status == 404)
            _ = try await a.post("/v1/users/ada:ban")
            let left = [try await ada.receiveText(), try await ada.receiveText()].joined()
            #expect(left.contains("kept:a") && left.contains("plain"))
        }
    }

    @Test func nodeThatMissedAChangeGetsIt() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            _ = try await a.post("/v1/rooms/kept%3Aa:mute", #"{"user":"ada"}"#)
            _ = try await a.post("/v1/rooms/kept%3Aa:ban", #"{"user":"bob"}"#)
            cluster.network.setSilent("b", true)
            #expect(try await a.post("/v1/rooms/kept%3Aa:unmute", #"{"user":"ada"}"#).status == 204)
            _ = try await a.post("/v1/rooms/kept%3Aa:mute", #"{"user":"eve"}"#)
            #expect(try await self.items(b) == ["mute ada", "ban bob"])
            cluster.network.setSilent("b", false)
            // Comparing with a node that knows less takes nothing back.
            #expect(await a.gateway.cluster?.compareRestrictions() == true)
            #expect(try await self.items(a) == ["ban bob", "mute eve"])
            #expect(await b.gateway.cluster?.compareRestrictions() == true)
            #expect(try await self.items(b) == ["ban bob", "mute eve"])
            cluster.network.setSilent("a", true)
            cluster.network.isAway = true
            #expect(await b.gateway.cluster?.compareRestrictions() == false)
        }
    }

    @Test func startingNodeAsksForThePresentRestrictions() async throws {
        let network = InProcessNetwork()
        try await LoopbackGateway.run(Self.configuration, bus: network.bus("a")) { a async throws in
            for number in 0..<3000 {
                let isAdded = await a.gateway.cluster?.restrict(
                    .mute, user: "user \(number) \(String(repeating: "x", count: 100))", in: "kept:a",
                    for: .seconds(600))
                #expect(isAdded == true)
            }
            try await LoopbackGateway.run(Self.configuration, bus: network.bus("b")) { b in
                try await b.wait { b.gateway.rooms.restrictions.count == 3000 }
            }
        }
    }

    // MARK: Kept by the server that connects the nodes

    private static func names(_ gateway: LoopbackGateway) -> [String] {
        gateway.gateway.rooms.restrictions.map { "\($0.entry.kind.rawValue) \($0.entry.user)" }
    }

    @Test func nodeThatStartsWithoutOthersObeysWhatTheyLeft() async throws {
        let network = InProcessNetwork()
        try await LoopbackGateway.run(Self.configuration, bus: network.bus("a")) { a in
            for (path, user) in [("ban", "ada"), ("mute", "bob"), ("ban", "eve"), ("unban", "eve")] {
                let reply = try await a.post("/v1/rooms/kept%3Aa:\(path)", #"{"user":"\#(user)"}"#)
                #expect(reply.status < 300)
            }
        }
        network.remove("a")
        try await LoopbackGateway.run(Self.configuration, bus: network.bus("b")) { b in
            try await b.wait { Self.names(b) == ["ban ada", "mute bob"] }
        }
    }

    @Test func changesAreKeptWhenTheServerIsReachedAgain() async throws {
        try await LoopbackCluster.run(["a"], Self.configuration) { cluster in
            let (a, network) = (try cluster.node("a"), cluster.network)
            _ = try await a.post("/v1/rooms/kept%3Aa:ban", #"{"user":"ada"}"#)
            #expect(network.keptCount == 1)
            network.isAway = true
            network.forgetKept()
            #expect(try await a.post("/v1/rooms/kept%3Aa:mute", #"{"user":"bob"}"#).status == 200)
            // What the node knows holds.
            #expect(Self.names(a) == ["ban ada", "mute bob"] && network.keptCount == 0)
            network.isAway = false
            try await a.wait { network.keptCount == 2 }
        }
    }

    // MARK: Changes

    private let entry = Moderation.Entry(kind: .ban, user: "ada", room: "a")

    private func change(_ at: Int64, ends: Int64 = 10_000, isLifted: Bool = false) -> RestrictionChange {
        RestrictionChange(self.entry, changedAt: at, endsAt: ends, isLifted: isLifted)
    }

    @Test func changesAreReadBack() throws {
        let changes = [
            self.change(1), self.change(2, isLifted: true),
            RestrictionChange(
                Moderation.Entry(kind: .mute, user: "a\"\n\\é", room: nil), changedAt: 3, endsAt: .max),
        ]
        let decoded = try #require(RestrictionChange.decoded(RestrictionChange.encoded(changes, next: 7)))
        #expect(decoded.changes == changes && decoded.next == 7)
    }

    @Test(arguments: [
        #"{"kind":"kick","user":"a","changed":1,"ends":2}"#, #"{"kind":"ban","user":"","changed":1,"ends":2}"#, "{}",
        #"{"kind":"ban","user":"\#(String(repeating: "x", count: 1025))","changed":1,"ends":2}"#,
    ])
    func changeThatNoNodeMakesIsLeftOut(_ text: String) throws {
        let decoded = try #require(RestrictionChange.decoded(Array(#"{"changes":[\#(text)]}"#.utf8)))
        #expect(decoded.changes == [])
    }

    @Test(arguments: ["", "x", "[]", #"{"changes":7}"#, #"{"changes":[{"changed":1e99}]}"#, "{}x"])
    func malformedChangesAreRefused(_ text: String) {
        #expect(RestrictionChange.decoded(Array(text.utf8)) == nil)
    }

    /// Whatever the order in which a node gets the changes, all nodes know the same in the end.
    @Test func laterChangeHoldsInEveryOrder() {
        let changes = [self.change(1), self.change(3), self.change(3, isLifted: true), self.change(2, ends: 20_000)]
        var digests: Set<UInt64> = []
        for first in changes.indices {
            for second in changes.indices {
                var replica = RestrictionReplica()
                let order = [changes[first], changes[second]] + changes
                for change in order { _ = replica.apply(change, now: 0) }
                #expect(replica[self.entry] == self.change(3, isLifted: true))
                digests.insert(replica.digest(now: 0))
            }
        }
        #expect(digests.count == 1)
    }

    @Test func endedAndFutureChangesAreRefused() {
        var replica = RestrictionReplica()
        let results = [
            replica.apply(self.change(1), now: 10_000), replica.apply(self.change(.max, ends: .max), now: 0),
            replica.apply(self.change(1), now: 9_999),
        ]
        #expect(results == [false, false, true])
        let digests = [replica.digest(now: 9_999), replica.digest(now: 10_000)]
        #expect(digests[0] != 0 && digests[1] == 0 && replica.all == [])
    }

    /// The node that made it had a clock two hours ahead, and now has the right time.
    @Test func changeOfAClockThatWasAheadIsReplaced() {
        let (ahead, now): (Int64, Int64) = (7_200_000, 5)
        var replica = RestrictionReplica()
        let changes = [
            (self.change(ahead, ends: 9_000_000), ahead, now), (self.change(now, ends: 9_000_000), now, now + 1),
            // A clock that is a little ahead decides, as all nodes accept it.
            (self.change(now + 1000), now, now + 1001),
        ]
        for (change, time, next) in changes {
            let isNew = replica.apply(change, now: time)
            #expect(isNew && replica.timeOfChange(of: self.entry, now: now) == next)
        }
        let isRepeated = replica.apply(self.change(now), now: now)
        #expect(!isRepeated)
    }

    @Test func replicaIsBounded() {
        var replica = RestrictionReplica()
        for number in 0..<Moderation.limit {
            let entry = Moderation.Entry(kind: .ban, user: "\(number)", room: nil)
            let change = RestrictionChange(entry, changedAt: 1, endsAt: number == 0 ? 10 : 100)
            guard replica.apply(change, now: 0) else {
                Issue.record("\(number)")
                return
            }
        }
        let results = [
            replica.apply(self.change(1), now: 0), replica.apply(self.change(1), now: 10),
            replica.apply(self.change(1).with(user: "other"), now: 10),
        ]
        #expect(results == [false, true, false])
    }
}

extension RestrictionChange {
    fileprivate func with(user: String) -> RestrictionChange {
        var change = self
        change.entry = Moderation.Entry(kind: self.entry.kind, user: user, room: self.entry.room)
        return change
    }
}
