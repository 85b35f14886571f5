import GatewayConfiguration
import GatewayCore
import Rooms
import TestSupport
import Testing

/// What rooms do when Redis goes back to an older state, and when nodes miss what happens.
@Suite("Rooms of a cluster whose Redis fails")
struct ClusterFailoverTests {
    private static let room = "a"

    private func position(_ client: ClusterClient) -> (epoch: String, offset: Int) {
        client.positions[Self.room] ?? ("", 0)
    }

    /// Both have the first publication, and the reader has gone.
    private func sceneWithoutItsReader() throws -> (ClusterScene, reader: ClusterClient, writer: ClusterClient) {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room])
        let (reader, writer) = (scene.clients[0], scene.clients[1])
        #expect(try scene.gather())
        #expect(writer.publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        reader.vanish()
        return (scene, reader, writer)
    }

    /// The connection on which the node would have heard of it is lost.
    @Test func whatWasRemovedIsNotRecoveredFromANodeThatDidNotHearOfIt() throws {
        let (scene, reader, writer) = try self.sceneWithoutItsReader()
        #expect(writer.publish(2, in: Self.room))
        scene.pass(.milliseconds(50))
        scene.redis.nextFault = .cutPush
        ClusterOperator().remove(2, from: Self.room, on: scene.nodes[0])
        scene.pass(.seconds(2))
        #expect(scene.redis.counts["cutPush"] == 1 && scene.redis.removed.count == 1)
        #expect(try scene.gather())
        #expect(reader.received[Self.room]?.map(\.number) == [1])
        #expect(reader.counts["unrecovered"] == nil && self.position(reader).offset == 2)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// The node has the answer of Redis, and not yet the message that all nodes get.
    @Test func whoEntersAfterAPublicationWasAcknowledgedRecoversIt() throws {
        let (scene, reader, writer) = try self.sceneWithoutItsReader()
        scene.redis.nextFault = .losePush
        #expect(writer.publish(2, in: Self.room))
        scene.pass(.milliseconds(50))
        #expect(scene.redis.counts["losePush"] == 1 && self.position(writer).offset == 1)
        try scene.connect(reader, to: 0)
        scene.pass(.milliseconds(100))
        #expect(reader.received[Self.room]?.map(\.number) == [1, 2])
        // The others have it, too, as the room was read again.
        #expect(self.position(writer).offset == 2)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// Each node numbers its connections alone.
    @Test func presenceListsMembersWithoutAProtocolOfAllNodes() throws {
        let scene = try ClusterScene(
            loops: [1, 1], clients: 2, rooms: [Self.room], plainMembers: [Self.room, Self.room])
        for node in 0...1 { try scene.connect(scene.clients[node], to: node) }
        scene.pass(.milliseconds(100))
        for node in 0...1 { try scene.connect(scene.plainMembers[node], to: node) }
        scene.pass(.milliseconds(100))
        scene.clients[0].askForPresence()
        scene.pass(.milliseconds(100))
        #expect(scene.clients[0].listed[Self.room] == 4)
        scene.plainMembers[1].vanish()
        scene.pass(.milliseconds(100))
        scene.clients[0].askForPresence()
        scene.pass(.milliseconds(100))
        #expect(scene.clients[0].listed[Self.room] == 3)
        scene.finish()
    }

    /// It may speak on its next connection from then on.
    @Test func connectionWithoutAProtocolEndsWhenItsMessagesAreStored() throws {
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: [Self.room], plainMembers: [Self.room])
        #expect(try scene.gather())
        let stream = try scene.stream(to: 0)
        scene.pass(.milliseconds(100))
        scene.redis.pause(for: .seconds(1))
        #expect(scene.plainMembers[0].publish(1))
        scene.plainMembers[0].sendClose()
        stream.send("hello\n")
        stream.finish()
        scene.pass(.milliseconds(900))
        #expect(scene.plainMembers[0].isConnected && !stream.sawEnd)
        for _ in 0..<2 { scene.pass(.milliseconds(150)) }
        #expect(!scene.plainMembers[0].isConnected && stream.sawEnd)
        #expect(scene.clients[0].received[Self.room]?.map(\.number) == [1])
        scene.finish()
    }

    @Test func connectionWithoutAProtocolEndsAfterSomeTimeIfRedisDoesNotAnswer() throws {
        let scene = try ClusterScene(loops: [1], clients: 0, rooms: [], plainMembers: [Self.room])
        #expect(try scene.gather())
        scene.redis.pause(for: .seconds(60))
        #expect(scene.plainMembers[0].publish(1))
        scene.plainMembers[0].sendClose()
        scene.pass(.seconds(4))
        #expect(scene.plainMembers[0].isConnected)
        scene.pass(.seconds(2))
        #expect(!scene.plainMembers[0].isConnected)
        scene.finish()
    }

    /// The nodes know different runs of the server until the first one asks again.
    @Test func appendOnlyFileThatBeginsBetweenTheStartsOfTwoNodesInterruptsNobody() throws {
        let scene = try ClusterScene(loops: [1, 1], clients: 2, rooms: [Self.room])
        try scene.connect(scene.clients[0], to: 0)
        scene.pass(.milliseconds(100))
        #expect(scene.clients[0].publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        scene.redis.beginAppendOnlyFile()
        try scene.replaceNode(1)
        scene.pass(.milliseconds(100))
        try scene.connect(scene.clients[1], to: 1)
        scene.pass(.milliseconds(100))
        for number in 2...9 {
            #expect(scene.clients[number % 2].publish(number, in: Self.room))
            scene.pass(.milliseconds(20))
        }
        #expect(Set(scene.redis.everStored.map(\.epoch)).count == 1 && scene.redis.everStored.count == 9)
        #expect(scene.clients.allSatisfy { $0.counts["interruptions"] == nil && self.position($0).offset == 9 })
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// A node that was started after the failover does not know that publications are missing.
    ///
    /// With `appendfsync everysec`, an append-only file lacks them after a crash, too.
    @Test(arguments: [false, true])
    func positionsThatRedisHasForgottenAreNotGivenAgain(_ hasAppendOnlyFile: Bool) throws {
        let scene = try ClusterScene(
            loops: [1], clients: 2, rooms: [Self.room], options: ClusterScene.Options(isDurable: false))
        let (reader, writer) = (scene.clients[0], scene.clients[1])
        if hasAppendOnlyFile { scene.redis.beginAppendOnlyFile() }
        #expect(try scene.gather())
        #expect(writer.publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        scene.redis.saveState()
        #expect(writer.publish(2, in: Self.room))
        scene.pass(.milliseconds(50))
        let before = self.position(reader)
        #expect(before.offset == 2)
        reader.vanish()
        try scene.replaceNode(0)
        if hasAppendOnlyFile { scene.redis.restartWithoutTheEnd() } else { scene.redis.failOver(away: .zero) }
        scene.pass(.milliseconds(50))
        try scene.connect(writer, to: 0)
        scene.pass(.seconds(2))
        for number in 3...4 { #expect(writer.publish(number, in: Self.room)) }
        scene.pass(.milliseconds(50))
        #expect(try scene.gather())
        #expect(self.position(reader).epoch != before.epoch)
        #expect(reader.counts["unrecovered"] == 1 && reader.counts["recoveries"] == nil)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// The node has more than the file, and notices it.
    @Test func appendOnlyFileWithoutItsEndLeavesTheRestOfTheHistory() throws {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room], plainMembers: [Self.room])
        scene.redis.beginAppendOnlyFile()
        #expect(try scene.gather())
        try scene.connect(scene.plainMembers[0], to: 0)
        scene.pass(.milliseconds(100))
        for number in 1...4 {
            if number == 3 { scene.redis.saveState() }
            #expect(scene.clients[1].publish(number, in: Self.room))
            scene.pass(.milliseconds(50))
        }
        let before = self.position(scene.clients[0])
        scene.redis.restartWithoutTheEnd()
        scene.pass(.seconds(2))
        #expect(try scene.gather())
        #expect(scene.clients[1].publish(5, in: Self.room))
        scene.pass(.milliseconds(50))
        let after = self.position(scene.clients[0])
        #expect(before.offset == 4 && after.offset == 3 && after.epoch != before.epoch)
        #expect(scene.redis.stream(of: Self.room)?.entries.map(\.offset) == [1, 2, 3])
        #expect(scene.clients.allSatisfy { $0.counts["interruptions"] == 1 && $0.counts["unrecovered"] == 1 })
        #expect(scene.plainMembers[0].stays.map(\.received) == [Array(1...5)])
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// They are sent before the node has read the room again.
    @Test func messagesThatWaitedForRedisDoNotGetPositionsThatOthersHad() throws {
        let scene = try ClusterScene(
            loops: [1], clients: 2, rooms: [Self.room], plainMembers: [Self.room, Self.room])
        let reader = scene.clients[0]
        scene.redis.beginAppendOnlyFile()
        #expect(try scene.gather())
        for member in scene.plainMembers { try scene.connect(member, to: 0) }
        scene.pass(.milliseconds(100))
        for number in 1...4 {
            if number == 3 { scene.redis.saveState() }
            #expect(scene.clients[1].publish(number, in: Self.room))
            scene.pass(.milliseconds(50))
        }
        let before = self.position(reader)
        #expect(before.offset == 4)
        reader.vanish()
        scene.redis.restartWithoutTheEnd()
        scene.pass(.milliseconds(5))
        for (number, member) in zip(5..., scene.plainMembers) { #expect(member.publish(number)) }
        scene.pass(.seconds(2))
        #expect(try scene.gather())
        #expect(scene.redis.everStored.count == 6)
        #expect(scene.redis.everStored.filter { $0.epoch == before.epoch }.map(\.offset) == [1, 2, 3, 4])
        #expect(self.position(reader).epoch != before.epoch && reader.counts["unrecovered"] == 1)
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    @Test(arguments: [(true, true), (true, false), (false, true)])
    func epochOutlastsARestartOnlyOfAServerWhoseAppendOnlyFileIsComplete(
        _ hasAppendOnlyFile: Bool, _ isDurable: Bool
    ) throws {
        let scene = try ClusterScene(
            loops: [1], clients: 2, rooms: [Self.room], options: ClusterScene.Options(isDurable: isDurable))
        if hasAppendOnlyFile { scene.redis.beginAppendOnlyFile() }
        #expect(try scene.gather())
        #expect(scene.clients[1].publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        let before = self.position(scene.clients[0])
        scene.redis.restart(away: .zero)
        scene.pass(.seconds(2))
        #expect(try scene.gather())
        let keepsEpoch = hasAppendOnlyFile && isDurable
        #expect(scene.clients[1].publish(2, in: Self.room))
        scene.pass(.milliseconds(50))
        let after = self.position(scene.clients[0])
        #expect(after.offset == 2 && (after.epoch == before.epoch) == keepsEpoch)
        #expect(scene.clients.allSatisfy { $0.counts["interruptions"] == (keepsEpoch ? nil : 1) })
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    @Test(arguments: [("everysec", 1), ("always", 0), (nil, 0)])
    func appendOnlyFileThatMayLackItsEndIsOneWarning(_ appendFsync: String?, _ count: Int) throws {
        let scene = try ClusterScene(
            loops: [2], clients: 1, rooms: [Self.room], options: ClusterScene.Options(warns: true))
        scene.redis.appendFsync = appendFsync
        scene.redis.beginAppendOnlyFile()
        #expect(try scene.gather())
        scene.redis.restart(away: .zero)
        scene.pass(.seconds(10))
        #expect(scene.redis.counts["config"] == 1)
        #expect(scene.warnings.count == count && scene.warnings.allSatisfy { $0.contains("appendfsync") })
        scene.finish()
    }

    @Test func settingsAreAskedForAgainIfTheAnswerIsLost() throws {
        let scene = try ClusterScene(
            loops: [1], clients: 1, rooms: [Self.room], options: ClusterScene.Options(warns: true))
        scene.redis.appendFsync = "everysec"
        scene.redis.cutsAtNextConfig = true
        scene.redis.beginAppendOnlyFile()
        #expect(try scene.gather())
        scene.pass(.seconds(10))
        #expect(scene.redis.counts["config"] == 2 && scene.warnings.count == 1)
        scene.finish()
    }

    @Test(arguments: [(true, false), (false, true)])
    func serverWithoutADurableFileIsNotAskedForItsSettings(_ hasAppendOnlyFile: Bool, _ isDurable: Bool) throws {
        let scene = try ClusterScene(
            loops: [1], clients: 1, rooms: [Self.room],
            options: ClusterScene.Options(isDurable: isDurable, warns: true))
        if hasAppendOnlyFile { scene.redis.beginAppendOnlyFile() }
        #expect(try scene.gather())
        scene.pass(.seconds(10))
        #expect(scene.redis.counts["config"] == nil && scene.warnings == [])
        scene.finish()
    }

    /// The first publication tells the nodes of the new stream, and they read it from there.
    @Test func membersWithoutAPositionGetWhatIsPublishedAfterRedisHasForgottenAll() throws {
        let scene = try ClusterScene(loops: [1, 1], clients: 0, rooms: [], plainMembers: [Self.room, Self.room])
        let (writer, reader) = (scene.plainMembers[0], scene.plainMembers[1])
        try scene.connect(writer, to: 0)
        try scene.connect(reader, to: 1)
        scene.pass(.seconds(1))
        for number in 1...9 {
            if number.isMultiple(of: 3) { scene.redis.forgetKeys() }
            #expect(writer.publish(number))
            scene.pass(.milliseconds(50))
        }
        #expect(reader.stays.map(\.received) == [Array(1...9)] && writer.stays.map(\.received) == [[]])
        #expect(scene.plainMembers.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// The server has publications of the former epoch, and they are not sent once more.
    @Test func membersWithoutAPositionGetNothingTwiceAfterAFailover() throws {
        let scene = try ClusterScene(loops: [1, 1], clients: 0, rooms: [], plainMembers: [Self.room, Self.room])
        let (writer, reader) = (scene.plainMembers[0], scene.plainMembers[1])
        try scene.connect(writer, to: 0)
        try scene.connect(reader, to: 1)
        scene.pass(.seconds(1))
        for number in 1...9 {
            if number == 4 { scene.redis.saveState() }
            if number == 7 {
                scene.redis.failOver(away: .zero)
                scene.pass(.seconds(2))
            }
            #expect(writer.publish(number))
            scene.pass(.milliseconds(50))
        }
        #expect(reader.stays.map(\.received) == [Array(1...9)])
        #expect(scene.plainMembers.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }

    /// A repetition is not delivered when Redis is back, either.
    @Test func publicationWithAKeyIsDeliveredOnceWithoutRedis() throws {
        let scene = try ClusterScene(
            loops: [1], clients: 0, rooms: [], plainMembers: [Self.room],
            options: ClusterScene.Options(deliversAlone: true))
        let node = scene.nodes[0]
        var settings = node.shared.hub.currentSettings
        settings.policies[0].historySize = 0
        node.shared.hub.apply(settings)
        try scene.connect(scene.plainMembers[0], to: 0)
        scene.pass(.seconds(1))
        scene.redis.restart(away: .seconds(3))
        scene.pass(.milliseconds(100))
        let control = ClusterOperator()
        control.publish(1, in: Self.room, on: node, node: 0)
        scene.pass(.milliseconds(50))
        control.repeatRequest(control.requests[0], on: node, node: 0)
        scene.pass(.seconds(9))
        control.repeatRequest(control.requests[0], on: node, node: 0)
        control.publish(2, in: Self.room, on: node, node: 0)
        scene.pass(.seconds(1))
        #expect(scene.plainMembers[0].stays.map(\.received) == [[1, 2]])
        #expect(control.requests.map(\.positions.count) == [3, 1] && scene.redis.everStored.count == 1)
        scene.finish()
    }
}
