import GatewayCore
import Rooms
import TestSupport
import Testing

@Suite("Members with filters by tags")
struct RoomFilterTests {
    private static let policies = #"[{name: all, pattern: "*", publish: everyone, tag-filters: true}]"#

    private static func enter(_ chat: ChatScene, on loop: Int, _ filter: String?) throws -> RawWebSocketPeer {
        let peer = try chat.client(on: loop, "/rooms")
        let more = filter.map { #","tf":"# + $0 } ?? ""
        peer.send(1, #"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"subscribe":{"channel":"x"\#(more)}}"#)
        #expect(chat.run { Self.text(peer).contains(#"{"id":2,"subscribe""#) })
        return peer
    }

    private static func text(_ peer: RawWebSocketPeer) -> String {
        peer.frames.map { String(decoding: $0.payload, as: UTF8.self) }.joined(separator: "\n")
    }

    /// Numbers of the publications that the member got.
    private static func heard(_ peer: RawWebSocketPeer) -> [Int] {
        Self.text(peer).split(separator: #""pub":{"data":"#).dropFirst().compactMap {
            Int($0.prefix { $0.isNumber })
        }
    }

    private static func publish(_ numbers: Range<Int>, in chat: ChatScene) {
        for number in numbers {
            let tags = [Tag("kind", ["a", "b", "c"][number % 3]), Tag("number", String(number))]
            let publication = Publication(.json(Array(String(number).utf8)), tags: tags)
            chat.gateway.parts[0].publish(publication, in: "x") { _ in }
        }
        chat.scene.settle()
    }

    @Test(arguments: [1, 2])
    func memberGetsThePublicationsThatItsFilterMatches(_ loops: Int) throws {
        let chat = try ChatScene(loops: loops, receiveBuffer: 1 << 20, policies: Self.policies)
        let last = loops - 1
        let kind = try Self.enter(chat, on: last, #"{"key":"kind","cmp":"eq","val":"b"}"#)
        let few = try Self.enter(
            chat, on: last,
            #"{"op":"and","nodes":[{"key":"kind","cmp":"in","vals":["a","c"]},{"key":"number","cmp":"gte","val":"21"}]}"#
        )
        let none = try Self.enter(chat, on: 0, #"{"key":"missing","cmp":"ex"}"#)
        let every = try Self.enter(chat, on: 0, #"{"key":"number","cmp":"ex"}"#)
        let whole = try Self.enter(chat, on: last, nil)
        Self.publish(0..<12, in: chat)
        for number in 12..<30 { Self.publish(number..<(number + 1), in: chat) }
        #expect(Self.heard(kind) == (0..<30).filter { $0 % 3 == 1 })
        #expect(Self.heard(few) == (21..<30).filter { $0 % 3 != 1 })
        #expect(Self.heard(none) == [])
        #expect(Self.heard(every) == Array(0..<30))
        #expect(Self.heard(whole) == Array(0..<30))
        let counters = chat.gateway.shared.hub.counters
        #expect(counters[.filtered] == 20 + 24 + 30)
        #expect(counters[.deliveries] == 10 + 6 + 30 + 30)
        chat.scene.finish()
    }

    @Test func joinsAndMessagesWithoutTagsAreNoMatter() throws {
        let policies =
            #"[{name: all, pattern: "*", publish: everyone, presence: true, join-leave: true, tag-filters: true}]"#
        let chat = try ChatScene(loops: 1, policies: policies)
        let member = try Self.enter(chat, on: 0, #"{"key":"kind","cmp":"neq","val":"b"}"#)
        let picky = try Self.enter(chat, on: 0, #"{"key":"kind","cmp":"ex"}"#)
        let speaker = try chat.client(on: 0)
        speaker.send(1, "7")
        #expect(chat.run { Self.heard(member) == [7] })
        let late = try Self.enter(chat, on: 0, nil)
        _ = late
        #expect(chat.run { Self.text(picky).contains(#""join""#) })
        #expect(Self.heard(picky) == [])
        chat.scene.finish()
    }
}
