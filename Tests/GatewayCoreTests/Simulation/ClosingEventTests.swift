import GatewayCore
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("The event of a connection's end")
struct ClosingEventTests {
    private static let configuration = """
        listeners:
          - {name: raw, listen: "tcp://10.1.0.1:1001", route: raw}
          - {name: web, listen: "ws://10.1.0.1:1004"}
        routes:
          - {name: raw, target: echo}
          - {name: echo, path: /echo, target: echo}
        """

    private func closing(_ scene: GatewayScene) throws -> GatewayEvent {
        try #require(scene.gateway.journal.events(after: 0).events.first { $0.kind == .closed })
    }

    @Test func closingEventHasCodeReasonAndPayloadBothWays() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try scene.webSocketClient(1004, "/echo")
        #expect(scene.head(client) != nil)
        client.send(1, Array("seven b".utf8))
        #expect(scene.run { client.frames.last?.payload == Array("seven b".utf8) })
        client.send(8, [0x0F, 0xA1] + Array("done".utf8))
        #expect(scene.run { client.close != nil })
        client.peer.close()
        scene.settle()
        let event = try self.closing(scene)
        #expect(event.closeCode == 4001 && event.closeReason == "done")
        #expect(event.receivedBytes == 7 && event.sentBytes == 7)
        #expect(event.reason == "downstream/relaying/clean(4001)")
        scene.finish()
    }

    @Test func closingEventOfAStreamHasPayloadAndNoCode() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try scene.client(1001)
        client.send("abc")
        #expect(scene.run { client.received == Array("abc".utf8) })
        client.finish()
        #expect(scene.run { client.sawEnd })
        scene.settle()
        let event = try self.closing(scene)
        #expect(event.closeCode == nil && event.closeReason == nil)
        #expect(event.receivedBytes == 3 && event.sentBytes == 3 && event.labels.isEmpty)
        scene.finish()
    }
}
