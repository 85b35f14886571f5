import GatewayCore
import TestSupport
import Testing

@Suite("Why clients without a protocol leave a room")
struct PlainMemberEndTests {
    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1000"}
          - {name: first, listen: "tcp://10.1.0.1:1001", route: full}
          - {name: second, listen: "tcp://10.1.0.1:1002", route: small}
          - {name: third, listen: "tcp://10.1.0.1:1003", route: quiet}
          - {name: fourth, listen: "tcp://10.1.0.1:1004", route: text}
        routes:
          - {name: chat, path: "/chat/{room}", target: chat}
          - {name: full, target: chat, framing: lines}
          - {name: small, target: chat, framing: lines}
          - {name: quiet, target: chat, framing: lines}
          - {name: text, target: chat, framing: lines}
        rooms:
          policies:
            - {name: full, pattern: full, max-members: 1}
            - {name: small, pattern: small, max-message-size: 4B}
            - {name: quiet, pattern: quiet, publish: nobody}
            - {name: all, pattern: "*"}
        """

    private static let ends = [
        ("full", "gateway/relaying/abnormal-close(1013)"),
        ("small", "downstream/relaying/violation(1009)"),
        ("quiet", "gateway/relaying/abnormal-close(1008)"),
    ]

    private func reason(_ scene: GatewayScene) -> String? {
        scene.settle()
        return scene.gateway.journal.events(after: 0).events.first { $0.kind == .closed }?.reason
    }

    @Test(arguments: ends)
    func limitThatEndsAWebSocketIsItsReason(_ room: String, _ reason: String) throws {
        let scene = try GatewayScene(Self.configuration)
        let clients = try (0..<2).map { _ in
            let client = try scene.webSocketClient(1000, "/chat/\(room)")
            #expect(scene.head(client) != nil)
            scene.settle()
            return client
        }
        if room != "full" { clients[1].send(1, "hello") }
        #expect(scene.run { clients[1].close != nil })
        clients[1].peer.close()
        #expect(self.reason(scene) == reason)
        scene.finish()
    }

    private static let streamEnds = ends + [("text", "downstream/relaying/violation(1007)")]

    @Test(arguments: zip([1001, 1002, 1003, 1004] as [UInt16], streamEnds))
    func limitThatEndsAStreamIsItsReason(_ port: UInt16, _ end: (room: String, reason: String)) throws {
        let scene = try GatewayScene(Self.configuration)
        let clients = try (0..<2).map { _ in
            let client = try scene.client(port)
            scene.settle()
            return client
        }
        if end.room != "full" { clients[1].send(end.room == "text" ? [0xFF, 0x0A] : Array("hello\n".utf8)) }
        #expect(scene.run { clients[1].failure != nil || clients[1].sawEnd })
        #expect(self.reason(scene) == end.reason)
        scene.finish()
    }
}
