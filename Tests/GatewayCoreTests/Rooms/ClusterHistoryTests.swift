import Cluster
import GatewayConfiguration
import GatewayCore
import RedisEngine
import Rooms
import Testing

/// What nodes read of the histories in Redis.
@Suite("Histories of a cluster's rooms")
struct ClusterHistoryTests {
    private static let room = "a"

    /// A scene with two nodes, whose room has publications, the first of which both clients have.
    private func scene(publications: Int, _ options: ClusterScene.Options) throws -> ClusterScene {
        let scene = try ClusterScene(loops: [1, 1], clients: 2, rooms: [Self.room], options: options)
        let (writer, reader) = (scene.clients[0], scene.clients[1])
        try scene.connect(writer, to: 0)
        try scene.connect(reader, to: 1)
        scene.pass(.milliseconds(100))
        #expect(writer.publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        reader.vanish()
        for number in 2...publications {
            #expect(writer.publish(number, in: Self.room))
            scene.pass(.milliseconds(5))
        }
        // The reader's node forgets the room.
        scene.pass(.seconds(3))
        return scene
    }

    private func expect(_ scene: ClusterScene, _ numbers: [Int]) {
        let reader = scene.clients[1]
        #expect(reader.received[Self.room]?.map(\.number) == numbers)
        #expect(reader.counts["unrecovered"] == nil)
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
    }

    /// Redis' reply with all of it would end the connection.
    @Test func historyThatIsLargerThanAReplyIsReadInPages() throws {
        var options = ClusterScene.Options(historyPage: 2000)
        options.client.replyLimits.byteCount = 8000
        let scene = try self.scene(publications: 60, options)
        try scene.connect(scene.clients[1], to: 1)
        scene.pass(.seconds(1))
        self.expect(scene, Array(1...60))
        scene.finish()
    }

    /// The node drops the messages that arrive during the reading.
    @Test(arguments: [400, 2000, 6000])
    func whatIsPublishedWhilePagesAreReadIsDelivered(_ page: Int) throws {
        let scene = try self.scene(publications: 60, ClusterScene.Options(historyPage: page))
        try scene.connect(scene.clients[1], to: 1)
        for number in 61...160 {
            #expect(scene.clients[0].publish(number, in: Self.room))
            scene.pass(.milliseconds(1))
        }
        scene.pass(.seconds(1))
        self.expect(scene, Array(1...160))
        scene.finish()
    }

    /// With a page for each publication, the newest are read long before the oldest.
    @Test func whatIsRemovedAfterItsPageWasReadIsNotRecovered() throws {
        let scene = try self.scene(publications: 60, ClusterScene.Options(historyPage: 400))
        try scene.connect(scene.clients[1], to: 1)
        scene.pass(.milliseconds(60))
        #expect(!scene.clients[1].isInAllRooms)
        ClusterOperator().remove(59, from: Self.room, on: scene.nodes[0])
        scene.pass(.seconds(2))
        self.expect(scene, Array(1...58) + [60])
        scene.finish()
    }

    /// A page has one publication, and Redis trims faster than the pages are read.
    @Test func historyThatIsTrimmedBetweenItsPagesHasNoHole() throws {
        let options = ClusterScene.Options(historySizes: [30, 30], historyPage: 400)
        let scene = try self.scene(publications: 40, options)
        let (writer, reader) = (scene.clients[0], scene.clients[1])
        try scene.connect(reader, to: 1)
        scene.pass(.seconds(1))
        reader.askForHistory(of: Self.room, limit: 100)
        scene.pass(.milliseconds(1))
        for number in 41...55 {
            #expect(writer.publish(number, in: Self.room))
            scene.pass(.milliseconds(1))
        }
        for _ in 0..<100 where reader.histories.isEmpty { scene.pass(.milliseconds(20)) }
        let history = try #require(reader.histories.first)
        let first = try #require(history.offsets.first)
        #expect(history.offsets == Array(first...55) && history.newest == 55)
        #expect(history.offsets.count >= 30)
        scene.finish()
    }

    /// Each of them may have 16 MiB, and is answered only when it is complete.
    @Test func fewHistoriesAreReadForOneClientAtTheSameTime() throws {
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: [Self.room])
        #expect(try scene.gather())
        let client = scene.clients[0]
        func readCount() -> Int { scene.redis.counts["read"] ?? 0 }
        let before = readCount()
        scene.redis.pause(for: .seconds(1))
        for _ in 0..<40 { client.askForHistory(of: Self.room, limit: 10) }
        scene.pass(.milliseconds(50))
        #expect(readCount() == before)
        // Redis executes what has come.
        scene.redis.heal()
        #expect(readCount() > before && readCount() <= before + 8)
        for _ in 0..<100 where client.histories.count < 40 { scene.pass(.milliseconds(20)) }
        #expect(client.histories.count == 40 && client.complaints == [])
        scene.finish()
    }

    /// Redis ends a connection that takes its replies too slowly. After a failover all rooms are read.
    @Test func fewStreamsAreReadAtTheSameTime() throws {
        let rooms = (0..<40).map { "room-\($0)" }
        let scene = try ClusterScene(loops: [1], clients: 0, rooms: [], plainMembers: rooms)
        // The node finds its Redis.
        scene.pass(.seconds(1))
        func readCount() -> Int { scene.redis.counts["read"] ?? 0 }
        let before = readCount()
        for member in scene.plainMembers { try scene.connect(member, to: 0) }
        // Redis executes what has come: subscriptions first, then what reads the rooms.
        for _ in 0..<2 {
            scene.redis.pause(for: .seconds(4))
            for _ in 0..<10 { scene.pass(.milliseconds(20)) }
            scene.redis.heal()
        }
        #expect(readCount() > before && readCount() <= before + 16)
        for _ in 0..<100 where readCount() < before + rooms.count { scene.pass(.milliseconds(20)) }
        #expect(readCount() == before + rooms.count)
        // All are read again after Redis was lost.
        scene.redis.pause(for: .seconds(1))
        scene.redis.cutAll()
        for _ in 0..<100 where readCount() < before + 2 * rooms.count { scene.pass(.milliseconds(100)) }
        #expect(readCount() == before + 2 * rooms.count)
        #expect(scene.plainMembers.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// With a page for each publication, Redis answers with one of them after each pause.
    @Test(arguments: [(200, false), (1000, true)])
    func entryWaitsForHalfAMinuteWhileTheHistoryIsRead(_ pause: Int, _ isRefused: Bool) throws {
        let scene = try self.scene(publications: 60, ClusterScene.Options(historyPage: 400))
        let reader = scene.clients[1]
        try scene.connect(reader, to: 1)
        var waited = 0
        while waited < 40_000, !reader.isInAllRooms, reader.counts["refused subscriptions"] == nil {
            scene.redis.pause(for: .seconds(4))
            scene.pass(.milliseconds(pause))
            scene.redis.heal()
            waited += pause
        }
        #expect(reader.isInAllRooms == !isRefused && reader.counts["refused subscriptions"] == (isRefused ? 1 : nil))
        #expect(waited > (isRefused ? 29_000 : 10_000))
        if !isRefused { self.expect(scene, Array(1...60)) }
        scene.finish()
    }

    @Test func entryFailsWhenNothingIsReadForFiveSeconds() throws {
        let scene = try self.scene(publications: 60, ClusterScene.Options(historyPage: 400))
        let reader = scene.clients[1]
        try scene.connect(reader, to: 1)
        scene.pass(.milliseconds(60))
        #expect(!reader.isInAllRooms)
        scene.redis.pause(for: .seconds(20))
        scene.pass(.seconds(4))
        #expect(reader.counts["refused subscriptions"] == nil)
        scene.pass(.seconds(4))
        #expect(reader.counts["refused subscriptions"] == 1)
        scene.finish()
    }

    /// Of 40 rooms whose histories have five pages each, the first are open long before all pages are read.
    @Test func historyIsReadToItsEndBeforeOthersAreBegun() throws {
        let rooms = (0..<40).map { "room-\($0)" }
        let scene = try ClusterScene(
            loops: [1, 1], clients: 1, rooms: rooms, plainMembers: rooms,
            options: ClusterScene.Options(historyPage: 400))
        let writer = scene.clients[0]
        try scene.connect(writer, to: 0)
        for _ in 0..<100 where !writer.isInAllRooms { scene.pass(.milliseconds(20)) }
        for number in 1...5 {
            for room in rooms { #expect(writer.publish(number, in: room)) }
            scene.pass(.milliseconds(50))
        }
        func openCount() -> Int { scene.nodes[1].shared.hub.rooms.count { $0.counts(now: .zero).members > 0 } }
        for member in scene.plainMembers { try scene.connect(member, to: 1) }
        // Subscriptions first, then a page of as many rooms as are read at the same time.
        for _ in 0..<8 {
            scene.redis.pause(for: .seconds(4))
            scene.pass(.milliseconds(200))
            scene.redis.heal()
        }
        #expect(openCount() >= 16 && openCount() < 40)
        for _ in 0..<100 where openCount() < 40 { scene.pass(.milliseconds(20)) }
        #expect(openCount() == 40)
        #expect(scene.plainMembers.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    @Test func historyIsNotReadForAClientThatIsGone() throws {
        let scene = try self.scene(publications: 60, ClusterScene.Options(historyPage: 400))
        func readCount() -> Int { scene.redis.counts["read"] ?? 0 }
        let before = readCount()
        scene.clients[0].askForHistory(of: Self.room, limit: 60)
        scene.pass(.milliseconds(20))
        #expect(readCount() > before)
        scene.clients[0].vanish()
        scene.pass(.seconds(1))
        #expect(readCount() < before + 30)
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    @Test func serverThatDoesNotAnswerHoldsUpTheHistoriesOfItsOwnRoomsAlone() throws {
        let names = (0..<99).map { "room-\($0)" }
        func first(ofServer server: Int) -> String? {
            names.first { ModelRedisSlots.slot(of: ModelRedis.channel(of: $0)) / 8192 == server }
        }
        let (silent, other) = (try #require(first(ofServer: 0)), try #require(first(ofServer: 1)))
        var options = ClusterScene.Options()
        options.isRedisCluster = true
        let scene = try ClusterScene(loops: [1], clients: 4, rooms: [silent, other], options: options)
        #expect(try scene.gather())
        let last = scene.clients[3]
        scene.redis.pause(for: .seconds(4), server: 0)
        for client in scene.clients.dropLast() { for _ in 0..<8 { client.askForHistory(of: silent, limit: 1) } }
        scene.pass(.milliseconds(100))
        last.askForHistory(of: other, limit: 1)
        scene.pass(.milliseconds(500))
        #expect(scene.clients.map(\.histories.count) == [0, 0, 0, 1])
        scene.redis.heal()
        scene.pass(.seconds(1))
        #expect(scene.clients.map(\.histories.count) == [8, 8, 8, 1])
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// A reload of one node after the other, with members in the room.
    @Test(arguments: [[0, 1], [1, 0]])
    func membersMissNothingWhenTheirRoomBeginsToKeepAHistory(_ reloaded: [Int]) throws {
        let scene = try ClusterScene(loops: [1, 1], clients: 0, rooms: [], plainMembers: [Self.room, Self.room])
        let (writer, reader) = (scene.plainMembers[0], scene.plainMembers[1])
        let settings = scene.nodes.map(\.shared.hub.currentSettings)
        for (node, settings) in zip(scene.nodes, settings) {
            var former = settings
            former.policies[0].historySize = 0
            node.shared.hub.apply(former)
        }
        try scene.connect(writer, to: 0)
        try scene.connect(reader, to: 1)
        scene.pass(.seconds(1))
        var last = 0
        for node in [nil] + reloaded {
            if let node { scene.nodes[node].shared.hub.apply(settings[node]) }
            for _ in 0..<8 {
                last += 1
                #expect(writer.publish(last))
                scene.pass(.milliseconds(1))
            }
            scene.pass(.seconds(1))
            #expect(reader.stays.map(\.received) == [Array(1...last)])
        }
        #expect(scene.plainMembers.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        // The nodes have all that Redis keeps, not only what came after their reload.
        let epoch = try #require(scene.redis.stream(of: Self.room)?.epoch)
        for node in scene.nodes.indices {
            let client = try scene.recover([Self.room: (epoch, 0)], from: node)
            #expect(client.complaints == [] && client.counts["unrecovered"] == nil)
        }
        scene.finish()
    }

    /// The node reads the room 6 seconds after its last publication.
    @Test func copyOfAHistoryExpiresWithTheHistory() throws {
        let scene = try ClusterScene(
            loops: [1, 1], clients: 2, rooms: [Self.room], options: ClusterScene.Options(historyTime: "10s"))
        try scene.connect(scene.clients[0], to: 0)
        scene.pass(.milliseconds(100))
        #expect(scene.clients[0].publish(1, in: Self.room))
        scene.pass(.seconds(6))
        try scene.connect(scene.clients[1], to: 1)
        scene.pass(.seconds(1))
        self.expect(scene, [1])
        let epoch = try #require(scene.redis.stream(of: Self.room)?.epoch)
        scene.pass(.seconds(4))
        let client = try scene.recover([Self.room: (epoch, 0)], from: 1)
        #expect(client.counts["unrecovered"] == 1 && client.received[Self.room] == nil)
        scene.finish()
    }

    /// The publication that the node missed kept the one before it from expiring in Redis.
    @Test func copyThatExpiredTooEarlyIsReadAgain() throws {
        let scene = try ClusterScene(
            loops: [1], clients: 1, rooms: [Self.room], options: ClusterScene.Options(historyTime: "10s"))
        #expect(try scene.gather())
        let writer = scene.clients[0]
        #expect(writer.publish(1, in: Self.room))
        scene.pass(.seconds(8))
        scene.redis.nextFault = .losePush
        #expect(writer.publish(2, in: Self.room))
        scene.pass(.seconds(3))
        #expect(scene.redis.counts["losePush"] == 1 && writer.received[Self.room]?.map(\.number) == [1])
        #expect(writer.publish(3, in: Self.room))
        scene.pass(.milliseconds(100))
        #expect(writer.received[Self.room]?.map(\.number) == [1, 2, 3])
        let epoch = try #require(scene.redis.stream(of: Self.room)?.epoch)
        let client = try scene.recover([Self.room: (epoch, 0)], from: 0)
        #expect(client.counts["unrecovered"] == nil && client.received[Self.room]?.map(\.number) == [1, 2, 3])
        scene.finish()
    }

    /// Redis has all publications, and the node only the newest of them.
    @Test func nodeThatKeepsLessThanRedisDoesNotClaimToRecoverMore() throws {
        let scene = try self.scene(publications: 20, ClusterScene.Options(historySizes: [100_000, 5]))
        let epoch = try #require(scene.redis.stream(of: Self.room)?.epoch)
        for (offset, isRecovered) in [(1, false), (14, false), (15, true), (19, true), (20, true)] {
            let client = try scene.recover([Self.room: (epoch, offset)], from: 1)
            #expect(client.counts["unrecovered"] == (isRecovered ? nil : 1), "\(offset)")
            let numbers = client.received[Self.room]?.map(\.number) ?? []
            #expect(numbers == (isRecovered ? (1...20).filter { $0 > offset } : []), "\(offset)")
        }
        scene.finish()
    }

    /// Each of them may have 16 MiB, and is answered only when it is complete.
    @Test func fewRoomsAreRecoveredForOneClientAtTheSameTime() throws {
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: (0..<40).map { "room-\($0)" })
        // The node finds its Redis.
        scene.pass(.seconds(1))
        func readCount() -> Int { scene.redis.counts["read"] ?? 0 }
        let before = readCount()
        try scene.connect(scene.clients[0], to: 0)
        // Redis executes what has come: subscriptions first, then what reads the rooms.
        for _ in 0..<2 {
            scene.redis.pause(for: .seconds(4))
            for _ in 0..<10 { scene.pass(.milliseconds(20)) }
            scene.redis.heal()
        }
        #expect(readCount() > before && readCount() <= before + 8)
        for _ in 0..<100 where !scene.clients[0].isInAllRooms { scene.pass(.milliseconds(20)) }
        #expect(scene.clients[0].isInAllRooms && readCount() == before + 40)
        #expect(scene.clients[0].complaints == [])
        scene.finish()
    }
}
