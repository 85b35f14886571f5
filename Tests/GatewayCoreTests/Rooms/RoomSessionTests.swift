import GatewayConfiguration
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

    @Test func clientThatIsRefusedForWhatItMissedIsSeenByNobody() throws {
        let policies =
            "[{name: all, pattern: x, history-size: 9, recovery: stream, presence: true, join-leave: true}]"
        let chat = try ChatScene(loops: 1, policies: policies)
        let (watcher, late) = (try chat.client(on: 0, "/rooms"), try chat.client(on: 0, "/rooms"))
        watcher.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"subscribe":{"channel":"x"}}"#)
        #expect(chat.run { Self.text(watcher).contains(#"{"id":2,"subscribe""#) })
        let subscription = #""channel":"x","recover":true,"offset":1,"epoch":"other","flag":2"#
        late.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"subscribe":{\#(subscription)}}"#)
        #expect(chat.run { Self.text(late).contains(#"{"id":2,"error":{"code":112"#) })
        late.send(1, #"{"id":3,"subscribe":{"channel":"x"}}"#)
        #expect(chat.run { Self.text(late).contains(#"{"id":3,"subscribe""#) })
        chat.scene.settle()
        // Its own, and the other's.
        #expect(Self.text(watcher).split(separator: #""join""#).count == 3)
        #expect(!Self.text(watcher).contains(#""leave""#))
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

    @Test(arguments: [("/rooms", true), ("/rooms?a=b&cf_ws_frame_ping_pong=true", false)])
    func clientMayAskForThePingsOfWebSocketAlone(_ target: String, _ sendsPings: Bool) throws {
        let chat = try ChatScene(loops: 1)
        let peer = try chat.client(on: 0, target)
        peer.send(1, #"{"id":1,"connect":{}}"#)
        #expect(chat.run { Self.text(peer).contains(#"{"id":1,"connect""#) })
        #expect(Self.text(peer).contains(#""ping":25,"pong":true"#) == sendsPings)
        chat.runFor(.seconds(30))
        #expect(peer.frames.contains { $0.payload == Array("{}".utf8) } == sendsPings)
        chat.scene.finish()
    }

    /// Its answer to a ping is in the socket while its commands wait for a room.
    @Test func clientWhoseCommandsWaitIsNotClosedForItsAnswerToAPing() throws {
        let chat = try ChatScene(receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0, "/rooms")
        let far = try chat.client(on: 1, "/rooms")
        #expect(Self.enter(speaker, chat, "x") && Self.enter(far, chat, "x"))
        chat.runFor(.seconds(23))
        chat.gateway.stalled.insert(1)
        let count = 6000
        let commands = (0..<count).map { #"{"id":\#($0 + 10),"publish":{"channel":"x","data":\#($0)}}"# }
        speaker.send(1, commands.joined(separator: "\n"))
        chat.runFor(.seconds(3))
        #expect(speaker.frames.contains { $0.payload == Array("{}".utf8) })
        speaker.send(1, "{}")
        chat.runFor(.seconds(20))
        #expect(!Self.text(speaker).contains(#"{"id":\#(count + 9),"publish":{}}"#))
        chat.gateway.stalled.remove(1)
        #expect(chat.run { Self.publications(speaker) == count })
        #expect(speaker.close == nil)
        chat.scene.finish()
    }

    /// The ping waits behind 2 MiB, of which the client takes a little in each second.
    @Test func clientThatReadsSlowlyIsNotClosedForItsAnswerToAPing() throws {
        let chat = try Self.rooms()
        let writer = try chat.client(on: 0, "/rooms")
        let reader = try chat.client(on: 0, "/rooms")
        writer.send(1, #"{"id":1,"connect":{}}"#)
        for number in 2...41 {
            let data = String(repeating: "x", count: 50_000)
            writer.send(1, #"{"id":\#(number),"publish":{"channel":"x","data":"\#(data)"}}"#)
        }
        #expect(chat.run { Self.text(writer).contains(#"{"id":41,"publish""#) })
        reader.send(1, #"{"id":1,"connect":{}}"#)
        #expect(chat.run { Self.text(reader).contains(#"{"id":1,"connect""#) })
        chat.runFor(.seconds(24))
        reader.peer.isReading = false
        reader.send(1, #"{"id":2,"history":{"channel":"x","limit":100}}"#)
        chat.runFor(.seconds(2))
        var seconds = 0
        while seconds < 60, !Self.text(reader).hasSuffix("{}") {
            reader.peer.isReading = true
            chat.runFor(.microseconds(20))
            reader.peer.isReading = false
            chat.runFor(.seconds(1))
            seconds += 1
        }
        #expect(seconds > 10 && seconds < 60 && reader.close == nil)
        chat.scene.finish()
    }

    /// Nothing else would end it before it is far behind.
    @Test func clientThatReadsNothingIsClosedForItsAnswerToAPing() throws {
        let chat = try Self.rooms()
        let reader = try chat.client(on: 0, "/rooms")
        let commands = (2...21).map { number in
            let data = String(repeating: "x", count: 50_000)
            return #"{"id":\#(number),"publish":{"channel":"x","data":"\#(data)"}}"#
        }
        reader.send(1, ([#"{"id":1,"connect":{}}"#] + commands).joined(separator: "\n"))
        #expect(chat.run { Self.text(reader).contains(#"{"id":21,"publish""#) })
        reader.peer.isReading = false
        reader.send(1, #"{"id":22,"history":{"channel":"x","limit":100}}"#)
        chat.runFor(.seconds(50))
        #expect(chat.gateway.shared.hub.counters.disconnects[3012] == 1)
        chat.scene.finish()
    }

    @Test func drainEndsClientsWithTheCodeOfTheirProtocol() throws {
        let chat = try ChatScene(loops: 1)
        let member = try chat.client(on: 0, "/rooms")
        let stranger = try chat.client(on: 0, "/rooms")
        #expect(Self.enter(member, chat, "x"))
        var settings = DrainSettings()
        settings.closeSpread = .zero
        var isEmpty = false
        chat.gateway.drain(settings) { isEmpty = true }
        #expect(chat.run { member.close != nil && stranger.close != nil })
        for peer in [member, stranger] {
            #expect(peer.close == [0x0B, 0xB9] + Array("shutdown".utf8))
            peer.send(8, [0x0B, 0xB9])
        }
        #expect(chat.run { isEmpty })
        #expect(chat.gateway.endings.suffix(2).allSatisfy { $0.reason.hasSuffix("drained") })
        chat.scene.finish()
    }

    private static func rooms(_ more: String = "") throws -> ChatScene {
        let all = #"name: all, pattern: "*", publish: everyone, read: everyone, history-size: 100, recovery: stream"#
        let chat = try ChatScene(loops: 1, policies: "[{\(all)\(more)}]")
        // A room in which nothing was published is kept for a minute, and the clock begins at zero.
        chat.runFor(.seconds(120))
        return chat
    }

    private static func epoch(_ peer: RawWebSocketPeer) throws -> String {
        String(try #require(Self.text(peer).split(separator: #""epoch":""#).last?.split(separator: "\"").first))
    }

    /// The answer to a client that enters room `x` and has got `offset` publications.
    private static func recover(from offset: Int, _ epoch: String, by peer: RawWebSocketPeer, in chat: ChatScene)
        -> String
    {
        let place = #""channel":"x","recover":true,"offset":\#(offset),"epoch":"\#(epoch)""#
        peer.send(1, #"{"id":9,"subscribe":{\#(place)}}"#)
        #expect(chat.run { Self.text(peer).contains(#"{"id":9,"#) })
        return Self.text(peer)
    }

    @Test func positionOfARoomThatDoesNotExistIsThatOfTheRoomMadeLater() throws {
        let chat = try Self.rooms()
        let peer = try chat.client(on: 0, "/rooms")
        peer.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"history":{"channel":"x"}}"#)
        #expect(chat.run { Self.text(peer).contains(#"{"id":2,"history""#) })
        #expect(chat.gateway.shared.hub.roomCount == 0)
        let epoch = try Self.epoch(peer)
        chat.runFor(.seconds(15))
        peer.send(1, #"{"id":3,"publish":{"channel":"x","data":7}}"#)
        let answer = Self.recover(from: 0, epoch, by: peer, in: chat)
        #expect(answer.contains(#""recovered":true"#) && answer.contains(#""data":7"#))
        chat.scene.finish()
    }

    @Test func forgottenRoomIsMadeWithAnotherEpoch() throws {
        let chat = try Self.rooms(", history-time: 1s")
        let first = try chat.client(on: 0, "/rooms")
        let commands = [
            #"{"id":1,"connect":{}}"#, #"{"id":2,"publish":{"channel":"x","data":7}}"#,
            #"{"id":3,"history":{"channel":"x"}}"#,
        ]
        first.send(1, commands.joined(separator: "\n"))
        #expect(chat.run { Self.text(first).contains(#"{"id":3,"history""#) })
        let epoch = try Self.epoch(first)
        chat.runFor(.seconds(60))
        #expect(chat.gateway.shared.hub.roomCount == 0)
        let second = try chat.client(on: 0, "/rooms")
        second.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"publish":{"channel":"x","data":8}}"#)
        #expect(!Self.recover(from: 1, epoch, by: second, in: chat).contains("recovered"))
        #expect(try Self.epoch(second) != epoch)
        chat.scene.finish()
    }
}
