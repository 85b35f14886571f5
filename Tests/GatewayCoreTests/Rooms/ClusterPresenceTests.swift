import Cluster
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Presence in the rooms of a cluster")
struct ClusterPresenceTests {
    private static let room = "a"

    /// Another client may ask for the room's clients as soon as this one knows that it is in the room.
    @Test func replyToSubscribeWaitsUntilTheClientIsListed() throws {
        let scene = try ClusterScene(loops: [1, 1], clients: 3, rooms: [Self.room])
        let (first, other, late) = (scene.clients[0], scene.clients[1], scene.clients[2])
        try scene.connect(first, to: 0)
        try scene.connect(other, to: 1)
        for _ in 0..<20 where !(first.isInAllRooms && other.isInAllRooms) { scene.pass(.milliseconds(100)) }
        #expect(first.isInAllRooms && other.isInAllRooms)

        try scene.connect(late, to: 0)
        // The node has the room, and Redis does not answer.
        scene.redis.pause(for: .milliseconds(200))
        for _ in 0..<9 { scene.pass(.milliseconds(20)) }
        #expect(late.isConnected && !late.isInAllRooms)
        for _ in 0..<20 where !late.isInAllRooms { scene.pass(.milliseconds(20)) }
        #expect(late.isInAllRooms)
        other.askForPresence()
        scene.pass(.milliseconds(100))
        scene.pass(.milliseconds(100))
        #expect(other.listed[Self.room] == 3)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// Its room is entered when Redis has listed it.
    @Test func whatAStreamSendsBeforeItHasEnteredIsPublished() throws {
        let scene = try ClusterScene(loops: [1], clients: 0, rooms: [], plainMembers: ["lobby"])
        let reader = scene.plainMembers[0]
        try scene.connect(reader, to: 0)
        scene.pass(.seconds(1))
        scene.redis.pause(for: .milliseconds(200))
        let stream = try scene.stream(to: 0)
        stream.send(#"{"n":1}"# + "\n" + #"{"n":2}"# + "\n")
        for _ in 0..<5 { scene.pass(.milliseconds(20)) }
        #expect(reader.stays.map(\.received) == [[]])
        for _ in 0..<20 { scene.pass(.milliseconds(50)) }
        #expect(reader.stays.map(\.received) == [[1, 2]] && reader.complaints == [])
        scene.finish()
    }

    @Test func whatAWebSocketSendsBeforeItHasEnteredIsPublished() throws {
        let scene = try ClusterScene(loops: [1], clients: 0, rooms: [], plainMembers: ["lobby", "lobby"])
        let (reader, speaker) = (scene.plainMembers[0], scene.plainMembers[1])
        try scene.connect(reader, to: 0)
        scene.pass(.seconds(1))
        scene.redis.pause(for: .milliseconds(200))
        try scene.connect(speaker, to: 0)
        scene.pass(.milliseconds(20))
        speaker.read()
        #expect(speaker.publish(1) && speaker.publish(2))
        for _ in 0..<4 { scene.pass(.milliseconds(20)) }
        #expect(reader.stays.map(\.received) == [[]])
        for _ in 0..<20 { scene.pass(.milliseconds(50)) }
        #expect(reader.stays.map(\.received) == [[1, 2]] && reader.complaints == [])
        scene.finish()
    }

    /// The commands of the loop that renews and of the loop with the client go to Redis by two connections.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func clientThatLeavesDuringARenewalIsNotListed(_ seed: UInt64) throws {
        let scene = try ClusterScene(loops: [2], clients: 2, rooms: [Self.room], seed: seed)
        let (watcher, leaver) = (scene.clients[0], scene.clients[1])
        try scene.connect(watcher, to: 0)
        // Renewals follow every 3 seconds from the first on.
        var renewal = MonotonicInstant(nanoseconds: 0).advanced(by: .seconds(2))
        for number in 0..<60 {
            renewal = renewal.advanced(by: .seconds(3))
            try scene.connect(leaver, to: 0)
            scene.pass(.seconds(1))
            #expect(leaver.isInAllRooms)
            let leaving = renewal.advanced(by: .microseconds(100 * number - 3000))
            scene.pass(scene.network.now.duration(to: leaving))
            leaver.vanish()
            scene.pass(.milliseconds(20))
            watcher.askForPresence()
            scene.pass(.milliseconds(20))
            scene.pass(.milliseconds(20))
            #expect(watcher.listed[Self.room] == 1, "left at \(leaving)")
        }
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// The connection accepts fewer commands than a renewal of all rooms needs.
    @Test func clientsOfManyRoomsStayListedAndPublicationsAreNotRefusedMeanwhile() throws {
        var options = ClusterScene.Options()
        options.client.maximumCommands = 32
        let rooms = (0..<40).map { "room-\($0)" }
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: rooms, options: options)
        let client = scene.clients[0]
        #expect(try scene.gather())
        // Those that were refused when the client entered are listed by a renewal.
        scene.pass(.seconds(7))
        for _ in 0..<20 {
            scene.pass(.seconds(1))
            let missing = rooms.filter { scene.redis.listedCount(in: $0) != 1 }
            #expect(missing == [], "at \(scene.network.now)")
        }
        // Longer than from one renewal to the next.
        for number in 1...2000 {
            #expect(client.publish(number, in: rooms[0]))
            scene.pass(.milliseconds(2))
        }
        scene.pass(.milliseconds(50))
        #expect(client.acknowledged.count == 2000 && client.counts["refused"] == nil)
        #expect(client.complaints == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// One command renews 64 of them.
    @Test func allMembersOfALargeRoomStayListed() throws {
        let members = Array(repeating: Self.room, count: 140)
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: [Self.room], plainMembers: members)
        #expect(try scene.gather())
        for _ in 0..<20 {
            scene.pass(.seconds(1))
            #expect(scene.redis.listedCount(in: Self.room) == 141, "at \(scene.network.now)")
        }
        scene.finish()
    }

    /// One reply of Redis with all of them could be larger than a connection takes.
    @Test func largeRoomIsListedPageByPage() throws {
        var options = ClusterScene.Options()
        options.presencePage = 4000
        let members = Array(repeating: Self.room, count: 140)
        let scene = try ClusterScene(
            loops: [1], clients: 1, rooms: [Self.room], plainMembers: members, options: options)
        #expect(try scene.gather())
        let before = scene.redis.counts["list"] ?? 0
        scene.clients[0].askForPresence()
        for _ in 0..<50 where scene.clients[0].listed[Self.room] == nil { scene.pass(.milliseconds(20)) }
        #expect(scene.clients[0].listed[Self.room] == 141)
        #expect((scene.redis.counts["list"] ?? 0) - before > 5)
        scene.finish()
    }

    @Test func listThatIsTooLargeForAnAnswerIsRefusedAndCountedNevertheless() throws {
        var options = ClusterScene.Options()
        options.presencePage = 1000
        options.presenceLimit = 1000
        let members = Array(repeating: Self.room, count: 40)
        let scene = try ClusterScene(
            loops: [1], clients: 1, rooms: [Self.room], plainMembers: members, options: options)
        #expect(try scene.gather())
        scene.clients[0].askForPresence()
        for _ in 0..<50 where scene.clients[0].presenceErrors.isEmpty { scene.pass(.milliseconds(20)) }
        #expect(scene.clients[0].presenceErrors == [106] && scene.clients[0].isConnected)
        scene.clients[0].askForCounts(in: Self.room)
        for _ in 0..<50 where scene.clients[0].counted[Self.room] == nil { scene.pass(.milliseconds(20)) }
        #expect(scene.clients[0].counted[Self.room] == 41)
        scene.finish()
    }

    /// A large room takes much of Redis' time, and after a restart all clients ask for its members.
    @Test func roomIsListedForAllThatAskMeanwhileTogether() throws {
        let scene = try ClusterScene(loops: [1], clients: 20, rooms: [Self.room])
        #expect(try scene.gather())
        func listCount() -> Int { scene.redis.counts["list"] ?? 0 }
        let before = listCount()
        scene.redis.pause(for: .seconds(1))
        for client in scene.clients { client.askForPresence() }
        scene.pass(.milliseconds(50))
        #expect(listCount() == before)
        scene.redis.heal()
        for _ in 0..<50 where scene.clients.contains(where: { $0.listed[Self.room] == nil }) {
            scene.pass(.milliseconds(20))
        }
        #expect(scene.clients.allSatisfy { $0.listed[Self.room] == 20 })
        // The first one's, and one for those that asked later.
        #expect(listCount() == before + 2)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    @Test func clientEntersWithoutBeingListedWhileRedisIsLost() throws {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room])
        let (first, late) = (scene.clients[0], scene.clients[1])
        try scene.connect(first, to: 0)
        for _ in 0..<20 where !first.isInAllRooms { scene.pass(.milliseconds(100)) }
        try scene.connect(late, to: 0)
        scene.redis.pause(for: .seconds(1))
        for _ in 0..<9 { scene.pass(.milliseconds(20)) }
        #expect(!late.isInAllRooms)
        scene.redis.cutAll()
        for _ in 0..<5 where !late.isInAllRooms { scene.pass(.milliseconds(20)) }
        #expect(late.isInAllRooms)
        // It is listed when Redis is back.
        for _ in 0..<100 where first.listed[Self.room] != 2 {
            first.askForPresence()
            scene.pass(.milliseconds(200))
        }
        #expect(first.listed[Self.room] == 2)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// A large room takes much of Redis' time.
    @Test func clientsOfARoomAreCountedForSeveralCallersTogether() throws {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room])
        #expect(try scene.gather())
        func listCount() -> Int { scene.redis.counts["list"] ?? 0 }
        let before = listCount()
        for client in scene.clients { for _ in 0..<20 { client.askForCounts(in: Self.room) } }
        for _ in 0..<20 { scene.pass(.milliseconds(50)) }
        #expect(scene.clients.allSatisfy { $0.counted[Self.room] == 2 })
        #expect(listCount() > before && listCount() < before + 20)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    @Test func fewRoomsAreCountedForOneClientAtTheSameTime() throws {
        let rooms = (0..<40).map { "room-\($0)" }
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: rooms)
        #expect(try scene.gather())
        let client = scene.clients[0]
        func listCount() -> Int { scene.redis.counts["list"] ?? 0 }
        let before = listCount()
        scene.redis.pause(for: .seconds(1))
        for room in rooms { client.askForCounts(in: room) }
        scene.pass(.milliseconds(50))
        #expect(listCount() == before)
        // Redis executes what has come.
        scene.redis.heal()
        #expect(listCount() > before && listCount() <= before + 8)
        for _ in 0..<100 where client.counted.count < rooms.count { scene.pass(.milliseconds(20)) }
        #expect(client.counted.count == rooms.count && client.complaints == [])
        scene.finish()
    }
}
