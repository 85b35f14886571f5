import ControlClient
import Testing

@Suite("Server-Sent Events, WHATWG HTML §9.2.6")
struct EventStreamParserTests {
    private struct Vector: Sendable {
        let text: String
        let events: [ServerSentEvent]
    }

    private static func event(_ data: String, type: String = "message", id: String = "") -> ServerSentEvent {
        ServerSentEvent(type: type, data: Array(data.utf8), lastID: id)
    }

    /// The first four are the examples of §9.2.6, shortened in no way but for the names.
    private static let vectors = [
        Vector(
            text: "data: YHOO\ndata: +2\ndata: 10\n\n", events: [event("YHOO\n+2\n10")]),
        Vector(
            text: ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            events: [event("first event", id: "1"), event("second event"), event(" third event")]),
        Vector(text: "data\n\ndata\ndata\n\ndata:", events: [event(""), event("\n")]),
        Vector(text: "data:test\n\ndata: test\n\n", events: [event("test"), event("test")]),
        Vector(
            text: "\u{FEFF}event: opened\r\nid: 7\r\ndata: {}\r\n\r\nevent: closed\rdata: {}\r\r",
            events: [event("{}", type: "opened", id: "7"), event("{}", type: "closed", id: "7")]),
        Vector(text: "event: lonely\n\nretry: 10\nwhat: ever\ndata: x\n\n", events: [event("x")]),
        Vector(text: "id: a\u{0}b\ndata: x\n\n", events: [event("x")]),
        Vector(text: ":\n\n:\n\n", events: []),
    ]

    @Test(arguments: vectors.indices)
    func eventsAreTheSameForEveryCut(_ index: Int) throws {
        let vector = Self.vectors[index]
        let bytes = Array(vector.text.utf8)
        var whole = EventStreamParser()
        #expect(try whole.events(bytes) == vector.events)
        for cut in 0...bytes.count {
            var parser = EventStreamParser()
            let events = try parser.events(Array(bytes[..<cut])) + parser.events(Array(bytes[cut...]))
            #expect(events == vector.events)
        }
        var slow = EventStreamParser()
        #expect(try bytes.flatMap { try slow.events([$0]) } == vector.events)
    }

    @Test func eventLongerThanTheLimitIsRejected() throws {
        var parser = EventStreamParser(limit: 10)
        #expect(try parser.events(Array("data:12345\n\n".utf8)).count == 1)
        #expect(throws: EventStreamParser.Overflow()) { try parser.events(Array("data:1234567".utf8)) }
        var many = EventStreamParser(limit: 20)
        #expect(throws: EventStreamParser.Overflow()) {
            try many.events(Array(String(repeating: "data:1234\n", count: 10).utf8))
        }
    }
}
