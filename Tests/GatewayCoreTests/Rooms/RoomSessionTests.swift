import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Clients of the rooms' protocol on their loops")
struct RoomSessionTests {
    private static func enter(_ peer: RawWebSocketPeer, _ chat: ChatScene, _ rooms: String...) -> Bool {
        let subscriptions = rooms.enumerated().map { #"{"id":\#($0 + 2),"subscribe":{"channel":"\#($1)"}}"# }
        peer.send(1, ([#"{"id":1,"connect":{}}"#] + subscriptions).joined(separator: "\n"))
        return chat.run { Self.text(peer).contains(#"{"id":\#(rooms.count + 1),"subscribe":{}}"#) }
    }

    private static func text(_ peer: RawWebSocketPeer) -> String {
        peer.frames.map { String(decoding: $0.payload, as: UTF8.self) }.joined(separator: "\n")
    }

    private static func publications(_ peer: RawWebSocketPeer) -> Int {
        peer.frames.count { $0.payload.starts(with: Array(#"{"push":{"channel":"x","pub""#.utf8)) }
    }

    @Test func commandsOfOneMessageWaitForARoomThatIsBehind() throws {
        let chat = try ChatScene(receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0, "/rooms")
        let far = try chat.client(on: 1, "/rooms")
        #expect(Self.enter(speaker, chat, "x") && Self.enter(far, chat, "x"))
        chat.gateway.stalled.insert(1)
        let count = 6000
        let commands = (0..<count).map { #"{"id":\#($0 + 10),"publish":{"channel":"x","data":\#($0)}}"# }
        speaker.send(1, commands.joined(separator: "\n"))
        chat.runFor(.seconds(1))
        // All at once would be 3 MiB.
        #expect(chat.gateway.shared.hub.bytesUnderWay <= 2 << 20)
        #expect(!Self.text(speaker).contains(#"{"id":\#(count + 9),"publish":{}}"#))
        chat.gateway.stalled.remove(1)
        #expect(chat.run { Self.publications(far) == count && Self.publications(speaker) == count })
        #expect(Self.text(speaker).contains(#"{"id":\#(count + 9),"publish":{}}"#))
        chat.scene.finish()
    }

    @Test func clientThatLeavesDuringAWaitIsForgotten() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0, "/rooms")
        let far = try chat.client(on: 1, "/rooms")
        #expect(Self.enter(speaker, chat, "x", "y") && Self.enter(far, chat, "x"))
        chat.gateway.stalled.insert(1)
        let commands = (0..<5000).map { #"{"id":\#($0 + 10),"publish":{"channel":"x","data":\#($0)}}"# }
        speaker.send(1, commands.joined(separator: "\n"))
        chat.runFor(.seconds(1))
        speaker.peer.reset()
        chat.runFor(.seconds(1))
        chat.gateway.stalled.remove(1)
        chat.scene.settle()
        #expect(chat.gateway.shared.hub.users.counts.clients == 1)
        #expect(Self.publications(far) > 0)
        chat.scene.finish()
    }
}
