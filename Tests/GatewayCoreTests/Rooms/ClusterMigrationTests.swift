import Testing

@Suite("Rooms whose slot of a Redis Cluster migrates")
struct ClusterMigrationTests {
    private static let room = "a"

    private func scene(_ seed: UInt64) throws -> ClusterScene {
        var options = ClusterScene.Options()
        options.isRedisCluster = true
        let scene = try ClusterScene(loops: [1, 2], clients: 2, rooms: [Self.room], options: options, seed: seed)
        for (node, client) in scene.clients.enumerated() { try scene.connect(client, to: node) }
        #expect(try scene.gather())
        return scene
    }

    private func numbers(_ scene: ClusterScene) -> [[Int]] {
        scene.clients.map { $0.received[Self.room]?.map(\.number) ?? [] }
    }

    /// Members get each publication while the migration is where it is, and not only when it ends.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func membersGetAllPublicationsInEachStageOfTheMigration(_ seed: UInt64) throws {
        let scene = try self.scene(seed)
        let redis = scene.redis
        let stages: [() -> Void] = [
            {}, { redis.migrate(Self.room) },
            { for key in [":meta", ":stream", ":presence", ":expiry"] { redis.migrate(Self.room, key: key) } },
            { redis.endMigration(of: Self.room) },
        ]
        var last = 0
        for stage in stages {
            stage()
            for _ in 0..<5 {
                last += 1
                #expect(scene.clients[last % 2].publish(last, in: Self.room))
                scene.pass(.milliseconds(20))
            }
            scene.pass(.seconds(1))
            let numbers = self.numbers(scene)
            #expect(numbers[0] == numbers[1] && numbers[0].sorted() == Array(1...last))
        }
        #expect(scene.clients.reduce(0) { $0 + $1.acknowledged.count } == last)
        #expect(redis.counts["ASK", default: 0] > 0)
        #expect(scene.clients.flatMap(\.complaints) == [] && redis.complaints == [])
        scene.finish()
    }

    /// No server executes a publication while its keys are at both.
    @Test func publicationsWaitForTheKeysOfTheirRoom() throws {
        let scene = try self.scene(1)
        #expect(scene.clients[0].publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        scene.redis.migrate(Self.room)
        scene.redis.migrate(Self.room, key: ":stream")
        for number in 2...5 { #expect(scene.clients[0].publish(number, in: Self.room)) }
        scene.pass(.seconds(3))
        #expect(scene.clients[0].acknowledged == [1] && scene.redis.counts["TRYAGAIN", default: 0] > 5)
        scene.redis.migrate(Self.room, key: ":meta")
        scene.pass(.seconds(1))
        #expect(scene.clients[0].acknowledged == [1, 2, 3, 4, 5] && scene.clients[0].counts["refused"] == nil)
        #expect(self.numbers(scene) == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]])
        scene.finish()
    }

    /// Nodes announce what they did themselves then, each on a connection of its own: a removal may overtake the publication
    /// that it removed.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func removalHoldsThatNodesHearOfBeforeThePublication(_ seed: UInt64) throws {
        let scene = try self.scene(seed)
        let program = ClusterOperator()
        #expect(scene.clients[0].publish(1, in: Self.room))
        scene.pass(.milliseconds(50))
        scene.redis.migrate(Self.room)
        for key in [":meta", ":stream", ":presence", ":expiry"] { scene.redis.migrate(Self.room, key: key) }
        for number in 2...40 {
            let start = try #require(scene.redis.everStored.last)
            let publisher = number % 2
            #expect(scene.clients[publisher].publish(number, in: Self.room))
            scene.pass(.microseconds(100 * number))
            program.remove(start.offset + 1, from: Self.room, on: scene.nodes[1 - publisher])
            scene.pass(.milliseconds(200))
            try scene.gather()
            #expect(scene.clients[0].publish(1000 + number, in: Self.room))
            scene.pass(.milliseconds(50))
            for node in 0...1 {
                let client = try scene.recover([Self.room: (start.epoch, start.offset)], from: node)
                let offsets = client.received[Self.room]?.map(\.offset) ?? []
                let removed = scene.redis.removedOffsets(of: Self.room)
                let stored = scene.redis.everStored.map(\.offset).filter { $0 > start.offset }
                #expect(Set(offsets) == Set(stored).subtracting(removed), "node \(node)")
            }
        }
        #expect(scene.redis.counts["removals", default: 0] > 5)
        #expect(scene.clients.flatMap(\.complaints) == [] && scene.redis.complaints == [])
        scene.finish()
    }
}
