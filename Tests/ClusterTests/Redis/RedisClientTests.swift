import Cluster
import RedisEngine
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// A client and a scripted server on the simulated network.
private struct Scene {
    static let address = SocketAddress.ipv4(address: 0x0A09_0001, port: 6379)

    let harness: RedisClientHarness
    let server: ScriptedRedis

    init(
        settings: RedisClientSettings = RedisClientSettings(), scripts: [RedisScript] = [],
        prepare: (ScriptedRedis) -> Void = { _ in }
    ) throws {
        let testbed = TransportTestbed(.simulation)
        let server = try ScriptedRedis(on: try testbed.makeHost(), at: Self.address)
        self.server = server
        prepare(server)
        self.harness = try RedisClientHarness(
            "redis://10.9.0.1", on: testbed, settings: settings, scripts: scripts)
        self.harness.serve = { server.serve() }
        let client = self.harness.client
        self.harness.act { client.start() }
    }

    func becomeReady() throws {
        try #require(self.harness.run { self.harness.client.isReady })
    }
}

@Suite("Redis client")
struct RedisClientTests {
    private static let script = RedisScript("return redis.call('INCR', KEYS[1])")

    @Test func answersCommandsInTheirOrder() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        harness.act { for index in 0..<100 { harness.perform("ECHO", .number(index), as: "\(index)") } }
        try #require(harness.run { harness.result("99") != nil })
        let replies = harness.events.dropFirst().map { event -> String in
            guard case .reply(let label, let result) = event else { return "?" }
            return result.text == label ? label : "?"
        }
        #expect(replies == (0..<100).map(String.init))
        #expect(harness.client.counters.values.commands == 100 && harness.client.counters.values.failures == 0)
    }

    @Test func refusesCommandsWhileThereIsNoServer() throws {
        let scene = try Scene { $0.listener.close() }
        let harness = scene.harness
        harness.act {
            harness.perform("PING")
            #expect(harness.events.isEmpty, "the completion was called within the call")
        }
        try #require(harness.run { harness.result("PING") != nil && harness.events.count > 1 })
        #expect(harness.result("PING") == .failure(.notSent))
        #expect(harness.has(.away("10.9.0.1:6379: connection refused")))
    }

    @Test func loadsScriptsBeforeItIsReady() throws {
        let scene = try Scene(scripts: [Self.script])
        try scene.becomeReady()
        #expect(scene.server.names == ["SCRIPT"])
        let harness = scene.harness
        harness.act { harness.perform(Self.script, as: "script") }
        try #require(harness.run { harness.result("script") != nil })
        #expect(scene.server.names == ["SCRIPT", "EVALSHA"] && harness.result("script")?.text == "evaluated")
    }

    @Test func sendsAScriptThatTheServerHasForgotten() throws {
        let scene = try Scene(scripts: [Self.script])
        try scene.becomeReady()
        scene.server.scripts = []
        let harness = scene.harness
        harness.act { harness.perform(Self.script, as: "script") }
        try #require(harness.run { harness.result("script") != nil })
        #expect(scene.server.names == ["SCRIPT", "EVALSHA", "EVAL"])
        #expect(harness.result("script")?.text == "evaluated")
    }

    @Test func messagePublishedBeforeACommandArrivesBeforeItsReply() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        harness.act { harness.client.subscribe(Array("room".utf8)) }
        try #require(harness.run { harness.has(.subscribed("room")) })
        scene.server.answer = { words in
            words[0] == "INCR" ? ScriptedRedis.push(["message", "room", "first"]) + ":1\r\n" : nil
        }
        harness.act { harness.perform("INCR", "k") }
        try #require(harness.run { harness.result("INCR") != nil })
        #expect(harness.events.suffix(2) == [.received("first", on: "room"), .reply("INCR", .success(.number(1)))])
    }

    @Test func subscribesAgainAfterTheConnectionWasLost() throws {
        let scene = try Scene()
        let harness = scene.harness
        harness.act { for index in 0..<1000 { harness.client.subscribe(Array("room\(index)".utf8)) } }
        try #require(harness.run { harness.has(.subscribed("room999")) && harness.has(.subscribed("room0")) })
        scene.server.connections[0].reset()
        let isBack = harness.run { (0..<1000).allSatisfy { harness.count(.subscribed("room\($0)")) == 2 } }
        #expect(isBack && scene.server.connections.count == 2)
        // In commands of bounded size.
        #expect(scene.server.calls.allSatisfy { $0.words.count <= 257 })
        harness.settle()
        scene.server.publish("x", on: "room7")
        #expect(harness.run { harness.has(.received("x", on: "room7")) })
    }

    @Test func channelThatIsLeftAndJoinedAgainIsSubscribedOnce() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        let room = Array("room".utf8)
        harness.act {
            for _ in 0..<50 {
                harness.client.subscribe(room)
                harness.client.unsubscribe(room)
            }
            harness.client.subscribe(room)
        }
        try #require(harness.run { harness.has(.subscribed("room")) })
        #expect(scene.server.names == ["SUBSCRIBE"])
        harness.act {
            harness.client.unsubscribe(room)
            #expect(harness.client.isReady)
        }
        harness.act { harness.client.subscribe(room) }
        try #require(harness.run { harness.count(.subscribed("room")) == 2 })
        #expect(scene.server.names == ["SUBSCRIBE", "UNSUBSCRIBE", "SUBSCRIBE"])
    }

    @Test func messagesOfAChannelThatWasLeftAreDropped() throws {
        let scene = try Scene()
        let harness = scene.harness
        harness.act { harness.client.subscribe(Array("room".utf8)) }
        try #require(harness.run { harness.has(.subscribed("room")) })
        scene.server.publish("late", on: "room")
        harness.act { harness.client.unsubscribe(Array("room".utf8)) }
        harness.settle()
        #expect(!harness.has(.received("late", on: "room")) && scene.server.names.last == "UNSUBSCRIBE")
    }

    @Test func commandThatIsNotAnsweredEndsTheConnection() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        scene.server.answer = { ["GET", "PING"].contains($0[0]) ? "" : nil }
        harness.act {
            harness.perform("GET", "k", timeout: .seconds(1))
            harness.perform("PING", timeout: .seconds(30))
        }
        try #require(harness.run { harness.result("GET") != nil && harness.result("PING") != nil })
        #expect(harness.result("GET") == .failure(.uncertain) && harness.result("PING") == .failure(.uncertain))
        #expect(harness.has(.away("10.9.0.1:6379: Redis did not answer a command in time")))
        #expect(harness.run { harness.count(.ready) == 2 })
    }

    @Test func stopAnswersAllCommandsOnce() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        harness.act {
            harness.perform("GET", "k")
            harness.client.stop()
            harness.perform("PING")
            #expect(harness.events == [.ready])
        }
        try #require(harness.run { harness.result("PING") != nil })
        #expect(harness.result("GET") == .failure(.notSent) && harness.result("PING") == .failure(.notSent))
        harness.settle()
        #expect(harness.events.count == 3 && !harness.client.isReady)
        #expect(harness.testbed.network?.runUntilIdle() == .idle, "something of the client is left")
    }

    @Test func serverOfRESP2IsRefusedWithAClearText() throws {
        let scene = try Scene { $0.speaksRESP3 = false }
        try #require(scene.harness.run { !scene.harness.events.isEmpty })
        let text = "the server does not speak RESP3; version 7.0 of Redis or a later one is required"
        #expect(scene.harness.events == [.away("10.9.0.1:6379: \(text)")])
    }

    @Test(arguments: ["6.2.14", "6.0", "5.0.3"])
    func oldVersionOfRedisIsRefusedWithAClearText(_ version: String) throws {
        let scene = try Scene { $0.version = version }
        try #require(scene.harness.run { !scene.harness.events.isEmpty })
        let text = "the server is version \(version) of Redis; version 7.0 or a later one is required"
        #expect(scene.harness.events == [.away("10.9.0.1:6379: \(text)")])
    }

    /// Programs other than Redis have versions of their own.
    @Test(arguments: ["redis 7.0.0", "redis 8.2.1", "redis unstable", "valkey 8.0.1", "other 1.2"])
    func otherVersionsAreUsed(_ name: String) throws {
        let words = name.split(separator: " ").map(String.init)
        let scene = try Scene {
            $0.program = words[0]
            $0.version = words[1]
        }
        #expect(scene.harness.run { scene.harness.client.isReady })
    }

    @Test func replicaIsNoServer() throws {
        let scene = try Scene { $0.role = "replica" }
        let harness = scene.harness
        try #require(harness.run { !harness.events.isEmpty })
        #expect(!harness.client.isReady)
        scene.server.role = "master"
        #expect(harness.run { harness.client.isReady })
    }

    @Test func serverThatBecameAReplicaIsLeft() throws {
        let scene = try Scene()
        try scene.becomeReady()
        let harness = scene.harness
        scene.server.answer = { $0[0] == "SET" ? "-READONLY You can't write against a read only replica.\r\n" : nil }
        harness.act { harness.perform("SET", "k", "v") }
        try #require(harness.run { scene.server.connections.count == 2 })
        // The command was not executed: another server must be asked.
        #expect(harness.result("SET") == .failure(.notSent))
    }

    @Test func serverThatLoadsItsDataIsTriedAgain() throws {
        let scene = try Scene(scripts: [Self.script]) {
            $0.answer = { $0[0] == "SCRIPT" ? "-LOADING Redis is loading the dataset in memory\r\n" : nil }
        }
        let harness = scene.harness
        try #require(harness.run { scene.server.connections.count == 3 })
        #expect(!harness.client.isReady && harness.has(.away("10.9.0.1:6379: Redis is loading its data")))
        scene.server.answer = { _ in nil }
        #expect(harness.run { harness.client.isReady })
    }

    @Test func commandsAboveTheLimitAreRefused() throws {
        var settings = RedisClientSettings()
        settings.maximumCommands = 10
        let scene = try Scene(settings: settings)
        try scene.becomeReady()
        let harness = scene.harness
        harness.act {
            for index in 0..<12 { harness.perform("PING", as: "\(index)") }
            harness.client.subscribe(Array("room".utf8))
        }
        try #require(harness.run { harness.result("11") != nil && harness.result("9") != nil })
        #expect((0..<12).map { harness.result("\($0)")?.text == "PONG" } == (0..<12).map { $0 < 10 })
        #expect(harness.result("10") == .failure(.notSent) && harness.client.counters.values.refused == 2)
        #expect(harness.run { harness.has(.subscribed("room")) })
    }

    @Test func commandsAboveTheirBytesAreRefused() throws {
        var settings = RedisClientSettings()
        settings.maximumCommandBytes = 1000
        let scene = try Scene(settings: settings)
        try scene.becomeReady()
        let harness = scene.harness
        harness.act {
            harness.perform("ECHO", .bytes([UInt8](repeating: 65, count: 900)), as: "fits")
            harness.perform("ECHO", .bytes([UInt8](repeating: 65, count: 100)), as: "too much")
        }
        try #require(harness.run { harness.result("fits") != nil && harness.result("too much") != nil })
        #expect(harness.result("too much") == .failure(.notSent) && harness.result("fits")?.text?.count == 900)
    }

    @Test func pausedClientReadsNothingAndMissesNoDeadline() throws {
        let scene = try Scene()
        let harness = scene.harness
        harness.act { harness.client.subscribe(Array("room".utf8)) }
        try #require(harness.run { harness.has(.subscribed("room")) })
        harness.act {
            harness.perform("PING", timeout: .seconds(1))
            harness.client.pauseMessages()
        }
        harness.settle()
        scene.server.publish("a", on: "room")
        scene.server.publish("b", on: "room")
        _ = harness.run(atMost: .seconds(60)) { false }
        #expect(harness.events == [.ready, .subscribed("room")])
        harness.act { harness.client.resumeMessages() }
        try #require(harness.run { harness.has(.received("b", on: "room")) })
        #expect(harness.result("PING")?.text == "PONG" && scene.server.connections.count == 1)
    }

    @Test func ownerMayStopTheClientInEveryCall() throws {
        for stopAt in 1...4 {
            let scene = try Scene()
            let harness = scene.harness
            harness.react = { _ in if harness.events.count == stopAt { harness.client.stop() } }
            scene.server.answer = { words in
                words[0] == "INCR" ? ScriptedRedis.push(["message", "room", "x"]) + ":1\r\n:2\r\n" : nil
            }
            harness.act { harness.client.subscribe(Array("room".utf8)) }
            _ = harness.run { !harness.events.isEmpty }
            harness.act { harness.perform("INCR", "k") }
            _ = harness.run(atMost: .seconds(60)) { false }
            #expect(harness.events.count >= stopAt && !harness.client.isReady)
            #expect(harness.events.count { if case .reply = $0 { true } else { false } } == 1)
        }
    }

    /// Whatever the server sent before it went away: each command has one outcome, and the client comes back.
    @Test func conversationThatEndsAfterAnyByteHasOneOutcome() throws {
        let conversation = ScriptedRedis.push(["message", "room", "hello"]) + "$2\r\nab\r\n:12\r\n"
        for length in 0..<conversation.utf8.count {
            let scene = try Scene()
            let harness = scene.harness
            harness.act { harness.client.subscribe(Array("room".utf8)) }
            try #require(harness.run { harness.has(.subscribed("room")) })
            scene.server.answer = { ["GET", "INCR"].contains($0[0]) ? "" : nil }
            harness.act {
                harness.perform("GET", "k")
                harness.perform("INCR", "k")
            }
            harness.settle()
            scene.server.send(String(decoding: conversation.utf8.prefix(length), as: UTF8.self))
            scene.server.connections[0].finish()
            try #require(harness.run { harness.count(.subscribed("room")) == 2 }, "\(length)")
            let replies = harness.events.count { if case .reply = $0 { true } else { false } }
            #expect(replies == 2 && harness.result("INCR") == .failure(.uncertain), "\(length)")
            #expect(harness.count(.received("hello", on: "room")) == (length >= 38 ? 1 : 0), "\(length)")
        }
    }

    @Test func attemptsToConnectAreSpreadAndBounded() throws {
        let scene = try Scene { $0.answer = { _ in "-ERR no\r\n" } }
        _ = scene.harness.run(atMost: .seconds(100)) { false }
        // A server that refuses the handshake is asked every 2.5 to 5 s.
        #expect((20...42).contains(scene.server.connections.count))
    }
}
