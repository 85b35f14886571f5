import Cluster
import RedisEngine
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// Two nodes of a cluster on the simulated network: the first has the slots below `border`, the second the others, if there
/// are any.
private final class ClusterScene {
    let harness: RedisClientHarness
    let nodes: [ScriptedRedis]
    var border = 8192
    /// Outcomes of `set`, in their order.
    private(set) var results: [(value: String, result: Result<RedisValue, RedisClientError>)] = []

    init(knowsShards: Bool = true, settings: RedisClientSettings = RedisClientSettings()) throws {
        let testbed = TransportTestbed(.simulation)
        self.nodes = try (1...2).map { host in
            try ScriptedRedis(on: try testbed.makeHost(), at: .ipv4(address: 0x0A09_0000 | UInt32(host), port: 6379))
        }
        self.harness = try RedisClientHarness("redis+cluster://10.9.0.1,10.9.0.2", on: testbed, settings: settings)
        let nodes = self.nodes
        self.harness.serve = { for node in nodes { node.serve() } }
        for (index, node) in self.nodes.enumerated() {
            node.answer = { [unowned self] words in self.answer(words, by: index, knowsShards: knowsShards) }
        }
        let client = self.harness.client
        self.harness.act { client.start() }
    }

    func node(of key: String) -> Int { RedisKeySlot.of(key) < self.border ? 0 : 1 }

    private func answer(_ words: [String], by index: Int, knowsShards: Bool) -> String? {
        if words[0] == "CLUSTER" {
            if words[1] == "SHARDS", !knowsShards { return "-ERR unknown subcommand 'SHARDS'\r\n" }
            let ranges = [(0, self.border - 1), (self.border, 16383)].filter { $0.0 <= $0.1 }
            let shards = ranges.enumerated().map { number, range in
                let host = ScriptedRedis.blob("10.9.0.\(number + 1)")
                if words[1] == "SLOTS" {
                    return "*3\r\n:\(range.0)\r\n:\(range.1)\r\n*3\r\n\(host):6379\r\n$1\r\nx\r\n"
                }
                return "%2\r\n$5\r\nslots\r\n*2\r\n:\(range.0)\r\n:\(range.1)\r\n$5\r\nnodes\r\n*1\r\n%3\r\n"
                    + "$4\r\nrole\r\n$6\r\nmaster\r\n$4\r\nport\r\n:6379\r\n$8\r\nendpoint\r\n\(host)"
            }
            return "*\(shards.count)\r\n" + shards.joined()
        }
        guard ["GET", "SET", "SSUBSCRIBE"].contains(words[0]), self.node(of: words[1]) != index else { return nil }
        return "-MOVED \(RedisKeySlot.of(words[1])) 10.9.0.\(2 - index):6379\r\n"
    }

    /// The second node ends, and the first takes over.
    func loseSecondNode() {
        self.nodes[1].listener.close()
        for peer in self.nodes[1].connections { peer.reset() }
        self.border = 16384
    }

    func get(_ key: String) {
        self.harness.client.perform(RedisCommand("GET", .text(key)), key: Array(key.utf8)) { result in
            let text = result.text ?? "\(result)"
            self.harness.redisReceived(self.harness.client, Array(text.utf8), on: Array(key.utf8))
        }
    }

    /// Sets the values one after the other, without waiting.
    func set(_ key: String, to values: String...) {
        let client = self.harness.client
        self.harness.act {
            for value in values {
                client.perform(RedisCommand("SET", .text(key), .text(value)), key: Array(key.utf8)) { result in
                    self.results.append((value, result))
                }
            }
        }
    }

    /// Values that a node was asked to set, in their order.
    func values(at node: Int) -> [String] {
        self.nodes[node].calls.filter { $0.words[0] == "SET" }.map { $0.words[2] }
    }

    /// Has a node answer attempts to set a value with `text`, as often as `times` says.
    func answer(_ value: String, at node: Int, with text: String, times: Int = .max) {
        let answer = self.nodes[node].answer
        var rest = times
        self.nodes[node].answer = { words in
            guard rest > 0, words.count == 3, words[0] == "SET", words[2] == value else { return answer(words) }
            rest -= 1
            return text
        }
    }

    /// Sends what a node has not answered before, on the connection of the last value.
    func send(_ text: String, from node: Int) {
        guard let call = self.nodes[node].calls.last(where: { $0.words[0] == "SET" }) else { return }
        self.nodes[node].send(text, on: call.connection)
    }
}

@Suite("Redis client with Redis Cluster")
struct RedisClusterTests {
    @Test(arguments: [true, false])
    func commandsGoToTheNodeOfTheirSlot(_ knowsShards: Bool) throws {
        let scene = try ClusterScene(knowsShards: knowsShards)
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let keys = (0..<40).map { "key\($0)" }
        harness.act { for key in keys { scene.get(key) } }
        try #require(harness.run { keys.allSatisfy { harness.has(.received("OK", on: $0)) } })
        for (index, node) in scene.nodes.enumerated() {
            let asked = node.calls.filter { $0.words[0] == "GET" }.map { $0.words[1] }
            #expect(Set(asked) == Set(keys.filter { scene.node(of: $0) == index }))
        }
    }

    @Test func commandsAndChannelsFollowASlotThatMoves() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        harness.act { for index in 0..<40 { harness.client.subscribe(Array("key\(index)".utf8)) } }
        try #require(harness.run { (0..<40).allSatisfy { harness.has(.subscribed("key\($0)")) } })
        let moved = (0..<40).map { "key\($0)" }.filter { (4096..<8192).contains(RedisKeySlot.of($0)) }
        try #require(!moved.isEmpty)
        scene.border = 4096
        // As a node does that loses a slot.
        for channel in moved {
            scene.nodes[0].send(">3\r\n$12\r\nsunsubscribe\r\n\(ScriptedRedis.blob(channel)):1\r\n")
        }
        harness.act { scene.get(moved[0]) }
        try #require(harness.run { moved.allSatisfy { harness.count(.subscribed($0)) == 2 } })
        #expect(harness.has(.received("OK", on: moved[0])))
        let connection = scene.nodes[1].calls.first { $0.words[0] == "SSUBSCRIBE" }?.connection
        scene.nodes[1].send(ScriptedRedis.push(["smessage", moved[0], "hello"]), on: connection)
        #expect(harness.run { harness.has(.received("hello", on: moved[0])) })
        let others = (0..<40).map { "key\($0)" }.filter { !moved.contains($0) }
        #expect(others.allSatisfy { harness.count(.subscribed($0)) == 1 })
    }

    @Test func channelsRefusedForTheirSlotAreSubscribedElsewhere() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        scene.border = 4096
        harness.act { for index in 0..<40 { harness.client.subscribe(Array("key\(index)".utf8)) } }
        try #require(harness.run { (0..<40).allSatisfy { harness.has(.subscribed("key\($0)")) } })
    }

    @Test func nodeThatDiesMakesTheClientWait() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try #require((0..<40).map { "key\($0)" }.first { scene.node(of: $0) == 1 })
        harness.act { scene.get(key) }
        try #require(harness.run { harness.has(.received("OK", on: key)) })
        scene.loseSecondNode()
        try #require(harness.run { !harness.client.isReady })
        try #require(harness.run { harness.client.isReady })
        harness.act { scene.get(key) }
        #expect(harness.run { harness.count(.received("OK", on: key)) == 2 })
        harness.act { harness.client.stop() }
        harness.settle()
        #expect(harness.testbed.network?.runUntilIdle() == .idle)
    }

    /// A channel that both nodes have after each other, subscribed at the second.
    private func subscribeAtTheSecond(_ scene: ClusterScene) throws -> String {
        let harness = scene.harness
        let key = try #require((0..<40).map { "key\($0)" }.first { scene.node(of: $0) == 1 })
        harness.act { harness.client.subscribe(Array(key.utf8)) }
        try #require(harness.run { harness.has(.subscribed(key)) })
        return key
    }

    @Test func nodeThatLeftTheClusterIsNotConnectedToAnyMore() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        let key = try self.subscribeAtTheSecond(scene)
        scene.loseSecondNode()
        try #require(harness.run { harness.count(.subscribed(key)) == 2 })
        // The last attempt may be under way.
        _ = harness.run(atMost: .seconds(20)) { false }
        let losses = harness.client.counters.values.losses
        let questions = scene.nodes[0].names.count { $0 == "CLUSTER" }
        _ = harness.run(atMost: .seconds(120)) { false }
        #expect(harness.client.counters.values.losses == losses)
        #expect(scene.nodes[0].names.count { $0 == "CLUSTER" } == questions)
        #expect(harness.client.isReady)
    }

    @Test func nodeThatLostItsSlotsIsLeftAfterItsSubscriptionsEnded() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        let key = try self.subscribeAtTheSecond(scene)
        scene.border = 16384
        harness.act { scene.get(key) }
        try #require(harness.run { harness.count(.subscribed(key)) == 2 })
        #expect(harness.run { scene.nodes[1].connections.allSatisfy { $0.isClosed } })
        #expect(scene.nodes[1].names.contains("SUNSUBSCRIBE"))
    }

    @Test func channelLeftWhileItsNodeIsAwayIsNotSubscribedAgain() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        let key = try self.subscribeAtTheSecond(scene)
        let kept = try #require((0..<40).map { "key\($0)" }.first { scene.node(of: $0) == 1 && $0 != key })
        for peer in scene.nodes[1].connections { peer.reset() }
        try #require(harness.run { !harness.client.isReady })
        harness.act {
            for channel in [key, kept, key] {
                harness.client.subscribe(Array(channel.utf8))
                if channel == key { harness.client.unsubscribe(Array(channel.utf8)) }
            }
        }
        try #require(harness.run { harness.has(.subscribed(kept)) })
        harness.settle()
        let subscribed = scene.nodes[1].calls.filter { $0.words[0] == "SSUBSCRIBE" }.map { $0.words[1...] }
        #expect(subscribed == [[key], [kept]])
    }

    @Test func nodesThatSendACommandInACircleAreBounded() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        for (index, node) in scene.nodes.enumerated() {
            let answer = node.answer
            node.answer = { $0[0] == "GET" ? "-MOVED 1 10.9.0.\(2 - index):6379\r\n" : answer($0) }
        }
        harness.act { scene.get("key") }
        try #require(harness.run { harness.events.contains { if case .received = $0 { true } else { false } } })
        #expect(scene.nodes.flatMap(\.calls).count { $0.words[0] == "GET" } == 6)
    }

    // MARK: Order

    /// A key of the first node, whose slot moves to the second with the border at 4096.
    private func movingKey() throws -> String {
        try #require((0..<40).map { "key\($0)" }.first { (4096..<8192).contains(RedisKeySlot.of($0)) })
    }

    @Test(arguments: ["TRYAGAIN", "CLUSTERDOWN"])
    func laterCommandsOfASlotWaitForOneThatIsTriedAgain(_ code: String) throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-\(code) later\r\n", times: 2)
        scene.set(key, to: "1")
        try #require(harness.run { scene.values(at: 0) == ["1"] })
        harness.settle()
        scene.set(key, to: "2", "3")
        harness.settle()
        #expect(scene.values(at: 0) == ["1"])
        try #require(harness.run { scene.results.count == 3 })
        #expect(scene.values(at: 0) == ["1", "1", "1", "2", "3"])
        #expect(scene.results.map(\.value) == ["1", "2", "3"])
        #expect(scene.results.allSatisfy { $0.result.text == "OK" })
    }

    @Test func otherSlotsDoNotWait() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        let other = try #require((0..<40).map { "key\($0)" }.first { $0 != key && scene.node(of: $0) == 0 })
        scene.answer("1", at: 0, with: "-TRYAGAIN later\r\n", times: 3)
        scene.set(key, to: "1")
        scene.set(other, to: "2")
        try #require(harness.run { scene.results.count == 2 })
        #expect(scene.results.map(\.value) == ["2", "1"])
    }

    @Test func commandsOfAMovedSlotWaitForThoseOnTheirWayToItsLastNode() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.border = 4096
        scene.answer("2", at: 0, with: "", times: 1)
        scene.set(key, to: "1", "2")
        try #require(harness.run { scene.values(at: 1) == ["1"] })
        harness.settle()
        scene.set(key, to: "3")
        harness.settle()
        #expect(scene.values(at: 1) == ["1"])
        scene.send("-MOVED \(RedisKeySlot.of(key)) 10.9.0.2:6379\r\n", from: 0)
        try #require(harness.run { scene.results.count == 3 })
        #expect(scene.values(at: 0) == ["1", "2"] && scene.values(at: 1) == ["1", "2", "3"])
        #expect(scene.results.map(\.value) == ["1", "2", "3"])
        #expect(scene.results.allSatisfy { $0.result.text == "OK" })
    }

    @Test func commandsWaitForOneThatTheNextNodeOfTheSlotIsAsked() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-ASK \(RedisKeySlot.of(key)) 10.9.0.2:6379\r\n")
        scene.answer("1", at: 1, with: "")
        scene.set(key, to: "1")
        try #require(harness.run { scene.values(at: 1) == ["1"] })
        scene.set(key, to: "2")
        harness.settle()
        #expect(scene.values(at: 0) == ["1"] && scene.nodes[1].names.contains("ASKING"))
        scene.send("+OK\r\n", from: 1)
        try #require(harness.run { scene.results.count == 2 })
        #expect(scene.values(at: 0) == ["1", "2"] && scene.values(at: 1) == ["1"])
        #expect(scene.results.map(\.value) == ["1", "2"])
        #expect(scene.results.allSatisfy { $0.result.text == "OK" })
    }

    @Test func commandsThatAreHeldBackAreBoundedAndFailWithTheClient() throws {
        var settings = RedisClientSettings()
        settings.maximumCommands = 2
        let scene = try ClusterScene(settings: settings)
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-TRYAGAIN later\r\n")
        scene.set(key, to: "1")
        try #require(harness.run { scene.values(at: 0) == ["1"] })
        harness.settle()
        // The first is held back as well until its pause is over.
        scene.set(key, to: "2", "3", "4")
        harness.settle()
        #expect(scene.results.map(\.value) == ["3", "4"])
        harness.act { harness.client.stop() }
        harness.settle()
        #expect(scene.results.map(\.value) == ["3", "4", "1", "2"])
        #expect(scene.results.allSatisfy { $0.result == .failure(.notSent) })
        #expect(scene.values(at: 0) == ["1"])
        #expect(harness.testbed.network?.runUntilIdle() == .idle)
    }

    @Test func commandThatFailsForGoodLetsTheOthersGoOn() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-TRYAGAIN later\r\n")
        scene.set(key, to: "1", "2")
        try #require(harness.run { scene.values(at: 0) == ["1", "2"] })
        harness.settle()
        scene.set(key, to: "3")
        try #require(harness.run { scene.results.count == 3 })
        // The second was on its way already.
        #expect(scene.results.map(\.value) == ["2", "1", "3"])
        #expect(scene.results.map(\.result.text) == ["OK", nil, "OK"])
        #expect(scene.results[1].result == .failure(.notSent))
    }

    // MARK: Migration

    private static let script = RedisScript("return redis.call('SPUBLISH', KEYS[1], ARGV[1])")

    /// A slot that migrates from the first node to the second: the first sends the script away with `ASK`.
    private func migrate(_ scene: ClusterScene, _ key: String) {
        let first = scene.nodes[0].answer
        let ask = "-ASK \(RedisKeySlot.of(key)) 10.9.0.2:6379\r\n"
        scene.nodes[0].answer = { $0[0] == "EVALSHA" ? ask : first($0) }
        let second = scene.nodes[1].answer
        scene.nodes[1].answer = { $0[0] == "EVALSHA" ? "+done\r\n" : second($0) }
    }

    private func publish(_ key: String, by harness: RedisClientHarness) {
        let announcement = RedisAnnouncement(on: Array(key.utf8)) { reply in
            (try? reply.text()).map { Array("announced after \($0)".utf8) }
        }
        harness.client.perform(
            Self.script, keys: [Array(key.utf8)], arguments: ["message"], announcement: announcement
        ) { result in harness.redisReceived(harness.client, Array((result.text ?? "\(result)").utf8), on: [0x78]) }
    }

    private static let scripted = ["EVALSHA", "SPUBLISH", "SET"]

    @Test func scriptOfAMigratingSlotIsAnnouncedWhereItsSubscribersAreBeforeLaterCommands() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        self.migrate(scene, key)
        harness.act { self.publish(key, by: harness) }
        scene.set(key, to: "1")
        try #require(harness.run { harness.has(.received("done", on: "x")) && scene.results.count == 1 })
        // `SET` was on its way when the script came back.
        let names = scene.nodes[0].names.filter { Self.scripted.contains($0) }
        #expect(names == ["EVALSHA", "SET", "SPUBLISH"])
        let announced = scene.nodes[0].calls.last { $0.words[0] == "SPUBLISH" }?.words
        #expect(announced == ["SPUBLISH", key, "announced after done"])
        #expect(!scene.nodes[1].names.contains("SPUBLISH"))
        #expect(scene.nodes[1].names.suffix(2) == ["ASKING", "EVALSHA"])
    }

    @Test func commandsWaitForTheAnnouncementOfAScriptBeforeThem() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        self.migrate(scene, key)
        let answer = scene.nodes[0].answer
        scene.nodes[0].answer = { $0[0] == "SPUBLISH" ? "" : answer($0) }
        harness.act { self.publish(key, by: harness) }
        try #require(harness.run { scene.nodes[0].names.contains("SPUBLISH") })
        scene.set(key, to: "1")
        harness.settle()
        #expect(scene.values(at: 0).isEmpty && !harness.has(.received("done", on: "x")))
        let connection = scene.nodes[0].calls.last { $0.words[0] == "SPUBLISH" }?.connection
        scene.nodes[0].send(":1\r\n", on: connection)
        try #require(harness.run { scene.results.count == 1 })
        #expect(harness.has(.received("done", on: "x")) && scene.values(at: 0) == ["1"])
    }

    @Test func scriptThatTheNodeOfItsSlotExecutesIsNotAnnounced() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        harness.act { self.publish(key, by: harness) }
        // The node does not have the script, and gets its source.
        try #require(harness.run { harness.has(.received("evaluated", on: "x")) })
        harness.settle()
        #expect(!scene.nodes.contains { $0.names.contains("SPUBLISH") })
    }

    /// A node without the slot has ended the subscriptions: their owners subscribe elsewhere, and find the script's message
    /// in what it stored.
    @Test(arguments: [("MOVED 1 10.9.0.2:6379", true), ("CLUSTERDOWN no", false), ("NOPERM no", false)])
    func scriptWhoseAnnouncementIsRefusedIsUncertain(_ error: String, _ isDone: Bool) throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        self.migrate(scene, key)
        let answer = scene.nodes[0].answer
        scene.nodes[0].answer = { $0[0] == "SPUBLISH" ? "-\(error)\r\n" : answer($0) }
        harness.act { self.publish(key, by: harness) }
        let expected = isDone ? "done" : "\(Result<RedisValue, RedisClientError>.failure(.uncertain))"
        #expect(harness.run { harness.has(.received(expected, on: "x")) })
        #expect(scene.nodes.flatMap(\.names).count { $0 == "SPUBLISH" } == 1)
    }

    /// Redis 7.0 answers so for a script of which no key exists, or some are moved: `ASK`, and there `TRYAGAIN`.
    @Test func commandIsTriedUntilTheMigrationOfItsKeysIsOver() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-ASK \(RedisKeySlot.of(key)) 10.9.0.2:6379\r\n")
        scene.answer("1", at: 1, with: "-TRYAGAIN later\r\n", times: 8)
        let answer = scene.nodes[1].answer
        scene.nodes[1].answer = { words in
            let text = answer(words)
            // Asked to, it executes what is not its own yet.
            return words[0] == "SET" && text?.hasPrefix("-MOVED") == true ? nil : text
        }
        scene.set(key, to: "1")
        try #require(harness.run { !scene.results.isEmpty })
        #expect(scene.results.map(\.result.text) == ["OK"])
        #expect(scene.values(at: 1).count == 9)
    }

    @Test func commandsThatWaitedForOthersUntilTheirTimeWasOverAreNotPaused() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        let answer = scene.nodes[0].answer
        scene.nodes[0].answer = { $0[0] == "SET" ? "-TRYAGAIN later\r\n" : answer($0) }
        for number in 1...100 { scene.set(key, to: "\(number)") }
        #expect(harness.run(atMost: .seconds(6)) { scene.results.count == 100 })
        #expect(scene.results.allSatisfy { $0.result == .failure(.notSent) })
    }

    @Test func retriesEndWithTheTimeOfTheirCommandAndNotWithTheConnection() throws {
        let scene = try ClusterScene()
        let harness = scene.harness
        try #require(harness.run { harness.client.isReady })
        let key = try self.movingKey()
        scene.answer("1", at: 0, with: "-TRYAGAIN later\r\n")
        scene.set(key, to: "1")
        #expect(harness.run(atMost: .seconds(6)) { !scene.results.isEmpty })
        #expect(scene.results.map(\.result) == [.failure(.notSent)])
        #expect(scene.values(at: 0).count > 8 && harness.client.counters.values.losses == 0)
    }
}
