import Testing

/// What rooms do when Redis goes back to an older state, and when nodes miss what happens.
@Suite("Rooms of a cluster whose Redis fails")
struct ClusterFailoverTests {
    private static let room = "a"

    private func position(_ client: ClusterClient) -> (epoch: String, offset: Int) {
        client.positions[Self.room] ?? ("", 0)
    }

    /// The connection on which the node would have heard of it is lost.
    @Test func whatWasRemovedIsNotRecoveredFromANodeThatDidNotHearOfIt() throws {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room])
        let (reader, writer) = (scene.clients[0], scene.clients[1])
        #expect(try scene.gather())
        #expect(writer.publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        reader.vanish()
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
    @Test func positionsThatRedisHasForgottenAreNotGivenAgain() throws {
        let scene = try ClusterScene(loops: [1], clients: 2, rooms: [Self.room])
        let (reader, writer) = (scene.clients[0], scene.clients[1])
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
        scene.redis.failOver(away: .zero)
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
}
