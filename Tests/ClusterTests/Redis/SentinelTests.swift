import Cluster
import RedisEngine
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// Two sentinels and two servers on the simulated network.
private final class SentinelScene {
    let harness: RedisClientHarness
    let sentinels: [ScriptedRedis]
    let servers: [ScriptedRedis]

    init() throws {
        let testbed = TransportTestbed(.simulation)
        func listen(_ host: UInt32, _ port: UInt16) throws -> ScriptedRedis {
            try ScriptedRedis(on: try testbed.makeHost(), at: .ipv4(address: 0x0A09_0000 | host, port: port))
        }
        self.sentinels = [try listen(11, 26379), try listen(12, 26379)]
        self.servers = [try listen(1, 6379), try listen(2, 6379)]
        self.harness = try RedisClientHarness("redis+sentinel://10.9.0.11,10.9.0.12/main", on: testbed)
        let all = self.sentinels + self.servers
        self.harness.serve = { for server in all { server.serve() } }
        self.setPrimary(0)
        let client = self.harness.client
        client.subscribe(Array("room".utf8))
        self.harness.act { client.start() }
    }

    func setPrimary(_ index: Int) {
        for sentinel in self.sentinels {
            sentinel.answer = { words in
                guard words[0] == "SENTINEL" else { return nil }
                return "*2\r\n" + ScriptedRedis.blob("10.9.0.\(index + 1)") + ScriptedRedis.blob("6379")
            }
        }
        for (number, server) in self.servers.enumerated() {
            server.role = number == index ? "master" : "replica"
            server.answer = { words in
                guard words[0] == "ROLE" else { return nil }
                return number == index ? "*1\r\n$6\r\nmaster\r\n" : "*1\r\n$5\r\nslave\r\n"
            }
        }
    }
}

@Suite("Redis client with Sentinel")
struct SentinelTests {
    @Test func connectsToThePrimaryThatASentinelNames() throws {
        let scene = try SentinelScene()
        try #require(scene.harness.run { scene.harness.has(.subscribed("room")) })
        #expect(scene.servers[1].connections.isEmpty && scene.servers[0].calls.contains { $0.words == ["ROLE"] })
        #expect(scene.harness.events == [.ready, .subscribed("room")])
    }

    @Test func followsTheNewsOfASentinel() throws {
        let scene = try SentinelScene()
        let harness = scene.harness
        try #require(harness.run { harness.has(.subscribed("room")) })
        try #require(harness.run { scene.sentinels[0].names.contains("SUBSCRIBE") })
        harness.settle()
        scene.setPrimary(1)
        scene.sentinels[0].publish("main 10.9.0.1 6379 10.9.0.2 6379", on: "+switch-master")
        try #require(harness.run { harness.count(.subscribed("room")) == 2 })
        #expect(scene.servers[1].names.contains("SUBSCRIBE"))
        #expect(harness.has(.away("10.9.0.1:6379: Sentinel named another primary: 10.9.0.2:6379")))
    }

    @Test func asksTheOtherSentinel() throws {
        let scene = try SentinelScene()
        scene.sentinels[0].answer = { $0[0] == "SENTINEL" ? "" : nil }
        try #require(scene.harness.run { scene.harness.client.isReady })
        #expect(scene.sentinels[1].calls.contains { $0.words[0] == "SENTINEL" })
    }

    @Test func saysWhyNoSentinelIsOfUse() throws {
        let scene = try SentinelScene()
        scene.sentinels[0].listener.close()
        scene.sentinels[1].answer = { $0[0] == "SENTINEL" ? "*-1\r\n" : nil }
        try #require(scene.harness.run { !scene.harness.events.isEmpty })
        let text =
            "the sentinel 10.9.0.11:26379 did not answer; the sentinel 10.9.0.12:26379 watches no primary of this name"
        #expect(scene.harness.events.first == .away(text))
    }

    @Test func nothingIsLeftAfterStop() throws {
        let scene = try SentinelScene()
        try #require(scene.harness.run { scene.harness.client.isReady })
        scene.harness.act { scene.harness.client.stop() }
        scene.harness.settle()
        #expect(scene.harness.testbed.network?.runUntilIdle() == .idle)
        let open = (scene.sentinels + scene.servers).flatMap(\.connections).filter { !$0.isClosed }
        #expect(open.isEmpty)
    }
}
