import Rooms
import Testing

/// A filter as a client sends it in JSON, with whether it matches the tags of `Self.tags`.
struct FilterCase: Sendable, CustomTestStringConvertible {
    let filter: String
    let matches: Bool

    init(_ filter: String, _ matches: Bool) {
        (self.filter, self.matches) = (filter, matches)
    }

    var testDescription: String { self.filter }

    static let tags = [Tag("ticker", "AAPL"), Tag("price", "100.50"), Tag("text", "größer"), Tag("empty", "")]

    /// As Centrifugo's documents describe each comparison.
    static let all = [
        FilterCase(#"{"key":"ticker","cmp":"eq","val":"AAPL"}"#, true),
        FilterCase(#"{"key":"ticker","cmp":"eq","val":"aapl"}"#, false),
        FilterCase(#"{"key":"none","cmp":"eq","val":"AAPL"}"#, false),
        FilterCase(#"{"key":"ticker","cmp":"neq","val":"AAPL"}"#, false),
        FilterCase(#"{"key":"none","cmp":"neq","val":"AAPL"}"#, true),
        FilterCase(#"{"key":"ticker","cmp":"in","vals":["MSFT","AAPL"]}"#, true),
        FilterCase(#"{"key":"ticker","cmp":"in","vals":["MSFT"]}"#, false),
        FilterCase(#"{"key":"none","cmp":"in","vals":["MSFT",""]}"#, true),
        FilterCase(#"{"key":"none","cmp":"nin","vals":["MSFT"]}"#, true),
        FilterCase(#"{"key":"ticker","cmp":"nin","vals":["AAPL"]}"#, false),
        FilterCase(#"{"key":"empty","cmp":"ex"}"#, true),
        FilterCase(#"{"key":"none","cmp":"ex"}"#, false),
        FilterCase(#"{"key":"none","cmp":"nex"}"#, true),
        FilterCase(#"{"key":"empty","cmp":"nex"}"#, false),
        FilterCase(#"{"key":"text","cmp":"sw","val":"grö"}"#, true),
        FilterCase(#"{"key":"text","cmp":"sw","val":"rö"}"#, false),
        FilterCase(#"{"key":"text","cmp":"ew","val":"ßer"}"#, true),
        FilterCase(#"{"key":"text","cmp":"ew","val":"ße"}"#, false),
        FilterCase(#"{"key":"text","cmp":"ct","val":"öß"}"#, true),
        FilterCase(#"{"key":"text","cmp":"ct","val":"oss"}"#, false),
        // Bytes are compared: this ö is o with a combining diaeresis.
        FilterCase(#"{"key":"text","cmp":"eq","val":"gro\u0308ßer"}"#, false),
        FilterCase(#"{"key":"price","cmp":"gt","val":"100.5"}"#, false),
        FilterCase(#"{"key":"price","cmp":"gte","val":"100.5"}"#, true),
        FilterCase(#"{"key":"price","cmp":"gt","val":"99"}"#, true),
        FilterCase(#"{"key":"price","cmp":"lt","val":"100.500001"}"#, true),
        FilterCase(#"{"key":"price","cmp":"lte","val":"-100.5"}"#, false),
        FilterCase(#"{"key":"ticker","cmp":"gt","val":"1"}"#, false),
        FilterCase(#"{"key":"ticker","cmp":"lte","val":"1"}"#, false),
        FilterCase(#"{"key":"price","cmp":"lt","val":"much"}"#, false),
        FilterCase(#"{"op":"and","nodes":[{"key":"ticker","cmp":"ex"},{"key":"none","cmp":"nex"}]}"#, true),
        FilterCase(#"{"op":"and","nodes":[{"key":"ticker","cmp":"ex"},{"key":"none","cmp":"ex"}]}"#, false),
        FilterCase(#"{"op":"or","nodes":[{"key":"none","cmp":"ex"},{"key":"ticker","cmp":"ex"}]}"#, true),
        FilterCase(#"{"op":"or","nodes":[{"key":"none","cmp":"ex"}]}"#, false),
        FilterCase(#"{"op":"not","nodes":[{"key":"ticker","cmp":"eq","val":"MSFT"}]}"#, true),
        FilterCase(
            #"{"op":"not","nodes":[{"op":"or","nodes":[{"key":"a","cmp":"ex"},{"key":"price","cmp":"ex"}]}]}"#, false),
    ]
}

@Suite("Filters by tags")
struct TagFilterTests {
    private static func request(_ filter: String) throws -> Command.SubscribeRequest? {
        var reader = CommandReader(
            Array(#"{"id":1,"subscribe":{"channel":"a","tf":\#(filter)}}"#.utf8), encoding: .json)
        guard case .subscribe(let request)? = try reader.next()?.request else { return nil }
        return request
    }

    private static func filter(_ text: String) throws -> TagFilter {
        try TagFilter(#require(try Self.request(text)?.filter))
    }

    @Test(arguments: FilterCase.all)
    func comparisonsAreThoseOfCentrifugo(_ one: FilterCase) throws {
        #expect(try Self.filter(one.filter).matches(FilterCase.tags) == one.matches)
    }

    @Test(arguments: [
        "{}", "[{}]", #"{"op":"xor","nodes":[{"key":"a","cmp":"ex"}]}"#, #"{"op":"and"}"#, #"{"op":"or","nodes":[]}"#,
        #"{"op":"not","nodes":[]}"#, #"{"op":"not","nodes":[{"key":"a","cmp":"ex"},{"key":"b","cmp":"ex"}]}"#,
        #"{"key":"a"}"#, #"{"key":"a","cmp":"like","val":"b"}"#, #"{"key":"a","cmp":"eq"}"#, #"{"cmp":"eq","val":"b"}"#,
        #"{"key":"a","cmp":"eq","val":"b","vals":["c"]}"#, #"{"key":"a","cmp":"in"}"#,
        #"{"key":"a","cmp":"in","val":"b","vals":["c"]}"#, #"{"cmp":"in","vals":["c"]}"#,
        #"{"key":"a","cmp":"ex","val":"b"}"#, #"{"key":"a","cmp":"gt"}"#, #"{"op":"and","nodes":[null]}"#,
    ])
    func filterThatCentrifugoRefusesIsRefused(_ text: String) throws {
        guard !text.hasPrefix("[") else {
            #expect(throws: (any Error).self) { try Self.request(text) }
            return
        }
        #expect(throws: CommandError.badRequest) { try Self.filter(text) }
    }

    @Test func filterAboveTheLimitsIsRefused() throws {
        func values(_ count: Int, _ length: Int) -> String {
            let value = String(repeating: "v", count: length)
            return #"{"key":"a","cmp":"in","vals":["#
                + Array(repeating: "\"\(value)\"", count: count).joined(separator: ",")
                + "]}"
        }
        #expect(try !Self.filter(values(255, 1)).matches([]))
        #expect(throws: CommandError.limitExceeded) { try Self.filter(values(256, 1)) }
        #expect(try !Self.filter(values(1, 4095)).matches([]))
        #expect(throws: CommandError.limitExceeded) { try Self.filter(values(1, 4096)) }
        let nodes = Array(repeating: #"{"key":"a","cmp":"ex"}"#, count: 256).joined(separator: ",")
        #expect(throws: CommandError.limitExceeded) { try Self.filter(#"{"op":"or","nodes":["# + nodes + "]}") }
    }

    @Test func deepFilterIsRefusedInBothEncodings() throws {
        var text = #"{"key":"a","cmp":"ex"}"#
        for _ in 0..<200 { text = #"{"op":"not","nodes":["# + text + "]}" }
        #expect(throws: (any Error).self) { try Self.filter(text) }
        // cmp (3) "ex", then op (1) "not" and nodes (6) around it.
        var bytes: [UInt8] = [0x1A, 2] + Array("ex".utf8)
        for _ in 0..<200 { bytes = [0x0A, 3] + Array("not".utf8) + Self.field(6, bytes) }
        let subscribe = Self.field(1, Array("a".utf8)) + Self.field(13, bytes)
        let command = [0x08, 1] + Self.field(5, subscribe)
        var reader = CommandReader(Self.length(command.count) + command, encoding: .protobuf)
        #expect(throws: (any Error).self) { try reader.next() }
    }

    @Test func filterIsReadFromProtobuf() throws {
        // {op (1) "and", nodes (6) [{key (2) "k", cmp (3) "in", vals (5) "x", vals "y"}, {key "l", cmp "eq", val (4) "z"}]}
        let first =
            Self.field(2, Array("k".utf8)) + Self.field(3, Array("in".utf8)) + Self.field(5, Array("x".utf8))
            + Self.field(5, Array("y".utf8))
        let second = Self.field(2, Array("l".utf8)) + Self.field(3, Array("eq".utf8)) + Self.field(4, Array("z".utf8))
        let filter = Self.field(1, Array("and".utf8)) + Self.field(6, first) + Self.field(6, second)
        let command = [0x08, 1] + Self.field(5, Self.field(1, Array("a".utf8)) + Self.field(13, filter))
        var reader = CommandReader(Self.length(command.count) + command, encoding: .protobuf)
        guard case .subscribe(let request)? = try reader.next()?.request else {
            Issue.record("no request to subscribe")
            return
        }
        let json = try Self.request(
            #"{"op":"and","nodes":[{"key":"k","cmp":"in","vals":["x","y"]},{"key":"l","cmp":"eq","val":"z"}]}"#)
        #expect(request == json)
    }

    private static func length(_ count: Int) -> [UInt8] {
        count < 128 ? [UInt8(count)] : [UInt8(count & 127 | 128), UInt8(count >> 7)]
    }

    private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        [number << 3 | 2] + Self.length(content.count) + content
    }

    @Test func decimalNumbersAreComparedExactly() throws {
        let ordered = [
            "-10000000000000000000000000000000000000001", "-10000000000000000000000000000000000000000", "-2", "-1.5",
            "-1.25",
            "-0.01", "0", "0.0000000000000000000000000000001", "0.5", "1", "1.05", "1.5", "2", "10",
            "10000000000000000000000000000000000000000.1", "10000000000000000000000000000000000000000.2",
        ]
        let numbers = try ordered.map { try #require(DecimalText($0)) }
        #expect(numbers == numbers.sorted())
        #expect(Set(numbers).count == ordered.count)
        for (one, other) in [("1.50", "01.5"), ("-0", "0.0"), ("+3", "3"), ("00", "0")] {
            #expect(try #require(DecimalText(one)) == #require(DecimalText(other)))
        }
        for text in [
            "", "-", "1.", ".5", "1e3", "0x1", "1,5", "1.2.3", " 1", "٣", "--1", String(repeating: "1", count: 201),
        ] {
            #expect(DecimalText(text) == nil, "\(text)")
        }
    }

    // MARK: One client

    private static let wanted = #"{"key":"k","cmp":"eq","val":"v"}"#

    private static func joined(
        _ scene: inout ClientScene, recovered: [Publication], newest: UInt64
    ) throws -> Reply.SubscribeResult? {
        var request = try #require(try Self.request(Self.wanted))
        (request.recovers, request.wantsDeltas) = (true, true)
        request.position = StreamPosition(offset: 3, epoch: "e")
        guard case .join(let join)? = scene.send(.subscribe(request)).last else { return nil }
        #expect(!join.usesDeltas)
        var result = RoomClient.JoinResult(position: StreamPosition(offset: newest, epoch: "e"))
        (result.publications, result.isRecovered) = (recovered, true)
        scene.client.joined("a", .success(result), at: scene.now)
        guard case .send(.subscribe(7, let reply))? = scene.actions().last else { return nil }
        return reply
    }

    private static func publication(_ offset: UInt64, _ value: String) -> Publication {
        var publication = Publication(.json([0x31]), tags: [Tag("k", value)])
        publication.offset = offset
        return publication
    }

    private static func scene() -> ClientScene {
        ClientScene(
            ClientScene.authority { policy in
                policy.allowsFilters = true
                policy.deltas = .fossil
            })
    }

    @Test func clientRecoversWhatItsFilterMatches() throws {
        var scene = Self.scene()
        _ = scene.connect()
        let missed = [Self.publication(4, "x"), Self.publication(5, "v"), Self.publication(6, "x")]
        let reply = try #require(try Self.joined(&scene, recovered: missed, newest: 6))
        #expect(reply.publications.map(\.offset) == [5])
        #expect(reply.isRecovered && !reply.usesDeltas)
        // It is at 5 when it has read the reply.
        #expect(reply.position.offset == 3)
    }

    @Test func clientThatMissedOnlyWhatItDoesNotWantContinuesAfterIt() throws {
        var scene = Self.scene()
        _ = scene.connect()
        let reply = try #require(
            try Self.joined(&scene, recovered: [Self.publication(4, "x"), Self.publication(5, "y")], newest: 5))
        #expect(reply.publications.isEmpty && reply.isRecovered)
        #expect(reply.position == StreamPosition(offset: 5, epoch: "e"))
    }

    @Test func filterIsRefusedWhereThePolicyDoesNotAllowIt() throws {
        var scene = ClientScene()
        _ = scene.connect()
        let request = try #require(try Self.request(Self.wanted))
        #expect(scene.send(.subscribe(request)) == [.send(.error(number: 7, .badRequest))])
        // The client may enter without one.
        #expect(scene.send(.subscribe(Command.SubscribeRequest(channel: "a"))).count == 1)
        #expect(!scene.client.isClosed)
    }

    @Test func wrongFilterInConnectEndsTheConnection() throws {
        var scene = Self.scene()
        var request = Command.ConnectRequest()
        request.subscriptions = [try #require(try Self.request(#"{"key":"k","cmp":"eq"}"#))]
        #expect(scene.send(.connect(request), number: 1).last == .close(.badRequest))
    }
}
