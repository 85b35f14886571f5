import GatewayCore
import TestSupport
import Testing

@Suite("Connections of one user to the rooms")
struct ConnectionLimitTests {
    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1001", forwarding-trusted: [10.0.0.0/8]}
        routes:
          - {name: programs, path: /rooms, target: rooms}
        rooms:
          user-header: X-User
          max-connections-per-user: 1
          policies: [{name: all, pattern: "*", presence: true, join-leave: true}]
        """

    /// A connection that asks for room `x`.
    private func connect(_ user: String, _ scene: GatewayScene) throws -> RawWebSocketPeer {
        let peer = RawWebSocketPeer(try scene.client(1001), isClient: true)
        peer.peer.send(RawWebSocketPeer.request(to: "/rooms").replacing("Origin:", with: "X-User: \(user)\r\nOrigin:"))
        _ = try #require(scene.head(peer))
        peer.send(1, #"{"id":1,"connect":{"subs":{"x":{}}}}"#)
        return peer
    }

    private func text(_ peer: RawWebSocketPeer) -> String {
        peer.frames.map { String(decoding: $0.payload, as: UTF8.self) }.joined(separator: "\n")
    }

    @Test func refusedClientGetsNothingButTheCloseAndNobodyHearsOfIt() throws {
        let scene = try GatewayScene(Self.configuration)
        let watcher = try self.connect("bob", scene)
        let first = try self.connect("ada", scene)
        #expect(scene.run { self.text(first).contains(#""connect":"#) })
        scene.settle()
        let heard = self.text(watcher)
        #expect(heard.contains(#""join":"#) && heard.contains("ada"))
        let second = try self.connect("ada", scene)
        #expect(scene.run { second.close != nil })
        #expect(second.close?.prefix(2) == [0x0D, 0xB0] && second.frames.count == 1)
        scene.settle()
        #expect(self.text(watcher) == heard)
        #expect(scene.gateway.shared.hub.users.counts.clients == 2)
        scene.finish()
    }

    // MARK: In a cluster

    private static let settings = ["user-header: X-User", "max-connections-per-user: 1"]

    /// - Returns: a watcher, and a client of `ada` on the first node.
    private func cluster() throws -> (scene: ClusterScene, watcher: ClusterClient, first: ClusterClient) {
        let scene = try ClusterScene(loops: [1, 1], clients: 3, rooms: ["x"], settings: Self.settings)
        for (client, user) in zip(scene.clients, ["bob", "ada", "ada"]) { client.user = user }
        let (watcher, first) = (scene.clients[0], scene.clients[1])
        try scene.connect(watcher, to: 1)
        for _ in 0..<20 where !watcher.isInAllRooms { scene.pass(.milliseconds(100)) }
        #expect(watcher.isInAllRooms)
        return (scene, watcher, first)
    }

    @Test func refusedClientOfAnotherNodeGetsNothingButTheClose() throws {
        let (scene, watcher, first) = try self.cluster()
        try scene.connect(first, to: 0)
        for _ in 0..<20 where !first.isInAllRooms { scene.pass(.milliseconds(100)) }
        scene.pass(.milliseconds(200))
        let joins = try #require(watcher.counts["joins"])
        let second = scene.clients[2]
        try scene.connect(second, to: 1)
        scene.pass(.seconds(1))
        #expect(second.counts["closed by the server: connection limit"] == 1)
        #expect(second.counts["replies to connect"] == nil && watcher.counts["joins"] == joins)
        // It may come when the other is gone.
        first.vanish()
        scene.pass(.seconds(1))
        try scene.connect(second, to: 1)
        scene.pass(.seconds(1))
        #expect(second.isInAllRooms && second.counts["replies to connect"] == 1)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// The commands that came with `connect` wait too.
    @Test func replyToConnectWaitsForRedis() throws {
        let (scene, watcher, first) = try self.cluster()
        let joins = watcher.counts["joins"]
        scene.redis.pause(for: .milliseconds(500))
        try scene.connect(first, to: 0)
        for _ in 0..<10 { scene.pass(.milliseconds(40)) }
        #expect(first.isConnected && first.counts["replies to connect"] == nil && watcher.counts["joins"] == joins)
        for _ in 0..<20 where !first.isInAllRooms { scene.pass(.milliseconds(100)) }
        #expect(first.isInAllRooms && first.counts["replies to connect"] == 1)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }

    /// Its rooms are entered when Redis has listed the client.
    @Test func commandsThatCameWithConnectWaitForTheRoomsOfTheConnection() throws {
        let settings = ["user-header: X-User", "personal-room: \"#{user}\""]
        let scene = try ClusterScene(loops: [1], clients: 1, rooms: ["x"], settings: settings)
        let client = scene.clients[0]
        client.user = "ada"
        // Until the node is connected to Redis.
        scene.pass(.seconds(1))
        scene.redis.pause(for: .milliseconds(500))
        try scene.connect(client, to: 0)
        for _ in 0..<10 { scene.pass(.milliseconds(40)) }
        #expect(client.isConnected && client.counts["replies to connect"] == nil)
        for _ in 0..<20 where !client.isInAllRooms { scene.pass(.milliseconds(100)) }
        #expect(client.isInAllRooms && client.counts["replies to connect"] == 1 && client.counts["connects"] == 1)
        scene.finish()
    }

    @Test func clientConnectsWhileRedisIsLost() throws {
        let (scene, _, first) = try self.cluster()
        scene.redis.pause(for: .seconds(1))
        try scene.connect(first, to: 0)
        for _ in 0..<5 { scene.pass(.milliseconds(20)) }
        #expect(first.counts["replies to connect"] == nil)
        scene.redis.cutAll()
        for _ in 0..<20 where first.counts["replies to connect"] == nil { scene.pass(.milliseconds(20)) }
        #expect(first.counts["replies to connect"] == 1)
        #expect(scene.clients.flatMap(\.complaints) == [])
        scene.finish()
    }
}
