import ControlAPI
import ControlPlane
import GatewayTestSupport
import Testing

@Suite("Connection operations of the REST interface", .gateway, .timeLimit(.minutes(5)))
struct ConnectionOperationTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private static func ids(_ reply: HTTPReply) -> [String] {
        reply.json["items"]?.items.compactMap { $0["id"]?.string } ?? []
    }

    /// The bytes that are sent and echoed, in base64: `hello`.
    private static let hello = "aGVsbG8="

    // MARK: Opening and closing

    @Test func openedConnectionIsLocatedAndShown() async throws {
        let body =
            #"{"url":"\#(self.gateway.echo)","description":"a","labels":{"team":"blue"},"priority":0.7,"headers":{"X-Test":"1","X-API-Key":"s3cr3t"}}"#
        let opened = try await self.gateway.post("/v1/connections", body)
        #expect(opened.status == 201)
        let id = opened.json["id"]?.string ?? ""
        #expect(opened.fields["location"] == "/v1/connections/\(id)")
        let shown = try await self.gateway.get("/v1/connections/\(id)").json
        #expect(shown["state"]?.string == "open" && shown["kind"]?.string == "webSocket")
        #expect(shown["direction"]?.string == "opened" && shown["url"]?.string == self.gateway.echo)
        #expect(shown["description"]?.string == "a" && shown["priority"] == .number(0.7))
        #expect(shown["labels"] == JSONValue(text: #"{"team":"blue"}"#))
        let handshake = shown["handshake"]
        #expect(
            handshake?["request"]?["headers"]?.items.contains(JSONValue(text: #"{"name":"X-Test","value":"1"}"#))
                == true)
        #expect(
            handshake?["request"]?["headers"]?.items
                .contains(JSONValue(text: #"{"name":"X-API-Key","value":"(hidden)"}"#)) == true)
        #expect(handshake?["response"]?["line"]?.string?.hasPrefix("HTTP/1.1 101") == true)
    }

    @Test func credentialsInTheQueryAreNotShown() async throws {
        let opened = try await self.gateway.post(
            "/v1/connections", #"{"url":"\#(self.gateway.echo)?room=a&access_token=s3cr3t"}"#)
        let id = try #require(opened.json["id"]?.string)
        for path in ["/v1/connections/\(id)", "/v1/connections"] {
            let text = try await self.gateway.get(path).text
            #expect(!text.contains("s3cr3t") && text.contains("room=a&access_token=(hidden)"), "\(path)")
        }
    }

    @Test func closedConnectionIsGoneWithItsClosingRecord() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let closed = try await self.gateway.request(
            "DELETE", "/v1/connections/\(id)?code=4001&reason=enough", fields: ["Prefer": "wait=60"])
        #expect(closed.status == 200)
        #expect(closed.json["state"]?.string == "closed" && closed.json["closeCode"]?.integer == 4001)
        #expect(closed.json["closeReason"]?.string == "enough")
        #expect(closed.json["terminationReason"]?.string == "operator/relaying/stopped")
        let gone = try await self.gateway.get("/v1/connections/\(id)")
        #expect(gone.problem == "410 closed")
        #expect(gone.json["connection"]?["closeCode"]?.integer == 4001)
        for verb in ["send", "receive", "ping", "suspend", "resume"] {
            let body = verb == "send" ? #"{"text":"late"}"# : nil
            #expect(
                try await self.gateway.post("/v1/connections/\(id):\(verb)", body).problem == "410 closed", "\(verb)")
        }
        #expect(Self.ids(try await self.gateway.get("/v1/connections?state=closed")).contains(id))
    }

    @Test func abortedConnectionIsResetWithoutACloseCode() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let closed = try await self.gateway.request(
            "DELETE", "/v1/connections/\(id)?abort=true", fields: ["Prefer": "wait=60"])
        #expect(closed.json["state"]?.string == "closed")
        #expect(closed.json["closeCode"] == nil)
    }

    @Test(arguments: ["code=999", "code=1005", "code=5000", "code=x", "abort=maybe"])
    func invalidClosingParameterIsRefused(_ query: String) async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.request("DELETE", "/v1/connections/\(id)?\(query)")
        #expect(reply.problem == "400 invalid-parameter \(query.prefix { $0 != "=" })")
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["state"]?.string == "open")
    }

    @Test func refusedConnectionAndHandshakeAreBadGateways() async throws {
        let unreachable = try await self.gateway.post("/v1/connections", #"{"url":"tcp://127.0.0.1:1"}"#)
        #expect(unreachable.problem == "502 cannot-connect")
        #expect(unreachable.json["retryable"]?.boolean == true)
        #expect(
            unreachable.json["connection"]?["terminationReason"]?.string == "upstream/connecting/unreachable")
        let nothing = "ws://127.0.0.1:\(self.gateway.port("web"))/nothing"
        let refused = try await self.gateway.post("/v1/connections", #"{"url":"\#(nothing)"}"#)
        #expect(refused.problem == "502 handshake-refused")
        #expect(refused.detail == "The server answered the opening handshake with status 404.")
    }

    @Test func drainingGatewayOpensNothing() async throws {
        self.gateway.phase = .draining
        let reply = try await self.gateway.post("/v1/connections", #"{"url":"\#(self.gateway.echo)"}"#)
        #expect(reply.problem == "503 draining")
        #expect(reply.fields["retry-after"] == "30")
    }

    // MARK: Messages and bytes

    @Test func messageIsSentAndItsEchoReceived() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let sent = try await self.gateway.post("/v1/connections/\(id):send", #"{"text":"grüße"}"#)
        #expect(sent.status == 200)
        let text = try await self.gateway.post("/v1/connections/\(id):receive")
        #expect(text.json["type"]?.string == "text" && text.json["text"]?.string == "grüße")
        _ = try await self.gateway.post("/v1/connections/\(id):send", #"{"data":"\#(Self.hello)"}"#)
        let data = try await self.gateway.post("/v1/connections/\(id):receive", #"{"timeoutMs":100000}"#)
        #expect(data.json["type"]?.string == "data" && data.json["data"]?.string == Self.hello)
        let shown = try await self.gateway.get("/v1/connections/\(id)").json
        #expect(shown["sentMessages"]?.integer == 2 && shown["receivedMessages"]?.integer == 2)
        #expect(shown["sentBytes"]?.integer == 12 && shown["receivedBytes"]?.integer == 12)
    }

    @Test(arguments: ["text/plain", "application/octet-stream"])
    func bodyOfAnotherTypeIsTheMessageItself(_ type: String) async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let sent = try await self.gateway.post("/v1/connections/\(id):send", "hello", fields: ["Content-Type": type])
        #expect(sent.status == 200)
        let reply = try await self.gateway.post("/v1/connections/\(id):receive")
        #expect(
            reply.json[type == "text/plain" ? "text" : "data"]?.string
                == (type == "text/plain" ? "hello" : Self.hello))
    }

    @Test(arguments: [
        (#"{}"#, "422 "), (#"{"text":"a","data":"aA=="}"#, "422 "), (#"{"data":"!"}"#, "422 invalid-value /data"),
        (#"{"text":1}"#, "422 wrong-type /text"), (#"{"text":"a","timeoutMs":-1}"#, "422 invalid-value /timeoutMs"),
        (#"{"txt":"a"}"#, "422 unknown-member /txt"), ("{", "400 malformed-json"),
    ])
    func invalidMessageIsRefusedAndNothingSent(_ body: String, _ problem: String) async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.post("/v1/connections/\(id):send", body)
        #expect(reply.problem.hasPrefix(problem), "\(reply.text)")
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["sentMessages"]?.integer == 0)
    }

    @Test func receiveWithoutDataEndsAfterItsTimeout() async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        let path = "/v1/connections/\(id):receive"
        #expect(try await self.gateway.post(path, #"{"timeoutMs":10}"#).status == 204)
        #expect(try await self.gateway.post(path + "?timeoutMs=10").status == 204)
        #expect(try await self.gateway.post(path, fields: ["Prefer": "wait=0"]).status == 204)
    }

    @Test func streamIsReceivedInPiecesOfTheRequestedSize() async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        let path = "/v1/connections/\(id):receive"
        _ = try await self.gateway.post("/v1/connections/\(id):send", #"{"data":"MDEyMzQ1Njc4OQ=="}"#)
        let first = try await self.gateway.post(path, #"{"minimumBytes":4,"maximumBytes":4}"#)
        #expect(first.json["data"]?.string == "MDEyMw==")
        let second = try await self.gateway.post(path + "?minimumBytes=2&maximumBytes=2")
        #expect(second.json["data"]?.string == "NDU=")
        let rest = try await self.gateway.post(path, #"{"minimumBytes":4}"#)
        #expect(rest.json["data"]?.string == "Njc4OQ==" && rest.json["sizeBytes"]?.integer == 4)
    }

    @Test(arguments: [
        "maximumBytes=0", "minimumBytes=-1", "maximumBytes=1048577", "timeoutMs=600001", "timeoutMs=x",
    ])
    func invalidReceiveParameterIsRefused(_ query: String) async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        let reply = try await self.gateway.post("/v1/connections/\(id):receive?\(query)")
        #expect(reply.problem == "400 invalid-parameter \(query.prefix { $0 != "=" })")
    }

    @Test func halfClosedStreamIsReadToItsEnd() async throws {
        let id = try await self.gateway.open(self.gateway.raw)
        _ = try await self.gateway.post("/v1/connections/\(id):send", #"{"data":"\#(Self.hello)"}"#)
        let half = try await self.gateway.post("/v1/connections/\(id):closeWrite")
        #expect(half.status == 200 && half.json["outputClosed"]?.boolean == true)
        let last = try await self.gateway.post(
            "/v1/connections/\(id):receive", #"{"minimumBytes":100,"maximumBytes":100}"#)
        #expect(last.json["data"]?.string == Self.hello && last.json["isAtEnd"]?.boolean == true)
    }

    @Test func secondCloseOfADirectionIsAConflict() async throws {
        let id = try await self.gateway.open("tcp://127.0.0.1:\(self.gateway.port("web"))")
        for verb in ["closeWrite", "closeRead"] {
            let first = try await self.gateway.post("/v1/connections/\(id):\(verb)")
            #expect(first.status == 200 || first.status == 410, "\(first.text)")
            let second = try await self.gateway.post("/v1/connections/\(id):\(verb)")
            #expect(["409 direction-closed", "410 closed"].contains(second.problem), "\(second.text)")
        }
    }

    @Test(arguments: ["closeRead", "closeWrite", "startSecureConnection"])
    func streamVerbsAreConflictsOnAWebSocket(_ verb: String) async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.post(
            "/v1/connections/\(id):\(verb)", verb == "startSecureConnection" ? "{}" : nil)
        #expect(reply.status == 409, "\(reply.text)")
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["state"]?.string == "open")
    }

    @Test func pingOfAWebSocketMeasuresItsRoundTrip() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let reply = try await self.gateway.post("/v1/connections/\(id):ping")
        switch reply.json["rttMs"] {
        case .number(let time)?: #expect(time > 0)
        case .integer(let time)?: #expect(time > 0)
        default: Issue.record("\(reply.text)")
        }
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["ping"]?["count"]?.integer == 1)
        let stream = try await self.gateway.open(self.gateway.raw)
        #expect(try await self.gateway.post("/v1/connections/\(stream):ping").status == 409)
    }

    @Test func suspendedConnectionQueuesMessagesUntilItIsResumed() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let path = "/v1/connections/\(id)"
        #expect(try await self.gateway.post(path + ":suspend").json["suspended"]?.boolean == true)
        let queued = try await self.gateway.post(path + ":send", #"{"text":"held","timeoutMs":50}"#)
        #expect(queued.json["state"]?.string == "queued" && queued.json["suspended"]?.boolean == true)
        #expect(try await self.gateway.post(path + ":receive?timeoutMs=10").status == 204)
        #expect(try await self.gateway.post(path + ":ping").problem == "409 suspended")
        #expect(try await self.gateway.post(path + ":resume").json["suspended"]?.boolean == false)
        #expect(try await self.gateway.post(path + ":receive").json["text"]?.string == "held")
    }

    @Test(arguments: ["echo", "raw"])
    func queueOfASuspendedConnectionHoldsFourMebibytes(_ kind: String) async throws {
        let id = try await self.gateway.open(kind == "echo" ? self.gateway.echo : self.gateway.raw)
        let path = "/v1/connections/\(id)"
        _ = try await self.gateway.post(path + ":suspend")
        let piece = String(repeating: "a", count: 512 << 10)
        let fields = ["Content-Type": "application/octet-stream"]
        for _ in 0..<8 {
            #expect(
                try await self.gateway.post(path + ":send", piece, fields: fields).json["state"]?.string == "queued")
        }
        let full = try await self.gateway.post(path + ":send", piece, fields: fields)
        #expect(full.problem == "429 peer-buffer-full")
        #expect(full.detail.contains("suspended") && full.detail.contains("\(4 << 20)"))
        #expect(try await self.gateway.get(path).json["queuedSendBytes"]?.integer == 4 << 20)
    }

    // MARK: Annotations

    @Test func patchChangesTheGivenAnnotationsOnly() async throws {
        let id = try await self.gateway.open(self.gateway.raw, more: #","description":"a","labels":{"x":"1"}"#)
        let changed = try await self.gateway.request(
            "PATCH", "/v1/connections/\(id)", #"{"priority":0.25,"labels":{"y":"2"}}"#)
        #expect(changed.json["description"]?.string == "a" && changed.json["priority"] == .number(0.25))
        #expect(changed.json["labels"] == JSONValue(text: #"{"y":"2"}"#))
        for label in ["y", "y:2", "y=2"] {
            #expect(Self.ids(try await self.gateway.get("/v1/connections?label=\(label)")) == [id])
        }
        #expect(Self.ids(try await self.gateway.get("/v1/connections?label=x")) == [])
        let invalid = try await self.gateway.request("PATCH", "/v1/connections/\(id)", #"{"priority":2}"#)
        #expect(invalid.problem == "422 invalid-value /priority")
    }

    // MARK: Lists

    @Test func filtersSelectConnections() async throws {
        let socket = try await self.gateway.open(self.gateway.echo)
        let stream = try await self.gateway.open(self.gateway.raw)
        let cases = [
            ("kind=webSocket&direction=opened", [socket]), ("kind=stream&direction=opened", [stream]),
            ("id=\(socket),\(stream)", [socket, stream]), ("state=closed", []), ("listener=nowhere", []),
            ("direction=opened&maxAgeMs=600000", [socket, stream]), ("minAgeMs=600000", []),
            ("direction=opened&stalled=false", [socket, stream]), ("stalled=true", []),
        ]
        for (query, expected) in cases {
            #expect(
                Self.ids(try await self.gateway.get("/v1/connections?\(query)")).sorted() == expected.sorted(),
                "\(query)")
        }
        let accepted = try await self.gateway.get("/v1/connections?direction=accepted").json["items"]?.items ?? []
        #expect(Set(accepted.map { $0["listener"]?.string }) == ["web", "raw"])
        #expect(accepted.allSatisfy { $0["relayed"]?.boolean == true })
    }

    @Test func pagesShowEveryConnectionOnce() async throws {
        var opened: Set<String> = []
        for _ in 0..<9 { opened.insert(try await self.gateway.open(self.gateway.raw)) }
        for sort in ["id", "-id", "age", "-age", "bytes"] {
            var seen: [String] = []
            var path: String? = "/v1/connections?direction=opened&limit=4&fields=id&sort=\(sort)"
            while let target = path {
                let page = try await self.gateway.get(target)
                seen += Self.ids(page)
                path = page.json["next"]?.string
                #expect(page.fields["link"] == path.map { "<\($0)>; rel=\"next\"" })
                #expect(page.json["items"]?.items.allSatisfy { $0.members.count == 1 } == true)
            }
            #expect(seen.count == 9 && Set(seen) == opened, "\(sort)")
        }
    }

    @Test(arguments: [
        "kind=x", "state=x", "direction=x", "limit=0", "limit=1001", "limit=-1", "limit=1e3", "sort=x", "sort=--id",
        "sort=-", "fields=x", "fields=id,x", "minAgeMs=x", "minAgeMs=-1", "minAgeMs=nan", "minAgeMs=inf",
        "maxAgeMs=1e400", "stalled=maybe", "cursor=x", "cursor=k", "cursor=k1.-1", "cursor=kffffffffffffffff.1",
        "cursor=k1.99999999999999999999", "cursor=a", "id=x",
        "cursor=" + String(repeating: "a", count: 5000),
    ])
    func invalidListParameterIsNamed(_ query: String) async throws {
        let reply = try await self.gateway.get("/v1/connections?\(query)")
        #expect([400, 410].contains(reply.status))
        #expect(reply.json["errors"]?.items.first?["parameter"]?.string == String(query.prefix { $0 != "=" }))
    }

    // MARK: Refused openings

    /// 65 labels.
    private static let manyLabels = (0..<65).map { #""l\#($0)":"x""# }.joined(separator: ",")

    @Test(arguments: [
        #""url":"""#, #""url":"http://127.0.0.1""#, #""url":"ws://""#, #""url":"ws://127.0.0.1:0""#,
        #""url":"ws://127.0.0.1:99999""#, #""url":"tcp://127.0.0.1""#, #""url":"ws://user:password@127.0.0.1""#,
        #""url":"ws://127.0.0.1/\r\nX: y""#, ##""url":"ws://127.0.0.1/#x""##, #""url":"unix://relative""#,
        #""url":1"#, #""url":null"#, #""url":["ws://127.0.0.1"]"#, #""url":"ws://127.0.0.1","headers":{"a b":"c"}"#,
        #""url":"ws://127.0.0.1","headers":{"X":"a\r\nHost: evil"}"#,
        #""url":"ws://127.0.0.1","headers":{"X":"a\u0000"}"#, #""url":"ws://127.0.0.1","headers":{"Upgrade":"x"}"#,
        #""url":"ws://127.0.0.1","subprotocols":["a b"]"#, #""url":"ws://127.0.0.1","subprotocols":["a","a"]"#,
        #""url":"ws://127.0.0.1","maximumMessageSizeBytes":0"#,
        #""url":"ws://127.0.0.1","maximumMessageSizeBytes":1152921504606846976"#,
        #""url":"ws://127.0.0.1","connectTimeoutMs":-1"#, #""url":"ws://127.0.0.1","connectTimeoutMs":1e300"#,
        #""url":"ws://127.0.0.1","priority":2"#, #""url":"ws://127.0.0.1","labels":{"":"x"}"#,
        #""url":"ws://127.0.0.1","labels":{"a:b":"x"}"#, #""url":"ws://127.0.0.1","labels":{\#(manyLabels)}"#,
        #""url":"wss://127.0.0.1","tls":{"insecur":true}"#, #""url":"wss://127.0.0.1","tls":{"authorities":"no PEM"}"#,
        #""url":"wss://127.0.0.1","tls":{"minimumVersion":"1.0"}"#, #""url":"ws://127.0.0.1","tls":{}"#,
        #""url":"wss://127.0.0.1","tls":[]"#, #""url":"tcp://127.0.0.1:1","headers":{}"#,
        #""url":"ws://127.0.0.1","keepAlive":{"probes":0}"#, #""url":"ws://127.0.0.1","keepAlive":{"probe":1}"#,
        #""description":"no url""#,
    ])
    func invalidOpeningIsRefusedAndNothingOpened(_ members: String) async throws {
        let reply = try await self.gateway.post("/v1/connections", "{\(members)}")
        #expect(reply.status == 422, "\(reply.text)")
        #expect(reply.json["errors"]?.items.isEmpty == false, "\(reply.text)")
        #expect(Self.ids(try await self.gateway.get("/v1/connections?state=any")) == [])
    }

    /// What shows only when the connection is attempted is the failure of that attempt.
    @Test(arguments: [
        ("ws", 300, "", ""), ("ws", 10_000, "127.0.0.1/", ""), ("unix", 200, "/", ""),
        ("ws", 0, "127.0.0.1", #","headers":{"Host":"evil"}"#),
        ("ws", 0, "127.0.0.1", #","headers":{"Sec-WebSocket-Key":"x"}"#),
        ("ws", 0, "127.0.0.1", #","labels":{"a":"\#(String(repeating: "x", count: 257))"}"#),
        ("ws", 0, "127.0.0.1", #","description":"\#(String(repeating: "x", count: 1025))""#),
        ("wss", 0, "127.0.0.1", #","tls":{"applicationProtocols":["\#(String(repeating: "x", count: 256))"]}"#),
        ("wss", 0, "127.0.0.1", #","tls":{"serverName":"\#(String(repeating: "a", count: 70_000))"}"#),
    ])
    func oversizedOrReservedMemberOpensNothing(
        _ scheme: String, _ count: Int, _ authority: String, _ members: String
    ) async throws {
        let url = "\(scheme)://\(authority)" + String(repeating: "a", count: count)
        let reply = try await self.gateway.post("/v1/connections", #"{"url":"\#(url)"\#(members)}"#)
        #expect([403, 422, 502].contains(reply.status), "\(reply.text.prefix(300))")
        #expect(reply.problem.hasPrefix("\(reply.status) ") && reply.body.count < 65536)
        #expect(Self.ids(try await self.gateway.get("/v1/connections")) == [])
    }
}
