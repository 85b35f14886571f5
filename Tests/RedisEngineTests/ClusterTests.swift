import RedisEngine
import Testing

@Suite("Slots of Redis Cluster")
struct ClusterTests {
    private static let first = RedisEndpoint(host: "127.0.0.1", port: 51251)
    private static let second = RedisEndpoint(host: "127.0.0.1", port: 44959)
    private static let asked = RedisEndpoint(host: "asked", port: 7000)

    /// Said by redis-server 7.0.15 with `CLUSTER KEYSLOT`; 12739 is also the check value of CRC-16/XMODEM, 0x31C3.
    @Test(arguments: [
        ("foo", 12182), ("bar", 5061), ("123456789", 12739), ("foo{}{bar}", 8363), ("{user1000}.following", 3443),
        ("foo{{bar}}zap", 4015), ("foo{bar}{zap}", 5061), ("", 0), ("{}x", 10595),
    ])
    func keysHaveTheSlotsThatAServerSays(_ key: String, _ slot: Int) {
        #expect(RedisKeySlot.of(key) == slot)
        #expect(RedisKeySlot.of(Array(key.utf8)[...]) == slot)
    }

    @Test func keysWithTheSameTagShareASlot() {
        #expect(RedisKeySlot.of("room:{lobby}:history") == RedisKeySlot.of("presence:{lobby}"))
        #expect(RedisKeySlot.of("{lobby") != RedisKeySlot.of("lobby"))
        #expect(RedisKeySlot.of("a}b{lobby}") == RedisKeySlot.of("lobby"))
    }

    private static func map(_ reply: RecordedReply, _ isShards: Bool) throws -> RedisSlotMap {
        let value = try #require(Readings.of([reply.bytes]).values.first)
        guard isShards else { return try RedisSlotMap(slots: value, asked: self.asked) }
        return try RedisSlotMap(shards: value, asked: self.asked)
    }

    @Test(arguments: [
        (RecordedReply.shards, true), (.shardsRESP2, true), (.slots, false), (.slotsRESP2, false),
    ])
    func repliesOfBothCommandsAndProtocolsGiveTheMap(_ reply: RecordedReply, _ isShards: Bool) throws {
        let map = try Self.map(reply, isShards)
        #expect(Set(map.nodes) == [Self.first, Self.second])
        #expect(map.node(of: 0) == Self.first && map.node(of: 8191) == Self.first)
        #expect(map.node(of: 8192) == Self.second && map.node(of: 16383) == Self.second)
        #expect(map.node(of: -1) == nil && map.node(of: 16384) == nil)
        #expect(map.node(ofKey: Array("foo".utf8)) == Self.second)
        #expect(!map.isStale)
    }

    @Test func emptyMapIsStale() throws {
        #expect(RedisSlotMap().isStale)
        #expect(RedisSlotMap().node(of: 0) == nil)
        let map = try RedisSlotMap(slots: .array([]), asked: Self.asked)
        #expect(map.isStale && map.nodes.isEmpty)
    }

    private static func slots(_ first: Int64, _ last: Int64, _ host: RedisValue, _ port: Int64 = 1) -> RedisValue {
        .array([.array([.number(first), .number(last), .array([host, .number(port), .blob("id")])])])
    }

    @Test(arguments: [RedisValue.null, .blob(""), .blob("?")])
    func unknownHostIsThatOfTheNodeThatWasAsked(_ host: RedisValue) throws {
        let map = try RedisSlotMap(slots: Self.slots(0, 16383, host), asked: Self.asked)
        #expect(map.nodes == [RedisEndpoint(host: "asked", port: 1)])
    }

    @Test func portForTLSIsUsedWithTLS() throws {
        let reply = RedisValue.array([
            .map([
                .init(.blob("slots"), .array([.number(0), .number(16383)])),
                .init(
                    .blob("nodes"),
                    .array([
                        .map([
                            .init(.blob("role"), .blob("replica")), .init(.blob("port"), .number(9)),
                        ]),
                        .map([
                            .init(.blob("role"), .blob("master")), .init(.blob("port"), .number(1)),
                            .init(.blob("tls-port"), .number(2)), .init(.blob("endpoint"), .blob("?")),
                            .init(.blob("ip"), .blob("10.0.0.1")),
                        ]),
                    ])),
            ])
        ])
        #expect(try RedisSlotMap(shards: reply, asked: Self.asked).nodes == [RedisEndpoint(host: "10.0.0.1", port: 1)])
        let withTLS = try RedisSlotMap(shards: reply, asked: Self.asked, usesTLS: true)
        #expect(withTLS.nodes == [RedisEndpoint(host: "10.0.0.1", port: 2)])
    }

    @Test func repliesOutOfRangeAreProblems() {
        func problem(_ reply: RedisValue) -> RedisSlotMap.Problem? {
            do {
                _ = try RedisSlotMap(slots: reply, asked: Self.asked)
                return nil
            } catch {
                return error
            }
        }
        #expect(problem(Self.slots(-1, 5, .blob("a"))) == .slotOutOfRange(-1))
        #expect(problem(Self.slots(0, 16384, .blob("a"))) == .slotOutOfRange(16384))
        #expect(problem(Self.slots(7, 6, .blob("a"))) == .slotOutOfRange(6))
        #expect(problem(Self.slots(.min, .max, .blob("a"))) == .slotOutOfRange(.min))
        #expect(problem(Self.slots(0, 1, .blob("a"), 0)) == .portOutOfRange(0))
        #expect(problem(Self.slots(0, 1, .blob("a"), 65536)) == .portOutOfRange(65536))
        for reply in [RedisValue.null, .array([.number(1)]), .error("ERR no")] {
            guard case .mismatch = problem(reply) else {
                Issue.record("\(reply) is accepted")
                continue
            }
        }
    }

    @Test func nodesOfAMapAreLimited() throws {
        var map = RedisSlotMap()
        for number in 0..<RedisSlotMap.maximumNodes {
            try map.moved(slot: number, to: RedisEndpoint(host: "h", port: number + 1))
        }
        #expect(throws: RedisSlotMap.Problem.tooManyNodes(limit: RedisSlotMap.maximumNodes)) {
            try map.moved(slot: 0, to: RedisEndpoint(host: "h", port: 60000))
        }
        try map.moved(slot: 0, to: RedisEndpoint(host: "h", port: 7))
        #expect(map.node(of: 0)?.port == 7)
    }

    // MARK: Redirections

    @Test func movedSlotIsFollowedAndRemembered() throws {
        var map = try Self.map(.slots, false)
        var redirects = RedisClusterRedirects()
        let target = RedisEndpoint(host: "127.0.0.1", port: 6381)
        let action = redirects.replied(.error("MOVED 12182 127.0.0.1:6381"), from: Self.first, map: &map)
        #expect(action == .resend(to: target, isAsking: false))
        #expect(map.node(of: 12182) == target && map.node(of: 12181) == Self.second)
        #expect(map.isStale)
        #expect(redirects.replied(.null, from: target, map: &map) == .deliver)
        // A node that does not know its own host means the one that answered.
        let nameless = redirects.replied(.error("MOVED 1 :9"), from: Self.first, map: &map)
        #expect(nameless == .resend(to: RedisEndpoint(host: "127.0.0.1", port: 9), isAsking: false))
    }

    @Test func circleOfMovesEnds() {
        var map = RedisSlotMap()
        var redirects = RedisClusterRedirects()
        let moved = RedisValue.error("MOVED 1 a:1")
        for _ in 0..<RedisClusterRedirects.maximumMoves {
            #expect(redirects.replied(moved, from: Self.first, map: &map) != .deliver)
        }
        #expect(redirects.replied(moved, from: Self.first, map: &map) == .deliver)
    }

    @Test func askIsFollowedOnceAndNotRemembered() throws {
        var map = try Self.map(.slots, false)
        let before = map
        var redirects = RedisClusterRedirects()
        let ask = RedisValue.error("ASK 5061 127.0.0.1:44959")
        #expect(redirects.replied(ask, from: Self.first, map: &map) == .resend(to: Self.second, isAsking: true))
        #expect(map == before)
        #expect(redirects.replied(ask, from: Self.second, map: &map) == .deliver)
    }

    @Test func askIsFollowedAgainAfterEachPauseOfAMigration() {
        var map = RedisSlotMap()
        var redirects = RedisClusterRedirects()
        let ask = RedisValue.error("ASK 5061 127.0.0.1:44959")
        var pauses: [RedisClusterRedirects.Action] = []
        for _ in 0..<20 {
            #expect(redirects.replied(ask, from: Self.first, map: &map) == .resend(to: Self.second, isAsking: true))
            pauses.append(redirects.replied(.error("TRYAGAIN no"), from: Self.second, map: &map))
        }
        let expected = [50, 100, 200] + Array(repeating: 400, count: 17)
        #expect(pauses == expected.map { .retry(after: .milliseconds($0)) })
    }

    @Test(arguments: ["CLUSTERDOWN no", "LOADING no", "MASTERDOWN no"])
    func passingFaultsAreRetriedWithLongerPauses(_ text: String) {
        var map = RedisSlotMap()
        var redirects = RedisClusterRedirects()
        let pauses = (0...RedisClusterRedirects.maximumPauses).map { _ in
            redirects.replied(.error(text), from: Self.first, map: &map)
        }
        #expect(pauses == [50, 100, 200, 400, 800].map { .retry(after: .milliseconds($0)) } + [.deliver])
    }

    @Test(arguments: ["CROSSSLOT no", "READONLY no", "OOM no", "ERR no", "NOSCRIPT no", "WRONGTYPE no", "X"])
    func otherErrorsAreTheResult(_ text: String) {
        var map = RedisSlotMap()
        var redirects = RedisClusterRedirects()
        #expect(redirects.replied(.error(text), from: Self.first, map: &map) == .deliver)
    }
}
