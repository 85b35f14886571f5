import CommandLineText
import ControlAPI
import ControlClient
import Testing

@Suite("Table of connections")
struct ConnectionTableTests {
    private static var one: Connection {
        var one = Connection { $0.id = "17" }
        one.kind = "webSocket"
        one.state = "open"
        one.peerAddress = "127.0.0.1:50000"
        one.listener = "web"
        one.upstream = "backend"
        one.receivedBytes = 2048
        one.sentBytes = 17
        one.idleMs = 400
        one.ageMs = 65_000
        one.ping = RoundTripTimes { ($0.lastMs, $0.p50Ms, $0.p99Ms, $0.count) = (0.42, 0.4, 1, 3) }
        one.labels = ["team": "blue"]
        return one
    }

    @Test func rowHasTheMostImportantFields() {
        #expect(
            ConnectionTable([Self.one]).table.lines() == [
                "ID  KIND  STATE  PEER             VIA            RECEIVED  SENT  QUEUED     RTT    IDLE    AGE  NOTE",
                "17  ws    open   127.0.0.1:50000  web > backend     2 KiB  17 B       0  0.4 ms  400 ms  1m05s  team=blue",
            ])
    }

    @Test func userHasAColumnWhereThereIsOne() {
        var other = Self.one
        other.user = "ada\u{1B}[2J"
        #expect(
            ConnectionTable([Self.one, other]).table.lines().map { $0.prefix(61) } == [
                "ID  KIND  STATE  PEER             USER          VIA          ",
                "17  ws    open   127.0.0.1:50000  -             web > backend",
                "17  ws    open   127.0.0.1:50000  ada\\u{1B}[2J  web > backend",
            ])
        #expect(ConnectionTable([other]).table.lines(cells: 80)[0].contains("USER"))
        #expect(ConnectionDetails(other).lines.contains("user        ada\\u{1B}[2J"))
    }

    @Test(arguments: [60, 80, 100, 120])
    func tableFitsUsualTerminals(_ cells: Int) {
        #expect(ConnectionTable([Self.one]).table.lines(cells: cells).allSatisfy { CellWidth.of($0) <= cells })
    }

    @Test(arguments: ["203.0.113.217:54321", "[2001:db8:1234:5678:9abc:def0:1111:2222]:54321"])
    func aNarrowTerminalStillShowsThePortOfAPeer(_ address: String) {
        var one = Self.one
        one.peerAddress = address
        one.listener = "a-listener-with-a-long-name"
        #expect(ConnectionTable([one]).table.lines(cells: 80)[1].contains(":54321  "))
    }

    /// A program that is no gateway, or a later one, may send any number.
    @Test func absurdNumbersOfAServerAreShown() {
        var one = Self.one
        (one.queuedSendBytes, one.queuedReceiveBytes) = (.max, .max)
        (one.receivedBytes, one.sentBytes) = (.min, .max)
        (one.idleMs, one.ageMs) = (1e308, -1e308)
        #expect(ConnectionTable([one]).table.lines()[1].contains("16 EiB"))
        let node = Node { ($0.name, $0.processorShare, $0.leaseMs, $0.connections) = ("a", 1e300, 1e308, .min) }
        #expect(NodeTable([node]).table.lines()[1].contains(" %"))
        let client = UserConnection { ($0.connection, $0.roomCount, $0.rooms) = ("17", .min, ["lobby"]) }
        let user = User { ($0.id, $0.connectionCount, $0.connections) = ("ann", .min, [client]) }
        #expect(RoomDetails.lines(user).contains { $0.hasSuffix("in lobby") })
    }

    @Test func emptyTableHasItsTitles() {
        #expect(ConnectionTable().table.lines().count == 1)
    }

    @Test func requestedFieldsAreThoseOfTheModel() {
        let members = Connection.members.map(\.name)
        #expect(Set(ConnectionTable.fields).isSubset(of: members))
    }

    @Test func detailsHaveOneLinePerProperty() {
        var one = Self.one
        one.state = "closed"
        one.closeCode = 4001
        one.closeReason = "bye\u{1B}[2J"
        one.handshake = Handshake {
            $0.request.line = "GET / HTTP/1.1"
            $0.request.headers = [Header { ($0.name, $0.value) = ("Host", "h") }]
            $0.response.line = "HTTP/1.1 101 Switching Protocols"
        }
        let lines = ConnectionDetails(one).lines
        #expect(lines.first == "id            17")
        #expect(lines.contains("round trip    last 0.4 ms, p50 0.4 ms, p99 1 ms of 3"))
        #expect(lines.contains("close reason  bye\\u{1B}[2J"))
        #expect(
            lines.suffix(3).first == "request       GET / HTTP/1.1" && lines.suffix(2).first == "              Host: h")
        #expect(one.closeDescription.hasPrefix("closed with 4001"))
    }

    @Test(
        arguments: [
            (1000, nil, true), (1001, nil, true), (1005, nil, true), (4001, nil, false), (1006, nil, false),
            (nil, "client/relaying/clean", true), (nil, "client/relaying/reset", false), (nil, nil, false),
        ] as [(Int?, String?, Bool)])
    func endIsCleanOrNot(_ code: Int?, _ reason: String?, _ isInOrder: Bool) {
        var one = Self.one
        one.closeCode = code
        one.terminationReason = reason
        #expect(one.endedCleanly == isInOrder)
    }

    @Test func eventsAreLines() {
        var event = Event { ($0.number, $0.type) = (7, "opened") }
        event.at = "2026-11-21T10:20:30.400Z"
        event.connection = "17"
        event.listener = "web"
        #expect(EventLine.line(event) == "10:20:30.400  opened           17, on web")
        var end = Event { ($0.number, $0.type) = (8, "closed") }
        end.connection = "17"
        end.reason = "downstream/relaying/clean(4001)"
        end.closeCode = 4001
        end.closeReason = "done\n"
        end.receivedBytes = 2048
        end.sentBytes = 5
        end.labels = ["team": "blue"]
        #expect(
            EventLine.line(end).hasSuffix(
                "17, downstream/relaying/clean(4001), close reason \"done \", received 2 KiB, sent 5 B, team=blue"))
        var gap = Event { ($0.number, $0.type) = (9, "gap") }
        gap.missedFrom = 8
        gap.missedTo = 9
        #expect(EventLine.line(gap).hasSuffix("events 8 to 9 are no longer kept"))
    }
}
