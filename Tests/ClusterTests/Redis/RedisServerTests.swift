import Cluster
import RedisEngine
import StreamTransport
import TestSupport
import Testing

@Suite("Redis client with a real server")
struct RedisServerTests {
    private static let count = RedisScript(
        "redis.call('PUBLISH', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])")

    private func client(
        of server: RedisProcess, settings: RedisClientSettings = RedisClientSettings()
    ) throws -> RedisClientHarness {
        let harness = try RedisClientHarness(
            server.address, on: TransportTestbed(.sockets), settings: settings, scripts: [Self.count])
        harness.act { harness.client.start() }
        try #require(harness.run { harness.client.isReady })
        return harness
    }

    private func publish(_ text: String, by harness: RedisClientHarness) {
        harness.client.perform(
            Self.count, keys: [Array("{room}".utf8), Array("{room}:n".utf8)], arguments: [.text(text)]
        ) { result in
            let number = (try? result.get().int()).map(String.init) ?? "\(result)"
            harness.redisReceived(harness.client, Array(number.utf8), on: Array("replies".utf8))
        }
    }

    @Test func scriptsPublishBeforeTheyAnswer() throws {
        let server = try RedisProcess()
        let harness = try self.client(of: server)
        harness.act { harness.client.subscribe(Array("{room}".utf8)) }
        try #require(harness.run { harness.has(.subscribed("{room}")) })
        harness.act { for index in 1...50 { self.publish("m\(index)", by: harness) } }
        try #require(harness.run { harness.has(.received("50", on: "replies")) })
        let expected = (1...50).flatMap { index -> [RedisClientHarness.Event] in
            [.received("m\(index)", on: "{room}"), .received("\(index)", on: "replies")]
        }
        #expect(Array(harness.events.suffix(100)) == expected)
    }

    @Test func scriptsAreSentAgainAfterTheServerForgotThem() throws {
        let server = try RedisProcess()
        let harness = try self.client(of: server)
        harness.act {
            harness.perform("SCRIPT", "FLUSH")
            self.publish("x", by: harness)
        }
        #expect(harness.run { harness.has(.received("1", on: "replies")) })
    }

    @Test func serverThatIsKilledAndStartedAgainIsUsedAgain() throws {
        let server = try RedisProcess()
        let harness = try self.client(of: server)
        harness.act { harness.client.subscribe(Array("{room}".utf8)) }
        try #require(harness.run { harness.has(.subscribed("{room}")) })
        server.kill()
        try #require(harness.run { !harness.client.isReady })
        try server.start()
        try #require(harness.run { harness.count(.subscribed("{room}")) == 2 })
        harness.act { self.publish("again", by: harness) }
        try #require(harness.run { harness.has(.received("1", on: "replies")) })
        #expect(harness.has(.received("again", on: "{room}")))
    }

    @Test func serverThatHangsIsLeft() throws {
        let server = try RedisProcess()
        var settings = RedisClientSettings()
        settings.commandTimeout = .milliseconds(200)
        // The next connection waits until the server goes on.
        (settings.connectTimeout, settings.handshakeTimeout) = (.seconds(240), .seconds(240))
        let harness = try self.client(of: server, settings: settings)
        server.pause()
        harness.act { harness.perform("PING") }
        try #require(harness.run { harness.result("PING") != nil })
        #expect(harness.result("PING") == .failure(.uncertain) && !harness.client.isReady)
        server.resume()
        #expect(harness.run { harness.client.isReady })
    }

    @Test func twentyThousandChannelsAreSubscribed() throws {
        let server = try RedisProcess()
        let harness = try self.client(of: server)
        harness.act { for index in 0..<20_000 { harness.client.subscribe(Array("room\(index)".utf8)) } }
        try #require(harness.run { harness.events.last == .subscribed("room19999") })
        let count = harness.events.count { if case .subscribed = $0 { true } else { false } }
        #expect(count == 20_000)
        harness.act { harness.perform("PUBLISH", "room19999", "hello") }
        #expect(harness.run { harness.has(.received("hello", on: "room19999")) })
    }
}
