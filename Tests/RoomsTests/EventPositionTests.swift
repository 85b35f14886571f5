import Rooms
import Testing

@Suite("Positions in the ids of Server-Sent Events")
struct EventPositionTests {
    /// The ids of one connection's events.
    private final class EventIDs {
        private var positions: EventPositions

        init(limit: Int = EventPositions.sizeLimit) {
            self.positions = EventPositions(limit: limit)
        }

        func sent(_ reply: Reply) -> String? { self.positions.sent(reply) }
        func sentPublication(in channel: String, offset: UInt64) -> String? {
            self.positions.sentPublication(in: channel, offset: offset)
        }
    }

    private static func result(
        _ epoch: String, _ offset: UInt64, isRecoverable: Bool = true, publications: [UInt64] = []
    ) -> Reply.SubscribeResult {
        var result = Reply.SubscribeResult()
        result.isRecoverable = isRecoverable
        result.position = StreamPosition(offset: offset, epoch: epoch)
        result.publications = publications.map { Self.publication($0) }
        return result
    }

    private static func publication(_ offset: UInt64) -> Publication {
        var publication = Publication(.json(Array("1".utf8)))
        publication.offset = offset
        return publication
    }

    private static func connect(_ rooms: [(String, Reply.SubscribeResult)]) -> Reply {
        var result = Reply.ConnectResult()
        result.subscriptions = rooms.map { (key: $0.0, value: $0.1) }
        return .connect(number: 1, result)
    }

    @Test func idNamesWhatTheClientHasWithItsEvent() {
        let ids = EventIDs()
        let rooms = [
            ("a", Self.result("e", 3)), ("b", Self.result("f", 5, publications: [6, 8])),
            ("c", Self.result("g", 7, isRecoverable: false)),
        ]
        #expect(ids.sent(Self.connect(rooms)) == "a=e.3&b=f.8")
        #expect(ids.sent(.push(channel: "a", .publication(Self.publication(4)))) == "a=e.4&b=f.8")
        #expect(ids.sentPublication(in: "b", offset: 9) == "a=e.4&b=f.9")
        #expect(ids.sent(.push(channel: "d", .subscribe(Self.result("h", 0)))) == "a=e.4&b=f.9&d=h.0")
        #expect(ids.sentPublication(in: "d", offset: 1) == "a=e.4&b=f.9&d=h.1")
    }

    @Test func eventThatMovesNoPositionHasNoID() {
        let ids = EventIDs()
        #expect(ids.sent(Self.connect([("c", Self.result("g", 7, isRecoverable: false))])) == nil)
        _ = ids.sent(Self.connect([("a", Self.result("e", 3))]))
        let info = ClientInfo(client: "x")
        for reply: Reply in [
            .ping, .push(channel: "a", .join(info)), .push(channel: "a", .leave(info)),
            .push(channel: "a", .publication(Self.publication(0))),
            .push(channel: "c", .publication(Self.publication(8))),
            .push(channel: "c", .subscribe(Self.result("g", 8, isRecoverable: false))),
            .push(channel: "a", .unsubscribe(.insufficient)), .push(channel: "", .disconnect(.shutdown)),
        ] { #expect(ids.sent(reply) == nil, "\(reply)") }
    }

    @Test func roomThatIsEnteredAgainHasOnePosition() {
        let ids = EventIDs()
        _ = ids.sent(Self.connect([("a", Self.result("e", 3))]))
        #expect(ids.sent(.push(channel: "a", .unsubscribe(.insufficient))) == nil)
        #expect(ids.sent(.push(channel: "a", .subscribe(Self.result("f", 0)))) == "a=f.0")
    }

    @Test(arguments: [
        "a", "talk:lobby", "a&b=c.d", "a=b", "é 漢字", "%", "%41", "\"\\", String(repeating: "x", count: 255),
    ])
    func idIsReadBack(_ name: String) throws {
        let ids = EventIDs()
        let rooms = [(name, Self.result("e.f&g=%", 3)), ("other", Self.result("", UInt64(Int64.max)))]
        let id = try #require(ids.sent(Self.connect(rooms)))
        #expect(id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        let expected = [
            name: StreamPosition(offset: 3, epoch: "e.f&g=%"), "other": StreamPosition(offset: UInt64(Int64.max)),
        ]
        #expect(EventPositions.positions(in: id) == expected)
    }

    @Test(arguments: [
        "", "&", "a", "a=", "a=e", "a=.", "a=e.", "=e.1", "a=e.1&", "&a=e.1", "a=e.1&&b=e.1", "a=e.1&a=e.2", "a=e.1=2",
        "a=e.-1", "a=e.+1", "a=e.1 ", "a=e.99999999999999999999", "a=e.0x1", "%=e.1", "%4=e.1", "%FF=e.1", "a=%FF.1",
        "a=%zz.1", "1", "null", "{\"a\":1}", String(repeating: "a=e.1&", count: 400) + "b=e.1",
        String(repeating: "x", count: EventPositions.sizeLimit) + "=e.1",
    ])
    func textThatIsNoIDIsNotRead(_ text: String) {
        #expect(EventPositions.positions(in: text) == nil)
    }

    @Test func epochThatIsTooLongIsOfNoStream() {
        let text = "a=\(String(repeating: "e", count: 65)).1"
        #expect(EventPositions.positions(in: text) == ["a": StreamPosition(offset: 1, epoch: "-")])
    }

    /// The empty id makes the client forget the one that it has, which would bring it publications twice.
    @Test func clientForgetsAnIDThatWouldBecomeTooLong() {
        let ids = EventIDs(limit: 10)
        #expect(ids.sent(Self.connect([("a", Self.result("e", 3))])) == "a=e.3")
        #expect(ids.sent(.push(channel: "b", .subscribe(Self.result("e", 0)))) == "")
        for offset: UInt64 in 4...6 { #expect(ids.sentPublication(in: "a", offset: offset) == nil) }
        #expect(ids.sent(.push(channel: "c", .subscribe(Self.result("e", 0)))) == nil)
        let growing = EventIDs(limit: 5)
        #expect(growing.sent(Self.connect([("a", Self.result("e", 9))])) == "a=e.9")
        #expect(growing.sentPublication(in: "a", offset: 10) == "")
    }

    @Test func idsOfManyRoomsWithLongNamesAreBounded() {
        let ids = EventIDs(limit: 1 << 20)
        let name = String(repeating: "x", count: 250)
        let rooms = (100..<228).map { ("\(name)\($0)", Self.result("e", 1)) }
        #expect(ids.sent(Self.connect(rooms)) == "")
        #expect(ids.sentPublication(in: rooms[0].0, offset: 2) == nil)
    }
}
