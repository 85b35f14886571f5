import TestSupport
import Testing

@Suite("Users that a proxy names")
struct TrustedUserTests {
    private func scene() throws -> GatewayScene {
        try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes:
              - {name: events, path: /events, target: room-events}
              - {name: programs, path: /rooms, target: rooms}
            rooms:
              anonymous: false
              user-header: X-User
              policies: [{name: all, pattern: "*", publish: everyone}]
            """)
    }

    private static let unnamed = ["", "X-User:\r\n", "X-User: eve\r\nX-User: ada\r\n", "X-User: eve\r\nX-User:\r\n"]

    @Test func fieldNamesTheUser() throws {
        let scene = try self.scene()
        #expect(try self.publish(scene, "X-User: ada\r\n") == 200)
        scene.finish()
    }

    @Test(arguments: unnamed)
    func requestWithoutOneNameIsAnonymous(_ fields: String) throws {
        let scene = try self.scene()
        #expect(try self.publish(scene, fields) == 401)
        let peer = RawWebSocketPeer(try scene.client(1001), isClient: true)
        peer.peer.send(RawWebSocketPeer.request(to: "/rooms").replacing("Origin:", with: "\(fields)Origin:"))
        #expect(scene.head(peer)?.hasPrefix("HTTP/1.1 101 ") == true)
        peer.send(1, #"{"id":1,"connect":{}}"#)
        // 3501 is the only answer.
        #expect(scene.run { peer.close?.prefix(2) == [0x0D, 0xAD] } && peer.frames.count == 1)
        scene.finish()
    }

    private func publish(_ scene: GatewayScene, _ fields: String) throws -> Int {
        let body = #"{"publish":{"channel":"a","data":1}}"#
        let (peer, reader) = try scene.web(
            "POST /events HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        defer { peer.close() }
        return try #require(reader.next(scene)).status
    }
}
