import Cluster
import Foundation
import RedisEngine
import StreamTransport
import Synchronization
import TestSupport
import Testing

/// Nodes of one cluster, each on a loop of its own, with a real Redis server.
private final class Nodes: Sendable {
    private let group: LoopGroup
    private let server: RedisProcess
    private let address: RedisAddress

    init(_ server: RedisProcess) throws {
        self.group = try LoopGroup(count: 2)
        self.server = server
        self.address = try RedisAddress(server.address)
    }

    deinit { self.group.stop() }

    /// - Returns: the bus, and its events.
    func start(
        _ name: String, instance: String, on loop: Int = 0, maximumHandled: Int = 64
    ) -> (bus: RedisBus, events: AsyncStream<RedisBusEvent>) {
        var settings = RedisBusSettings(nodeName: name, instance: instance, version: "1.0", startTime: 17)
        settings.renewalInterval = .milliseconds(50)
        // A slow machine may not renew it for long. No test waits for its end.
        settings.lease = .seconds(240)
        settings.maximumHandled = maximumHandled
        var client = RedisClientSettings()
        (client.connectTimeout, client.handshakeTimeout) = (.seconds(240), .seconds(240))
        client.commandTimeout = .seconds(240)
        let (events, continuation) = AsyncStream.makeStream(of: RedisBusEvent.self)
        let bus = RedisBus(
            address: self.address, client: client, settings: settings, loop: self.group.loops[loop],
            load: {
                var load = NodeLoad()
                load.connections = 3
                load.processorShare = 0.25
                return load
            },
            wallClock: { Int64(Date().timeIntervalSince1970 * 1e9) }, observe: { continuation.yield($0) })
        bus.start()
        return (bus, events)
    }

    /// A node that has its name, and gets calls.
    func registered(
        _ name: String, on loop: Int = 0, maximumHandled: Int = 64,
        _ handler: @escaping @Sendable (ClusterMessage) async -> [UInt8] = { _ in [] }
    ) async -> RedisBus {
        let (bus, events) = self.start(name, instance: "\(name)-1", on: loop, maximumHandled: maximumHandled)
        bus.serve { $0.bytes == Array("ready?".utf8) ? [] : await handler($0) }
        _ = await events.first { $0 == .registered }
        // Its own channel is subscribed to soon after.
        while (try? await bus.call(name, Array("ready?".utf8), timeout: .seconds(120))) == nil {}
        return bus
    }
}

@Suite("Nodes that find each other by Redis", .timeLimit(.minutes(5)))
struct RedisBusTests {
    @Test func nodesSeeEachOther() async throws {
        let nodes = try Nodes(try RedisProcess())
        let first = await nodes.registered("b")
        let second = await nodes.registered("a", on: 1)
        let list = try await first.nodes()
        #expect(list.map(\.name) == ["a", "b"])
        let other = try #require(list.first)
        #expect(other.instance == "a-1" && other.version == "1.0" && other.startTime == 17)
        #expect(other.load.connections == 3 && other.load.processorShare == 0.25)
        #expect(other.remainingLease > .zero && other.remainingLease <= .seconds(240))
        let difference = try #require(try await second.nodes().first?.clockDifference)
        // As exact as half the time of the answer.
        #expect(difference < .seconds(60) && difference > .seconds(-60))
        await second.stop()
        #expect(try await first.nodes().map(\.name) == ["b"])
        await first.stop()
    }

    @Test(arguments: [0, 1, 256 << 10, (256 << 10) + 1, 1 << 20])
    func callsAreAnswered(_ size: Int) async throws {
        let nodes = try Nodes(try RedisProcess())
        let first = await nodes.registered("first")
        let second = await nodes.registered("second", on: 1) { $0.bytes.reversed() }
        let message = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let answer = try await first.call("second", message, timeout: .seconds(120))
        #expect(answer == message.reversed())
        await first.stop()
        await second.stop()
    }

    @Test func callsThatCannotBeAnsweredFail() async throws {
        let nodes = try Nodes(try RedisProcess())
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let (end, ending) = AsyncStream.makeStream(of: Void.self)
        let (never, keeping) = AsyncStream.makeStream(of: Void.self)
        let first = await nodes.registered("first")
        let second = await nodes.registered("second", on: 1, maximumHandled: 1) { message in
            if message.bytes == [1] { return [UInt8](repeating: 0, count: (1 << 20) + 1) }
            if message.bytes == [4] { for await _ in never {} }
            beginning.yield()
            for await _ in end {}
            return []
        }
        await #expect(throws: ClusterError.unknownNode("third")) {
            try await first.call("third", [], timeout: .seconds(120))
        }
        await #expect(throws: ClusterError.tooLarge(limit: 1 << 20)) {
            try await first.call("second", [UInt8](repeating: 0, count: (1 << 20) + 1), timeout: .seconds(120))
        }
        await #expect(throws: ClusterError.tooLarge(limit: 1 << 20)) {
            try await first.call("second", [1], timeout: .seconds(120))
        }
        let held = Task { try await first.call("second", [2], timeout: .seconds(300)) }
        for await _ in began { break }
        await #expect(throws: ClusterError.busy) { try await first.call("second", [3], timeout: .seconds(120)) }
        ending.finish()
        #expect(try await held.value == [])
        await #expect(throws: ClusterError.timeout(node: "second")) {
            try await first.call("second", [4], timeout: .milliseconds(100))
        }
        keeping.finish()
        #expect(second.counters.refused.load(ordering: .relaxed) == 1)
        await first.stop()
        await second.stop()
    }

    @Test(arguments: [true, false])
    func callThatIsNotWaitedForEndsOnTheOtherNode(_ isCancelled: Bool) async throws {
        let nodes = try Nodes(try RedisProcess())
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let (ended, ending) = AsyncStream.makeStream(of: Void.self)
        let first = await nodes.registered("first")
        let second = await nodes.registered("second", on: 1, maximumHandled: 1) { message in
            guard message.bytes == [1] else { return [7] }
            beginning.yield()
            // Ends with the task.
            for await _ in AsyncStream<Void>.makeStream().stream {}
            ending.yield()
            return [1]
        }
        let call = Task {
            try await first.call("second", [1], timeout: isCancelled ? .seconds(240) : .milliseconds(100))
        }
        for await _ in began { break }
        if isCancelled { call.cancel() }
        await #expect(throws: ClusterError.timeout(node: "second")) { try await call.value }
        for await _ in ended { break }
        // The place of the withdrawn call is free, and it has no answer.
        while (try? await first.call("second", [2], timeout: .seconds(120))) != [7] {}
        #expect(first.counters.late.load(ordering: .relaxed) == 0)
        await first.stop()
        await second.stop()
    }

    @Test func announcementsReachTheOthers() async throws {
        let nodes = try Nodes(try RedisProcess())
        let (heard, hearing) = AsyncStream.makeStream(of: ClusterMessage.self)
        let first = await nodes.registered("first") {
            hearing.yield($0)
            return []
        }
        let second = await nodes.registered("second", on: 1) {
            hearing.yield($0)
            return []
        }
        try await first.announce(Array("from first".utf8))
        try await second.announce(Array("from second".utf8))
        var senders: [String] = []
        for await message in heard {
            #expect(message.isAnnouncement && message.bytes == Array("from \(message.sender)".utf8))
            senders.append(message.sender)
            if senders.count == 2 { break }
        }
        #expect(senders.sorted() == ["first", "second"])
        await first.stop()
        await second.stop()
    }

    @Test func callsThatWaitTakeNoPlacesOfAnnouncements() async throws {
        let nodes = try Nodes(try RedisProcess())
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let (end, ending) = AsyncStream.makeStream(of: Void.self)
        let (heard, hearing) = AsyncStream.makeStream(of: [UInt8].self)
        let first = await nodes.registered("first")
        let second = await nodes.registered("second", on: 1, maximumHandled: 1) { message in
            if message.isAnnouncement {
                hearing.yield(message.bytes)
                return []
            }
            beginning.yield()
            for await _ in end {}
            return [1]
        }
        let waiting = Task { try await first.call("second", [1], timeout: .seconds(240)) }
        for await _ in began { break }
        try await first.announce([7])
        // Redis has sent the announcement before this call.
        await #expect(throws: ClusterError.busy) { try await first.call("second", [2], timeout: .seconds(120)) }
        #expect(second.counters.announcements.load(ordering: .relaxed) == 1)
        #expect(second.counters.refused.load(ordering: .relaxed) == 1)
        for await bytes in heard {
            #expect(bytes == [7])
            break
        }
        ending.finish()
        #expect(try await waiting.value == [1])
        await first.stop()
        await second.stop()
    }

    // MARK: Kept values

    /// A day before and after the present, in milliseconds since 1970: Redis removes what has ended.
    private static let (yesterday, tomorrow) = (
        Machine.wallClockMilliseconds() - 86_400_000, Machine.wallClockMilliseconds() + 86_400_000
    )

    private func value(
        _ key: String, _ version: Int64, _ text: String, endsAt: Int64 = Self.tomorrow
    ) -> KeptValue {
        KeptValue(key: Array(key.utf8), version: version, endsAt: endsAt, bytes: Array(text.utf8))
    }

    private func texts(_ bus: RedisBus, limit: Int = 1000) async throws -> [String] {
        try await bus.kept(limit: limit).map { String(decoding: $0, as: UTF8.self) }.sorted()
    }

    @Test func valueWithTheGreatestVersionIsKept() async throws {
        let nodes = try Nodes(try RedisProcess())
        let bus = await nodes.registered("node")
        let (yesterday, tomorrow) = (Self.yesterday, Self.tomorrow)
        func keep(_ values: KeptValue..., now: Int64 = yesterday - 2000, latest: Int64 = 100) async throws {
            try await bus.keep(values, now: now, latest: latest, limit: 2)
        }
        try await keep(
            self.value("a", 2, "second"), self.value("a", 1, "first"),
            self.value("b", 1, "b  1\n", endsAt: yesterday))
        #expect(try await self.texts(bus) == ["b  1\n", "second"])
        try await keep(
            self.value("a", 2, "later", endsAt: tomorrow + 1), self.value("b", 1, "earlier", endsAt: yesterday - 1))
        #expect(try await self.texts(bus) == ["b  1\n", "later"])
        // A third one is too many, until another ends.
        try await keep(self.value("c", 1, "third"))
        #expect(try await self.texts(bus) == ["b  1\n", "later"])
        try await keep(
            self.value("c", 1, "third", endsAt: .max), self.value("d", 1, "ended", endsAt: yesterday), now: yesterday)
        #expect(try await self.texts(bus) == ["later", "third"])
        // A version of a clock that is ahead gives way.
        try await keep(self.value("a", 3, "present"), now: yesterday, latest: 1)
        #expect(try await self.texts(bus) == ["present", "third"])
        await bus.stop()
    }

    @Test func allPagesOfValuesAreRead() async throws {
        let nodes = try Nodes(try RedisProcess())
        let bus = await nodes.registered("node")
        let texts = (0..<2000).map { "value \($0) \(String(repeating: "x", count: 100))" }
        for part in stride(from: 0, to: 2000, by: 100) {
            let values = texts[part..<part + 100].map { self.value($0, 1, $0) }
            try await bus.keep(values, now: Self.yesterday, latest: 100, limit: 10_000)
        }
        #expect(Set(try await self.texts(bus, limit: 10_000)) == Set(texts))
        #expect((600..<2000).contains(try await self.texts(bus, limit: 600).count))
        await bus.stop()
    }

    @Test func valuesThatAreNoneAreLeftOut() async throws {
        let server = try RedisProcess()
        let nodes = try Nodes(server)
        let bus = await nodes.registered("node")
        let harness = try RedisClientHarness(server.address, on: TransportTestbed(.sockets))
        harness.act { harness.client.start() }
        try #require(harness.run { harness.client.isReady })
        harness.act {
            harness.perform("HSET", "sluice:{nodes}:kept", "a", "1 1000 kept", "b", "", "c", "1", "d", "1 2")
        }
        while try await self.texts(bus).isEmpty {}
        #expect(try await self.texts(bus) == ["kept"])
        // Nothing is known of the others: they are replaced.
        try await bus.keep([self.value("d", 1, "new")], now: Self.yesterday, latest: 100, limit: 10)
        #expect(try await self.texts(bus) == ["kept", "new"])
        await bus.stop()
    }

    @Test func clockThatIsAheadRemovesNothing() async throws {
        let nodes = try Nodes(try RedisProcess())
        let bus = await nodes.registered("node")
        try await bus.keep([self.value("a", 1, "first")], now: Self.yesterday, latest: 100, limit: 10)
        let ahead = Self.tomorrow + 1
        try await bus.keep(
            [self.value("b", 1, "second", endsAt: ahead + 1)], now: ahead, latest: 100, limit: 10)
        #expect(try await self.texts(bus) == ["first", "second"])
        await bus.stop()
    }

    @Test func nameOfALiveNodeIsRefused() async throws {
        let nodes = try Nodes(try RedisProcess())
        let first = await nodes.registered("node")
        let (second, events) = nodes.start("node", instance: "other", on: 1)
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == .nameTaken(instance: "node-1"))
        await #expect(throws: ClusterError.away) { try await second.call("node", [], timeout: .seconds(1)) }
        await first.stop()
        // The name is free now.
        while let event = await iterator.next(), event != .registered {}
        #expect(try await second.nodes().map(\.instance) == ["other"])
        await second.stop()
    }

    @Test func nodesComeBackAfterRedisWasStartedEmpty() async throws {
        let server = try RedisProcess()
        let nodes = try Nodes(server)
        let (bus, events) = nodes.start("node", instance: "1")
        var iterator = events.makeAsyncIterator()
        while let event = await iterator.next(), event != .registered {}
        server.kill()
        while let event = await iterator.next() { if case .away = event { break } }
        await #expect(throws: ClusterError.away) { try await bus.nodes() }
        try server.start()
        while let event = await iterator.next(), event != .registered {}
        #expect(try await bus.nodes().map(\.name) == ["node"])
        await bus.stop()
    }

    /// Each beginning of a real message, and bytes that are none.
    @Test func malformedMessagesAreCountedAndIgnored() async throws {
        let server = try RedisProcess()
        let nodes = try Nodes(server)
        let bus = await nodes.registered("node")
        let harness = try RedisClientHarness(server.address, on: TransportTestbed(.sockets))
        harness.act {
            harness.client.subscribe(Array("sluice:{nodes}:all".utf8))
            harness.client.start()
        }
        try #require(harness.run { harness.has(.subscribed("sluice:{nodes}:all")) })
        try await bus.announce([65])
        var message: [UInt8]?
        harness.react = { if case .received(let text, _) = $0 { message = Array(text.utf8) } }
        try #require(harness.run { message != nil })
        let whole = try #require(message)
        // The head takes 14 bytes, the names "node" and "node-1" with their lengths 12: without its last byte the message
        // is an empty one.
        try #require(whole.count == 27)
        harness.act {
            for length in 0..<(whole.count - 1) {
                harness.perform("PUBLISH", "sluice:{nodes}:node:node", .bytes(Array(whole[..<length])))
            }
            harness.perform("PUBLISH", "sluice:{nodes}:node:node", .bytes([UInt8](repeating: 0xFF, count: 4000)))
        }
        #expect(try await bus.call("node", Array("ready?".utf8), timeout: .seconds(120)) == [])
        _ = harness.run { bus.counters.malformed.load(ordering: .relaxed) == whole.count }
        #expect(bus.counters.malformed.load(ordering: .relaxed) == whole.count)
        await bus.stop()
    }
}
