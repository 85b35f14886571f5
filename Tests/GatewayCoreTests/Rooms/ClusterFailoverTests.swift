import Testing

/// What rooms do when Redis goes back to an older state, or starts again.
@Suite("Rooms of a cluster whose Redis starts again")
struct ClusterFailoverTests {
    private static let room = "a"

    private func position(_ client: ClusterClient) -> (epoch: String, offset: Int) {
        client.positions[Self.room] ?? ("", 0)
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
