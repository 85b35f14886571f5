import TestSupport
import Testing

@Suite("Users that a proxy names")
struct TrustedUserTests {
    /// - Parameter proxies: blocks of addresses; `nil` for the default.
    private func scene(proxies: String? = "10.0.0.0/8") throws -> GatewayScene {
        let trusted = proxies.map { ", forwarding-trusted: [\($0)]" } ?? ""
        return try GatewayScene(
            """
            listeners:
              - {name: web, listen: "ws://10.1.0.1:1001"\(trusted)}
              - {name: raw, listen: "tcp://10.1.0.1:1002", route: lobby}
            routes:
              - {name: events, path: /events, target: room-events}
              - {name: programs, path: /rooms, target: rooms}
              - {name: chat, path: "/chat/{room}", target: chat}
              - {name: lobby, target: chat, framing: lines}
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
        let peer = try self.open("/rooms", fields, scene)
        peer.send(1, #"{"id":1,"connect":{}}"#)
        // 3501 is the only answer.
        #expect(scene.run { peer.close?.prefix(2) == [0x0D, 0xAD] } && peer.frames.count == 1)
        scene.finish()
    }

    @Test(arguments: [nil, "10.1.0.0/16, 127.0.0.0/8"])
    func fieldOfAPeerThatIsNoTrustedProxyIsIgnored(_ proxies: String?) throws {
        let scene = try self.scene(proxies: proxies)
        #expect(try self.publish(scene, "X-User: ada\r\n") == 401)
        let closes = try ["/rooms", "/chat/a"].map { target in
            let peer = try self.open(target, "X-User: ada\r\n", scene)
            if target == "/rooms" { peer.send(1, #"{"id":1,"connect":{}}"#) }
            #expect(scene.run { peer.close != nil })
            return peer.close?.prefix(2)
        }
        #expect(closes == [[0x0D, 0xAD], [0x03, 0xF0]])
        scene.finish()
    }

    @Test(arguments: unnamed)
    func anonymousClientWithoutAProtocolEntersNoRoom(_ fields: String) throws {
        let scene = try self.scene()
        let peer = try self.open("/chat/a", fields, scene)
        #expect(scene.run { peer.close?.prefix(2) == [0x03, 0xF0] } && peer.frames.count == 1)
        scene.finish()
    }

    @Test func namedClientWithoutAProtocolEnters() throws {
        let scene = try self.scene()
        let peers = try (0..<2).map { _ in try self.open("/chat/a", "X-User: ada\r\n", scene) }
        for peer in peers {
            // The answer to a ping shows that the client is in the room.
            peer.send(9)
            #expect(scene.run { peer.frames.last?.opcode == 10 })
        }
        peers[0].send(1, "hello")
        #expect(scene.run { peers[1].frames.last?.payload == Array("hello".utf8) })
        scene.finish()
    }

    @Test func streamHasNoUser() throws {
        let scene = try self.scene()
        let peer = try scene.client(1002)
        #expect(scene.run { peer.failure != nil || peer.sawEnd })
        scene.finish()
    }

    private func open(_ target: String, _ fields: String, _ scene: GatewayScene) throws -> RawWebSocketPeer {
        let peer = RawWebSocketPeer(try scene.client(1001), isClient: true)
        peer.peer.send(RawWebSocketPeer.request(to: target).replacing("Origin:", with: "\(fields)Origin:"))
        #expect(scene.head(peer)?.hasPrefix("HTTP/1.1 101 ") == true)
        return peer
    }

    private func publish(_ scene: GatewayScene, _ fields: String) throws -> Int {
        let body = #"{"publish":{"channel":"a","data":1}}"#
        let (peer, reader) = try scene.web(
            "POST /events HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        defer { peer.close() }
        return try #require(reader.next(scene)).status
    }
}
