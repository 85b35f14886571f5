import Rooms
import TestSupport
import Testing
import WireText

/// Commands as Centrifugo's documents and client programs write them, in JSON and in Protobuf (client.proto).
@Suite("Commands of Centrifuge's client protocol")
struct CommandTests {
    private static func commands(_ text: String) throws -> [Command] {
        var reader = CommandReader(Array(text.utf8), encoding: .json)
        var commands: [Command] = []
        while let command = try reader.next() { commands.append(command) }
        return commands
    }

    private static func commands(_ bytes: [UInt8]) throws -> [Command] {
        var reader = CommandReader(bytes, encoding: .protobuf)
        var commands: [Command] = []
        while let command = try reader.next() { commands.append(command) }
        return commands
    }

    private static func subscribe(_ channel: String, _ change: (inout Command.SubscribeRequest) -> Void = { _ in })
        -> Command.Request
    {
        var request = Command.SubscribeRequest(channel: channel)
        change(&request)
        return .subscribe(request)
    }

    private static func json(_ text: String) -> Payload { .json(Array(text.utf8)) }

    @Test func lineIsOneCommand() throws {
        let commands = try Self.commands(
            #"{"id": 1, "subscribe": {"channel": "ch1"}}"# + "\n" + #"{"id": 2, "subscribe": {"channel": "ch2"}}"#)
        #expect(commands.map(\.number) == [1, 2])
        #expect(commands.map(\.request) == [Self.subscribe("ch1"), Self.subscribe("ch2")])
    }

    @Test(arguments: ["", "\n", "\r\n \n\n"])
    func emptyLinesAreNoCommands(_ text: String) throws {
        #expect(try Self.commands(text).isEmpty)
    }

    @Test func emptyCommandAnswersAPing() throws {
        #expect(try Self.commands("{}").map(\.request) == [.pong])
        #expect(try Self.commands([0]).map(\.request) == [.pong])
    }

    @Test func fieldsOfRequestsAreRead() throws {
        let connect = try Self.commands(
            #"{"id":1,"connect":{"token":"t","data":{"a":1},"name":"js","version":"2","subs":{"x":{"recover":true,"offset":5,"epoch":"e"}},"headers":{"k":"v"}}}"#
        )
        var expected = Command.ConnectRequest()
        expected.token = "t"
        expected.data = Self.json(#"{"a":1}"#)
        (expected.name, expected.version) = ("js", "2")
        var subscription = Command.SubscribeRequest(channel: "x")
        subscription.recovers = true
        subscription.position = StreamPosition(offset: 5, epoch: "e")
        expected.subscriptions = [subscription]
        #expect(connect.map(\.request) == [.connect(expected)])

        let all = try Self.commands(
            #"""
            {"id":2,"subscribe":{"channel":"c","token":"t","recover":true,"epoch":"e","offset":7,"positioned":true,"recoverable":true,"join_leave":true,"flag":3}}
            {"id":3,"unsubscribe":{"channel":"c"}}
            {"id":4,"publish":{"channel":"c","data":[1,"\u00e9"]}}
            {"id":5,"presence":{"channel":"c"}}
            {"id":6,"presence_stats":{"channel":"c"}}
            {"id":7,"history":{"channel":"c","limit":-1,"since":{"offset":3,"epoch":"e"},"reverse":true}}
            {"id":8,"ping":{}}
            {"send":{"data":1}}
            {"id":9,"rpc":{"method":"m","data":{}}}
            {"id":10,"refresh":{"token":"t"}}
            {"id":11,"sub_refresh":{"channel":"c","token":"t"}}
            """#)
        var history = Command.HistoryRequest()
        history.channel = "c"
        history.limit = -1
        history.since = StreamPosition(offset: 3, epoch: "e")
        history.isReversed = true
        #expect(
            all.map(\.request) == [
                Self.subscribe("c") {
                    $0.token = "t"
                    $0.recovers = true
                    $0.position = StreamPosition(offset: 7, epoch: "e")
                    $0.wantsPosition = true
                    $0.rejectsLoss = true
                }, .unsubscribe(channel: "c"), .publish(channel: "c", Self.json(#"[1,"\u00e9"]"#)),
                .presence(channel: "c"), .presenceStats(channel: "c"), .history(history), .ping, .send, .rpc,
                .refresh(token: "t"), .subscriptionRefresh(channel: "c", token: "t"),
            ])
        #expect(all.map(\.number) == [2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11])
    }

    @Test func deltasAreWantedInFossilsFormatAlone() throws {
        let commands = try Self.commands(
            #"""
            {"id":1,"subscribe":{"channel":"c","delta":"fossil"}}
            {"id":2,"subscribe":{"channel":"c","delta":"vcdiff"}}
            {"id":3,"subscribe":{"channel":"c","delta":""}}
            """#)
        #expect(
            commands.map(\.request) == [
                Self.subscribe("c") { $0.wantsDeltas = true }, Self.subscribe("c") { $0.wantsUnknownDeltas = true },
                Self.subscribe("c"),
            ])
        // id 1, subscribe (5) {channel (1) "c", delta (12) "fossil"}
        let bytes: [UInt8] = [0x08, 1, 0x2A, 11, 0x0A, 1, 0x63, 0x62, 6] + Array("fossil".utf8)
        let binary = try Self.commands([UInt8(bytes.count)] + bytes)
        #expect(binary.map(\.request) == [Self.subscribe("c") { $0.wantsDeltas = true }])
    }

    /// Newer clients have subscriptions to maps and shared polls, too.
    @Test func onlyStreamsAreSupported() throws {
        let commands = try Self.commands(
            #"""
            {"id":1,"subscribe":{"channel":"c","type":1}}
            {"id":2,"publish":{"channel":"c","data":1,"type":1,"key":"k"}}
            {"id":3,"subscribe":{"channel":"c","type":0}}
            {"id":4,"publish":{"channel":"c","data":1,"type":0}}
            """#)
        #expect(
            commands.map(\.request) == [
                .unsupported, .unsupported, Self.subscribe("c"), .publish(channel: "c", Self.json("1")),
            ])
        // id 1, subscribe (5) {channel (1) "c", type (15) 1}
        let subscribe: [UInt8] = [0x08, 1, 0x2A, 5, 0x0A, 1, 0x63, 0x78, 1]
        // id 2, publish (7) {channel (1) "c", data (2) "1", type (3) 1}
        let publish: [UInt8] = [0x08, 2, 0x3A, 8, 0x0A, 1, 0x63, 0x12, 1, 0x31, 0x18, 1]
        let binary = try Self.commands([UInt8(subscribe.count)] + subscribe + [UInt8(publish.count)] + publish)
        #expect(binary.map(\.request) == [.unsupported, .unsupported])
    }

    @Test func unknownFieldsAndNullAreIgnored() throws {
        let commands = try Self.commands(
            #"{"id":1,"method":3,"params":{"x":[]},"subscribe":{"channel":"c","token":null,"new":{"a":1}}}"#)
        #expect(commands.map(\.request) == [Self.subscribe("c")])
    }

    @Test(arguments: [
        "1", "[]", #""text""#, #"{"id":1"#, #"{"id":-1}"#, #"{"id":4294967296}"#, #"{"id":"1"}"#,
        #"{"id":1,"connect":1}"#,
        #"{"id":1,"subscribe":{"channel":1}}"#, #"{"id":1,"subscribe":{"offset":-1}}"#, #"{"id":1} {"id":2}"#,
        #"{"id":1,"publish":{"channel":"c","data":}}"#, #"{"id":1,"publish":{"data":nul}}"#, "nonsense",
    ])
    func textThatIsNoCommandIsRefused(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try Self.commands(text) }
    }

    @Test func deepNestingIsRefused() {
        let nested = String(repeating: "[", count: 100_000)
        #expect(throws: JSONSyntaxError.self) {
            try Self.commands(#"{"id":1,"publish":{"channel":"c","data":"# + nested)
        }
    }

    /// Encoded by hand from the field numbers of client.proto.
    @Test func protobufCommandsAreRead() throws {
        // id 1, subscribe (5) {channel (1) "ab", recover (3) true, epoch (6) "e", offset (7) 300}
        let subscribe: [UInt8] = [0x08, 1, 0x2A, 12, 0x0A, 2, 0x61, 0x62, 0x18, 1, 0x32, 1, 0x65, 0x38, 0xAC, 0x02]
        // id 2, publish (7) {channel (1) "c", data (2) "[1]"}
        let publish: [UInt8] = [0x08, 2, 0x3A, 8, 0x0A, 1, 0x63, 0x12, 3, 0x5B, 0x31, 0x5D]
        // id 3, publish (7) {channel "c", data FF}
        let binary: [UInt8] = [0x08, 3, 0x3A, 6, 0x0A, 1, 0x63, 0x12, 1, 0xFF]
        // id 4, connect (4) {subs (3) {key (1) "x", value (2) {offset (7) 5}}, name (4) "py"}
        let connect: [UInt8] = [0x08, 4, 0x22, 13, 0x1A, 7, 0x0A, 1, 0x78, 0x12, 2, 0x38, 5, 0x22, 2, 0x70, 0x79]
        // id 5, sub_refresh (15) {channel "c", token (2) "t"}
        let refresh: [UInt8] = [0x08, 5, 0x7A, 6, 0x0A, 1, 0x63, 0x12, 1, 0x74]
        let messages = [subscribe, publish, binary, connect, refresh]
        let commands = try Self.commands(messages.flatMap { [UInt8($0.count)] + $0 })
        #expect(commands.map(\.number) == [1, 2, 3, 4, 5])
        var wanted = Command.ConnectRequest()
        wanted.name = "py"
        var subscription = Command.SubscribeRequest(channel: "x")
        subscription.position.offset = 5
        wanted.subscriptions = [subscription]
        #expect(
            commands.map(\.request) == [
                Self.subscribe("ab") {
                    $0.recovers = true
                    $0.position = StreamPosition(offset: 300, epoch: "e")
                }, .publish(channel: "c", Self.json("[1]")), .publish(channel: "c", .binary([0xFF])), .connect(wanted),
                .subscriptionRefresh(channel: "c", token: "t"),
            ])
    }

    @Test func unknownProtobufFieldsAreSkipped() throws {
        // 64-bit (20), 32-bit (21), varint (22), bytes (23), then id.
        let message: [UInt8] =
            [
                0xA1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0xAD, 1, 1, 2, 3, 4, 0xB0, 1, 0x96, 1, 0xBA, 1, 2, 9, 9, 0x08, 7, 0x5A,
                0,
            ]
        let commands = try Self.commands([UInt8(message.count)] + message)
        #expect(commands.map(\.number) == [7] && commands.map(\.request) == [.ping])
    }

    @Test(
        arguments: [
            [5], [2, 0x08], [1, 0x80], [2, 0x0B, 0], [3, 0x2A, 5, 0],
            [12, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            [5, 0x2A, 3, 0x0A, 1, 0xFF], [2, 0x2D, 0], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
        ] as [[UInt8]])
    func malformedProtobufIsRefused(_ bytes: [UInt8]) {
        #expect(throws: JSONSyntaxError.self) { try Self.commands(bytes) }
    }

    @Test func anyBytesGiveCommandsOrOneError() {
        var state: UInt64 = 42
        for _ in 0..<20_000 {
            var bytes: [UInt8] = []
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for _ in 0..<Int(state >> 59) {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes.append(UInt8(truncatingIfNeeded: state >> 40) & ((state >> 20) & 1 == 0 ? 0x7F : 0x3F))
            }
            for encoding in ProtocolEncoding.allCases {
                var reader = CommandReader(bytes, encoding: encoding)
                var count = 0
                while let command = try? reader.next() {
                    count += 1
                    #expect(count <= bytes.count + 1, "\(command)")
                }
            }
        }
    }
}

@Suite("Requests of clients that only receive")
struct UnidirectionalRequestTests {
    @Test func bodyIsAConnectRequestPerhapsWithAPublication() throws {
        let text =
            #"{"token":"t","subs":{"a":{"recover":true,"offset":3,"epoch":"e"}},"publish":{"channel":"b","data":{"x":1}}}"#
        let request = try UnidirectionalRequest(Array(text.utf8))
        #expect(request.connect.token == "t" && request.connect.subscriptions.map(\.channel) == ["a"])
        #expect(request.connect.subscriptions.first?.position == StreamPosition(offset: 3, epoch: "e"))
        #expect(request.publication?.channel == "b" && request.publication?.data == .json(Array(#"{"x":1}"#.utf8)))
        #expect(try UnidirectionalRequest([]) == UnidirectionalRequest(Array("{}".utf8)))
    }

    @Test(arguments: ["[]", "{", "{}x", #"{"subs":[]}"#, #"{"publish":1}"#, "\u{FF}"])
    func otherBodiesAreRefused(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try UnidirectionalRequest(Array(text.utf8)) }
    }

    @Test func repliesBecomePushes() {
        func text(_ reply: Reply) -> String? { reply.unidirectional.map { String(decoding: $0, as: UTF8.self) } }
        var result = Reply.ConnectResult()
        result.client = "c"
        result.pingInterval = 25
        #expect(text(.connect(number: 1, result)) == #"{"connect":{"client":"c","ping":25}}"#)
        #expect(text(.ping) == "{}")
        #expect(
            text(.push(channel: "a", .publication(Publication(.json(Array("1".utf8))))))
                == #"{"channel":"a","pub":{"data":1}}"#)
        #expect(
            text(.push(channel: "", .disconnect(.shutdown)))
                == #"{"disconnect":{"code":3001,"reason":"shutdown","reconnect":true}}"#)
        #expect(text(.publish(number: 1)) == nil)
    }
}

@Suite("Replies of Centrifuge's client protocol")
struct ReplyTests {
    private static func json(_ reply: Reply) -> String { String(decoding: reply.encoded(.json), as: UTF8.self) }

    @Test func repliesHaveTheFieldsThatClientsRead() {
        var connect = Reply.ConnectResult()
        connect.client = "c1"
        connect.version = "v"
        connect.expiry = Reply.Expiry(60)
        connect.pingInterval = 25
        connect.expectsPong = true
        var subscription = Reply.SubscribeResult()
        subscription.isRecoverable = true
        subscription.isPositioned = true
        subscription.position = StreamPosition(offset: 2, epoch: "e")
        connect.subscriptions = [("x", subscription)]
        #expect(
            Self.json(.connect(number: 1, connect))
                == #"{"id":1,"connect":{"client":"c1","version":"v","expires":true,"ttl":60,"subs":{"x":{"recoverable":true,"epoch":"e","offset":2,"positioned":true}},"ping":25,"pong":true}}"#
        )
        #expect(
            Self.json(.error(number: 2, .internal))
                == #"{"id":2,"error":{"code":100,"message":"internal server error","temporary":true}}"#)
        #expect(
            Self.json(.error(number: 2, .permissionDenied))
                == #"{"id":2,"error":{"code":103,"message":"permission denied"}}"#)
        #expect(Self.json(.publish(number: 3)) == #"{"id":3,"publish":{}}"#)
        #expect(Self.json(.ping) == "{}")
        #expect(Self.json(.pong(number: 4)) == #"{"id":4,"ping":{}}"#)
        #expect(Self.json(.presence(number: 5, [])) == #"{"id":5,"presence":{"presence":{}}}"#)
        #expect(
            Self.json(
                .presence(number: 5, [ClientInfo(user: "ann", client: "c1", connectionInfo: .json(Array("1".utf8)))]))
                == #"{"id":5,"presence":{"presence":{"c1":{"user":"ann","client":"c1","conn_info":1}}}}"#)
        #expect(
            Self.json(.presenceStats(number: 6, clients: 3, users: 2))
                == #"{"id":6,"presence_stats":{"num_clients":3,"num_users":2}}"#)
        #expect(
            Self.json(.presenceStats(number: 6, clients: 0, users: 0))
                == #"{"id":6,"presence_stats":{"num_clients":0,"num_users":0}}"#)
        #expect(
            Self.json(.history(number: 7, [], StreamPosition(offset: 4, epoch: "e")))
                == #"{"id":7,"history":{"publications":[],"epoch":"e","offset":4}}"#)
        #expect(
            Self.json(.history(number: 7, [], StreamPosition()))
                == #"{"id":7,"history":{"publications":[],"epoch":"","offset":0}}"#)
    }

    @Test func pushesHaveTheirChannel() {
        var publication = Publication(
            .json(Array(#"{"a":"é"}"#.utf8)), info: ClientInfo(client: "c"), tags: [Tag("k\"", "v")])
        publication.offset = 9
        #expect(
            Self.json(.push(channel: "a\"b", .publication(publication)))
                == #"{"push":{"channel":"a\"b","pub":{"data":{"a":"é"},"info":{"user":"","client":"c"},"offset":9,"tags":{"k\"":"v"}}}}"#
        )
        #expect(
            Self.json(.push(channel: "c", .unsubscribe(.expired)))
                == #"{"push":{"channel":"c","unsubscribe":{"code":2501,"reason":"subscription expired"}}}"#)
        #expect(
            Self.json(.push(channel: "", .disconnect(.expired)))
                == #"{"push":{"disconnect":{"code":3005,"reason":"connection expired","reconnect":true}}}"#)
    }

    /// Encoded by hand from the field numbers of client.proto.
    @Test func contentsAreStringsInJSONWhereDeltasAreNegotiated() {
        let whole = Publication(.json(Array(#"{"a":"é"}"#.utf8)))
        #expect(
            Self.json(.push(channel: "c", .publicationOfDeltas(whole, delta: nil)))
                == #"{"push":{"channel":"c","pub":{"data":"{\"a\":\"é\"}"}}}"#)
        #expect(
            Self.json(.push(channel: "c", .publicationOfDeltas(whole, delta: Array("9\n9@0,x;".utf8))))
                == #"{"push":{"channel":"c","pub":{"data":"9\n9@0,x;","delta":true}}}"#)
        let bytes = Publication(.binary([0xFF, 0x00]))
        #expect(
            Self.json(.push(channel: "c", .publicationOfDeltas(bytes, delta: nil)))
                == #"{"push":{"channel":"c","pub":{"data":"{\"b64data\":\"/wA=\"}"}}}"#)
        // push (4) {channel (2) "c", pub (4) {data (4) FF 00}}, and with data "1", delta (8) true
        #expect(
            Reply.push(channel: "c", .publicationOfDeltas(bytes, delta: nil)).encoded(.protobuf)
                == [11, 0x22, 9, 0x12, 1, 0x63, 0x22, 4, 0x22, 2, 0xFF, 0x00])
        #expect(
            Reply.push(channel: "c", .publicationOfDeltas(bytes, delta: [0x31])).encoded(.protobuf)
                == [12, 0x22, 10, 0x12, 1, 0x63, 0x22, 5, 0x22, 1, 0x31, 0x40, 1])
    }

    @Test func recoveredPublicationsAreDeltasAfterTheFirst() throws {
        var result = Reply.SubscribeResult()
        result.usesDeltas = true
        let numbers = (100..<120).map(String.init).joined(separator: ",")
        let texts = ["0", "1", "2"].map { "[\(numbers),\($0),\(numbers)]" }
        result.publications = texts.map { Publication(.json(Array($0.utf8))) }
        let json = Self.json(.subscribe(number: 2, result))
        #expect(json.hasPrefix(#"{"id":2,"subscribe":{"publications":[{"data":"\#(texts[0])"},{"data":""#))
        #expect(json.hasSuffix(#"","delta":true}],"delta":true}}"#))
        let deltas = json.split(separator: #""data":""#).dropFirst(2).map { part in
            part.prefix { $0 != "\"" }.replacing("\\n", with: "\n")
        }
        for (number, delta) in deltas.enumerated() {
            let target = try FossilDeltaDecoder.apply(Array(delta.utf8), to: Array(texts[number].utf8))
            #expect(String(decoding: target, as: UTF8.self) == texts[number + 1])
        }
        #expect(deltas.count == 2)
    }

    /// Programs may sign what they send.
    @Test func bytesThatAreJSONAreKeptAsTheyCame() throws {
        let bytes = Array(" {\r\n  \"a\": [1,\n2]}\n".utf8)
        let envelope = try RoomEnvelope(RoomEnvelope(.publication(Publication(Payload(detecting: bytes)))).encoded)
        guard case .publication(let publication) = envelope.content else {
            Issue.record("\(envelope)")
            return
        }
        #expect(publication.data == .json(bytes) && publication.data.content(in: .protobuf) == bytes)
        #expect(
            Self.json(.push(channel: "c", .publication(publication)))
                == #"{"push":{"channel":"c","pub":{"data": {  "a": [1,2]}}}}"#)
    }

    @Test func bytesAreBase64ForClientsThatSpeakJSON() {
        let publication = Publication(.binary([0xFF, 0x00]))
        #expect(
            Self.json(.push(channel: "c", .publication(publication)))
                == #"{"push":{"channel":"c","pub":{"data":{"b64data":"/wA="}}}}"#)
    }

    @Test func severalRepliesAreSeparatedInOneMessage() {
        var json: [UInt8] = []
        Reply.publish(number: 1).append(to: &json, encoding: .json)
        Reply.ping.append(to: &json, encoding: .json)
        #expect(String(decoding: json, as: UTF8.self) == "{\"id\":1,\"publish\":{}}\n{}")
        var binary: [UInt8] = []
        Reply.publish(number: 1).append(to: &binary, encoding: .protobuf)
        Reply.ping.append(to: &binary, encoding: .protobuf)
        #expect(binary == [4, 0x08, 1, 0x42, 0, 0])
    }

    /// Encoded by hand from the field numbers of client.proto.
    @Test func protobufRepliesHaveTheirNumbers() {
        var publication = Publication(.json(Array("[1]".utf8)))
        publication.offset = 300
        // push (4) {channel (2) "c", pub (4) {data (4) "[1]", offset (6) 300}}
        #expect(
            Reply.push(channel: "c", .publication(publication)).encoded(.protobuf)
                == [15, 0x22, 13, 0x12, 1, 0x63, 0x22, 8, 0x22, 3, 0x5B, 0x31, 0x5D, 0x30, 0xAC, 0x02])
        // id (1) 2, error (2) {code (1) 103, message (2)}
        let message = Array("permission denied".utf8)
        #expect(
            Reply.error(number: 2, .permissionDenied).encoded(.protobuf)
                == [25, 0x08, 2, 0x12, 21, 0x08, 103, 0x12, UInt8(message.count)] + message)
    }

    @Test(arguments: [
        (3005, true), (3499, true), (3500, false), (3999, false), (4000, true), (4500, false), (5000, true),
    ])
    func codesTellClientsWhetherToConnectAgain(_ code: UInt16, _ isTemporary: Bool) {
        #expect(Disconnect(code, "").isTemporary == isTemporary)
    }
}
