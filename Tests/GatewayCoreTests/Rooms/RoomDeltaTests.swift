import Foundation
import GatewayCore
import TestSupport
import Testing

@Suite("Members that get publications as differences")
struct RoomDeltaTests {
    /// What a client makes of the pushes of room `x`.
    private struct Heard {
        var contents: [String] = []
        /// Bytes of the data of all publications.
        var size = 0
        var deltas = 0
    }

    private struct Message: Decodable {
        struct Publication: Decodable {
            let data: String
            let delta: Bool?
        }
        struct Push: Decodable {
            let pub: Publication?
        }
        struct Result: Decodable {
            let delta: Bool?
            let recovered: Bool?
            let publications: [Publication]?
        }
        let push: Push?
        let subscribe: Result?
    }

    private static func policies(_ more: String) -> String {
        "[{name: all, pattern: \"*\", publish: everyone, delta: fossil\(more)}]"
    }

    private static func content(_ number: Int, size: Int = 600) -> String {
        let words = (0..<(size / 12)).map { "ключ \($0) = \($0 == number % 40 ? number : $0 * 7)" }
        return "[\(number),\"" + words.joined(separator: "; ") + "\"]"
    }

    private static func heard(_ peer: RawWebSocketPeer) throws -> Heard {
        var heard = Heard()
        var last: [UInt8] = []
        let lines = peer.frames.flatMap { $0.payload.split(separator: 0x0A) }
        for line in lines where line.count > 2 {
            let message = try JSONDecoder().decode(Message.self, from: Data(line))
            for publication in (message.subscribe?.publications ?? []) + [message.push?.pub].compactMap(\.self) {
                heard.size += publication.data.utf8.count
                let data = Array(publication.data.utf8)
                if publication.delta == true { heard.deltas += 1 }
                last = publication.delta == true ? try FossilDeltaDecoder.apply(data, to: last) : data
                heard.contents.append(String(decoding: last, as: UTF8.self))
            }
        }
        return heard
    }

    private static func enter(_ chat: ChatScene, on loop: Int, _ more: String = #","delta":"fossil""#) throws
        -> RawWebSocketPeer
    {
        let peer = try chat.client(on: loop, "/rooms")
        peer.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"subscribe":{"channel":"x"\#(more)}}"#)
        #expect(chat.run { Self.text(peer).contains(#"{"id":2,"subscribe""#) })
        return peer
    }

    private static func text(_ peer: RawWebSocketPeer) -> String {
        peer.frames.map { String(decoding: $0.payload, as: UTF8.self) }.joined(separator: "\n")
    }

    private static func publish(_ contents: [String], by peer: RawWebSocketPeer, in chat: ChatScene, apart: Bool) {
        for (number, content) in contents.enumerated() {
            peer.send(1, #"{"id":\#(number + 10),"publish":{"channel":"x","data":\#(content)}}"#)
            if apart { chat.scene.settle() }
        }
        chat.scene.settle()
    }

    @Test(arguments: [1, 2], [false, true])
    func membersThatCameAtAnyTimeGetTheContents(_ loops: Int, apart: Bool) throws {
        let chat = try ChatScene(loops: loops, receiveBuffer: 1 << 20, policies: Self.policies(""))
        let speaker = try chat.client(on: 0, "/rooms")
        speaker.send(1, #"{"id":1,"connect":{}}"#)
        let whole = try Self.enter(chat, on: loops - 1, "")
        let early = try (0..<loops).map { try Self.enter(chat, on: $0) }
        let (first, second) = ((0..<30).map { Self.content($0) }, (30..<60).map { Self.content($0) })
        Self.publish(first, by: speaker, in: chat, apart: apart)
        let late = try (0..<loops).map { try Self.enter(chat, on: $0) }
        Self.publish(second, by: speaker, in: chat, apart: apart)
        for member in early {
            let heard = try Self.heard(member)
            #expect(heard.contents == first + second)
            #expect(heard.deltas == 59)
            #expect(heard.size < 60 * 600 / 4)
        }
        for member in late {
            let heard = try Self.heard(member)
            #expect(heard.contents == second)
            #expect(heard.deltas == 29)
        }
        // Without asking for deltas, the data are no strings.
        let pushes = Self.text(whole).split(separator: "\n").filter { $0.hasPrefix("{\"push\"") }
        #expect(pushes.count == 60)
        #expect(pushes.allSatisfy { $0.contains(#""data":["#) && !$0.contains(#""delta""#) })
        chat.scene.finish()
    }

    @Test func messagesWithoutAProtocolAreDeltasToo() throws {
        let chat = try ChatScene(loops: 1, policies: Self.policies(""))
        let member = try Self.enter(chat, on: 0)
        let speaker = try chat.client(on: 0)
        let texts = (0..<5).map { Self.content($0) }
        for text in texts { speaker.send(1, text) }
        chat.scene.settle()
        let heard = try Self.heard(member)
        #expect(heard.contents == texts)
        #expect(heard.deltas == 4)
        chat.scene.finish()
    }

    @Test(arguments: ["drop-oldest", "skip-to-latest"])
    func memberThatLostMessagesGetsTheNextOneWhole(_ policy: String) throws {
        let chat = try ChatScene(loops: 1, backlog: 64 << 10, policies: Self.policies(", slow-readers: \(policy)"))
        let speaker = try chat.client(on: 0, "/rooms")
        speaker.send(1, #"{"id":1,"connect":{}}"#)
        let member = try Self.enter(chat, on: 0)
        // Those in the middle have nothing in common, so that their differences are no shorter and fill the output.
        let contents = (0..<120).map { number in
            let content = Self.content(number, size: 8000)
            return (3..<110).contains(number) ? content.replacing("ключ", with: "\(number)") : content
        }
        Self.publish(Array(contents.prefix(3)), by: speaker, in: chat, apart: true)
        member.peer.isReading = false
        Self.publish(Array(contents[3..<110]), by: speaker, in: chat, apart: true)
        member.peer.isReading = true
        chat.scene.settle()
        Self.publish(Array(contents[110...]), by: speaker, in: chat, apart: true)
        let heard = try Self.heard(member)
        #expect(heard.contents.count < 120)
        let numbers = heard.contents.compactMap { contents.firstIndex(of: $0) }
        #expect(numbers.count == heard.contents.count && numbers == numbers.sorted())
        #expect(heard.contents.suffix(10) == contents.suffix(10))
        #expect(heard.deltas == 2 + 9)
        chat.scene.finish()
    }

    @Test(arguments: ["stream", "cache"])
    func recoveredPublicationsAreTheBeginningOfTheDeltas(_ recovery: String) throws {
        let policies = Self.policies(", history-size: 50, recovery: \(recovery)")
        let chat = try ChatScene(loops: 2, policies: policies)
        let speaker = try chat.client(on: 0, "/rooms")
        speaker.send(1, #"{"id":1,"connect":{}}"#)
        let contents = (0..<20).map { Self.content($0) }
        Self.publish(Array(contents.prefix(10)), by: speaker, in: chat, apart: true)
        for _ in 0..<2 {
            let back = try Self.enter(chat, on: 1, #","delta":"fossil","recover":true,"offset":0,"epoch":"""#)
            Self.publish([contents[10]], by: speaker, in: chat, apart: true)
            let heard = try Self.heard(back)
            #expect(heard.contents.last == contents[10])
            #expect(heard.deltas == heard.contents.count - 1)
            #expect(heard.contents.count == (recovery == "cache" ? 2 : heard.contents.count) && heard.deltas > 0)
        }
        let other = try Self.enter(chat, on: 0, #","delta":"fossil","recover":true,"offset":0,"epoch":"""#)
        Self.publish(Array(contents[11...]), by: speaker, in: chat, apart: false)
        #expect(try Self.heard(other).contents.suffix(9) == contents.suffix(9))
        chat.scene.finish()
    }

    /// A client may come back as often as it likes.
    @Test func recoveredPublicationsAboveAMebibyteAreWhole() throws {
        let chat = try ChatScene(loops: 1, policies: Self.policies(", history-size: 50, recovery: stream"))
        let speaker = try chat.client(on: 0, "/rooms")
        speaker.send(1, #"{"id":1,"connect":{}}"#)
        let contents = (0..<30).map { "[\($0),\"\(String(repeating: "x", count: 60_000))\"]" }
        Self.publish(contents, by: speaker, in: chat, apart: true)
        let back = try Self.enter(chat, on: 0, #","delta":"fossil","recover":true,"offset":0,"epoch":"""#)
        let heard = try Self.heard(back)
        #expect(heard.contents == contents)
        // The first one is whole, too.
        #expect(heard.deltas == (1 << 20) / 60_006 - 1)
        chat.scene.finish()
    }
}
