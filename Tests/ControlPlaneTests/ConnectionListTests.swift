import ControlAPI
import ControlPlane
import GatewayCore
import SessionTasks
import StreamTransport
import Testing

@Suite("Lists of connections")
struct ConnectionListTests {
    private let now = MonotonicInstant(nanoseconds: 100_000_000_000)

    private func report(_ number: UInt64, _ side: TunnelSide = .downstream, bytes: Int = 0) -> ConnectionReport {
        var report = ConnectionReport(
            ConnectionKey(number, side), .webSocket, isAccepted: side == .downstream, stage: .open,
            createdAt: MonotonicInstant(nanoseconds: 90_000_000_000), takenAt: self.now)
        let record = TaskRecord(state: .running)
        record.countReceived(bytes: bytes, messages: 1, at: self.now)
        report.record = record
        return report
    }

    // MARK: Names

    @Test(arguments: ["17", "17u", "1", "18446744073709551615u"])
    func connectionKeyIsReadBackFromItsText(_ text: String) throws {
        #expect(try #require(ConnectionKey(text)).description == text)
    }

    @Test(arguments: ["", "0", "u", "017", "17U", "17uu", " 17", "-1", "18446744073709551616", "1e3", "17u ", "１７"])
    func invalidConnectionKeyIsRejected(_ text: String) {
        #expect(ConnectionKey(text) == nil)
    }

    /// Counters are read when a report is shown, which is later than it was taken.
    @Test func idleTimeIsNeverNegative() {
        let report = self.report(17)
        #expect(report.idle == .zero)
        report.record?.countReceived(bytes: 1, at: self.now.advanced(by: .seconds(3)))
        #expect(report.idle == .zero)
    }

    // MARK: Filters

    private func matches(_ query: String, _ change: (inout ConnectionReport) -> Void = { _ in }) throws -> Bool {
        var report = self.report(17)
        report.listener = "web"
        report.route = "echo"
        report.peer = .ipv4(address: 0x7F00_0001, port: 5000)
        report.upstream = "backend"
        report.endpoint = "tcp://10.0.0.1:80"
        report.user = "ada, \u{212A}"
        report.labels = ["team": "blue", "empty": "", "tier=1": "gold"]
        change(&report)
        return try ConnectionFilter(Query(query)).matches(report)
    }

    @Test(arguments: [
        "", "kind=webSocket", "kind=stream,webSocket", "state=open", "state=closed,open", "state=any", "listener=web",
        "listener=other,web", "route=echo", "peer=127.0.0.1", "peer=127.0.0.1:5000", "label=team", "label=team:blue",
        "label=empty:", "label=team=blue", "label=empty=", "label=tier=1", "label=tier=1:gold", "upstream=backend",
        "upstream=tcp://10.0.0.1:80", "upstream=x,backend", "label=team&label=empty", "minAgeMs=9999", "maxAgeMs=10000",
        "direction=accepted",
        "stalled=false", "user=ada,%20%E2%84%AA", "user=bob&user=ada,+%E2%84%AA",
        "id=17", "id=3,17", "kind=webSocket&listener=web&label=team:blue", "direction=accepted,opened",
    ])
    func filterSelectsMatchingConnections(_ query: String) throws {
        #expect(try self.matches(query))
    }

    @Test(arguments: [
        "kind=stream", "state=opening", "state=closed", "listener=other", "route=x", "upstream=x", "peer=127.0.0.2",
        "peer=127.0.0.1:5001", "label=team:red", "label=team=red", "label=team=", "label=tier", "label=none",
        "label=team&label=none", "minAgeMs=10001",
        "maxAgeMs=9999",
        // KELVIN SIGN and K are equivalent in Unicode, but other bytes.
        "direction=opened", "user=ada", "user=ada,+K", "stalled=true", "id=17u", "kind=webSocket&listener=other",
        "minIdleMs=1",
    ])
    func filterOmitsOtherConnections(_ query: String) throws {
        #expect(try !self.matches(query))
    }

    @Test(arguments: [
        ("kind=x", "kind"), ("state=opened", "state"), ("id=x", "id"), ("direction=up", "direction"),
        ("minAgeMs=-1", "minAgeMs"), ("minAgeMs=x", "minAgeMs"), ("stalled=maybe", "stalled"),
        ("maxAgeMs=nan", "maxAgeMs"), ("listener=", "listener"), ("route=echo,", "route"), ("upstream=", "upstream"),
        ("peer=&kind=webSocket", "peer"), ("id=", "id"), ("kind=", "kind"), ("state=", "state"), ("label=", "label"),
        ("label=:blue", "label"), ("direction=", "direction"), ("minIdleMs=", "minIdleMs"),
        ("user=", "user"), ("user=ada&user=", "user"),
    ])
    func invalidFilterIsRefused(_ text: String, _ parameter: String) throws {
        let query = try Query(text)
        let problem = #expect(throws: ControlProblem.self) { try ConnectionFilter(query) }
        #expect(problem?.errors.first?.parameter == parameter)
    }

    @Test func closedConnectionsAreListedOnRequest() throws {
        #expect(try !self.matches("") { $0.stage = .closed })
        #expect(try self.matches("state=closed") { $0.stage = .closed })
        #expect(try self.matches("state=any") { $0.stage = .closed })
    }

    // MARK: Order

    @Test(arguments: [
        ("sort=bytes", ["2", "1", "1u", "3"]), ("sort=-bytes", ["3", "1", "1u", "2"]),
        ("sort=id", ["1", "1u", "2", "3"]),
        ("sort=-id", ["3", "2", "1u", "1"]), ("", ["1", "1u", "2", "3"]),
    ])
    func connectionsAreSorted(_ query: String, _ expected: [String]) throws {
        let reports = [
            self.report(3, bytes: 30), self.report(1, .upstream, bytes: 20), self.report(2, bytes: 10),
            self.report(1, bytes: 20),
        ]
        let sort = try ConnectionSort(Query(query))
        #expect(sort.sorted(reports).map(\.description) == expected)
    }

    @Test(arguments: ["sort=x", "sort=--bytes", "sort=", "sort=bytes,id"])
    func anUnknownOrderIsRefused(_ text: String) throws {
        let query = try Query(text)
        #expect(throws: ControlProblem.self) { try ConnectionSort(query) }
    }

    // MARK: Pages

    @Test(arguments: [PageCursor.after(ConnectionKey(17, .upstream)), .position(snapshot: .max, offset: 1000)])
    func cursorsAreReadBack(_ cursor: PageCursor) throws {
        #expect(try PageCursor(cursor.text) == cursor)
    }

    @Test(arguments: ["", "a", "b17", "a0", "k", "kff", "kff.-1", "kxyz.1", "kff.1.2", "kff."])
    func otherCursorsAreRefused(_ text: String) {
        #expect(throws: ControlProblem.self) { try PageCursor(text) }
    }

    @Test func leastRecentlyUsedListIsDropped() {
        let lists = ListSnapshots()
        let keys = [ConnectionKey(1)]
        let first = lists.store(keys)
        let second = lists.store(keys)
        for _ in 0..<(ListSnapshots.limit - 1) {
            #expect(lists.keys(first) == keys)
            _ = lists.store(keys)
        }
        #expect(lists.keys(first) == keys)
        #expect(lists.keys(second) == nil)
    }

    // MARK: Writing

    @Test func everyFieldIsAMemberOfTheWireModel() {
        #expect(Connection.members.map(\.name) == ConnectionWriter.fields)
    }

    /// Each object nested in a written connection has members of its model only.
    @Test func nestedObjectsCanBeDecodedByTheirModels() throws {
        var report = self.report(17, bytes: 5)
        var times = RoundTrips()
        times.add(.milliseconds(2))
        report.roundTrips = times
        report.usesDeflate = true
        let writer = ConnectionWriter(anchor: TimeAnchor(instant: self.now, milliseconds: 0))
        let read = try JSONReading.read(Connection.self, writer.json(report))
        #expect(read.ping == RoundTripTimes { ($0.lastMs, $0.p50Ms, $0.p99Ms, $0.count) = (2, 2, 2, 1) })
        #expect(read.compression == Compression())
    }

    @Test func aConnectionIsWrittenAsTheWireModelReadsIt() throws {
        var report = self.report(17, bytes: 5)
        report.listener = "web"
        report.record?.priority = 0.7
        report.labels = ["a": "b"]
        report.closing = ClosingRecord(
            at: self.now, reason: TerminationReason(.downstream, .relaying, .clean(closeCode: 1000)))
        let writer = ConnectionWriter(anchor: TimeAnchor(instant: self.now, milliseconds: 1_700_000_000_000))
        let read = try JSONReading.read(Connection.self, writer.json(report))
        #expect(read.id == "17")
        #expect(read.kind == "webSocket")
        #expect(read.receivedBytes == 5)
        #expect(read.ageMs == 10_000)
        #expect(read.createdAt == "2023-11-14T22:13:10.000Z")
        #expect(read.closedAt == "2023-11-14T22:13:20.000Z")
        #expect(read.terminationReason == "downstream/relaying/clean(1000)")
        #expect(read.priority == 0.7)
        #expect(read.labels == ["a": "b"])
    }

    @Test func aStreamIsWrittenInTheOrderOfTheFields() {
        var report = ConnectionReport(
            ConnectionKey(17), .stream, isAccepted: true, stage: .open,
            createdAt: MonotonicInstant(nanoseconds: 90_000_000_000), takenAt: self.now)
        let record = TaskRecord(state: .running)
        record.update { $0.localAddress = .ipv4(address: 0x7F00_0001, port: 80) }
        record.markOpened(at: MonotonicInstant(nanoseconds: 90_001_500_000))
        record.countSent(bytes: 12_345, at: MonotonicInstant(nanoseconds: 99_998_765_999))
        report.record = record
        report.details = record.currentDetails
        report.listener = "raw"
        report.route = "a \"b\""
        report.peer = .ipv4(address: 0xC000_0201, port: 50_000)
        report.receiveStalled = .milliseconds(1500)
        let text = String(
            decoding: ConnectionWriter(anchor: TimeAnchor(instant: self.now, milliseconds: 1_700_000_000_000))
                .json(report), as: UTF8.self)
        #expect(
            text == #"{"id":"17","kind":"stream","direction":"accepted","state":"open","taskState":"running","#
                + #""priority":0.5,"listener":"raw","route":"a \"b\"","peerAddress":"192.0.2.1:50000","#
                + #""localAddress":"127.0.0.1:80","createdAt":"2023-11-14T22:13:10.000Z","#
                + #""openedAt":"2023-11-14T22:13:10.001Z","lastActivityAt":"2023-11-14T22:13:19.998Z","ageMs":10000,"#
                + #""idleMs":1.234,"receivedBytes":0,"sentBytes":12345,"receivedMessages":0,"sentMessages":0,"#
                + #""receivedFrames":0,"sentFrames":0,"queuedSendBytes":0,"queuedReceiveBytes":0,"#
                + #""receiveStalledMs":1500,"sendStalledMs":0,"stalled":false,"suspended":false,"relayed":false,"#
                + #""inputClosed":false,"outputClosed":false}"#)
    }

    @Test func onlyTheFieldsAskedForAreWritten() throws {
        let fields = try ConnectionWriter.fields(Query("fields=id,state&fields=receivedBytes"))
        let writer = ConnectionWriter(anchor: TimeAnchor(instant: self.now, milliseconds: 0), fields: fields)
        #expect(try JSONReading.names(writer.json(self.report(1))) == ["id", "state", "receivedBytes"])
    }

    @Test func anUnknownFieldIsRefused() throws {
        let query = try Query("fields=id,nonsense")
        #expect(throws: ControlProblem.self) { try ConnectionWriter.fields(query) }
    }
}
