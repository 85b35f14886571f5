import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Hostile requests to the REST interface", .gateway, .timeLimit(.minutes(10)))
struct HostileRequestTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    private struct Operation {
        let name: String
        let method: String
        let path: String
        let hasBody: Bool
    }

    /// The operations of the OpenAPI document.
    private func operations() async throws -> [Operation] {
        let document = try await self.gateway.get("/openapi.json").json
        return (document["paths"]?.members ?? []).flatMap { path in
            path.value.members.map { method in
                Operation(
                    name: method.value["operationId"]?.string ?? "", method: method.name.uppercased(),
                    path: path.name, hasBody: method.value["requestBody"] != nil)
            }
        }
    }

    private static func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
    }

    /// Bodies that are not JSON, or that no operation accepts.
    private static let bodies: [String: [UInt8]] = [
        "not JSON": Array("{".utf8), "number": Array("1".utf8), "list": Array("[]".utf8), "null": Array("null".utf8),
        "string": Array(#""x""#.utf8), "true": Array("true".utf8),
        "deep objects": Array(
            (String(repeating: #"{"a":"#, count: 50_000) + "1" + String(repeating: "}", count: 50_000)).utf8),
        "name of 1 MB": Array((#"{""# + String(repeating: "a", count: 1_000_000) + #"": 1}"#).utf8),
        "many members": Array(("{" + (0..<20_000).map { #""m\#($0)":\#($0)"# }.joined(separator: ",") + "}").utf8),
        "invalid UTF-8": Array(#"{"url": ""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8),
        "UTF-16": [0xFF, 0xFE, 0x7B, 0x00, 0x7D, 0x00], "zeros": Array(repeating: 0, count: 1000),
        "deep lists": Array(Self.nested(100_000).utf8),
        "deep and unfinished": Array(repeating: UInt8(ascii: "["), count: 500_000),
        "unknown member": Array(#"{"unknown": 1}"#.utf8), "two values": Array("{} {}".utf8),
        "half a surrogate": Array(#"{"url": "\ud800"}"#.utf8), "trailing comma": Array(#"{"url": "x",}"#.utf8),
        "number beyond all": Array(#"{"timeoutMs": 1e999}"#.utf8),
        "not a number": Array(#"{"timeoutMs": NaN}"#.utf8), "form": Array("url=ws%3A%2F%2F127.0.0.1".utf8),
    ]

    private static func expectProblem(_ reply: HTTPReply, _ statuses: Set<Int>, _ note: String) {
        #expect(statuses.contains(reply.status), "\(note): \(reply.status) \(reply.text.prefix(300))")
        #expect(reply.problem.hasPrefix("\(reply.status) ") && reply.json["code"] != nil, "\(note)")
        #expect(reply.body.count < 65536, "\(note): \(reply.body.count) bytes")
    }

    private func expectEcho(_ id: String) async throws {
        #expect(try await self.gateway.post("/v1/connections/\(id):send", #"{"text":"hello"}"#).status == 200)
        #expect(try await self.gateway.post("/v1/connections/\(id):receive").json["text"]?.string == "hello")
    }

    @Test func invalidBodyIsAProblemAtEveryOperation() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let before = try await self.gateway.get("/v1/connections/\(id)").json
        let operations = try await self.operations().filter(\.hasBody)
        for (index, operation) in operations.enumerated() {
            let target = operation.path.replacing("{id}", with: id)
            let statuses: Set =
                target.contains("/connections") ? [400, 409, 413, 415, 422] : [400, 404, 409, 413, 415, 422]
            // The same reader takes every body: the long ones go to some operations.
            for (note, body) in Self.bodies where body.count < 10_000 || index % 5 == 0 {
                let reply = try await HTTPExchange.run(
                    self.gateway.control, operation.method, target, fields: ["Content-Type": "application/json"],
                    body: body)
                Self.expectProblem(reply, statuses, "\(operation.name) with \(note)")
            }
            for type in [
                "text/html", "application/xml", "application/x-www-form-urlencoded",
                String(repeating: "x", count: 1000),
            ] {
                let reply = try await self.gateway.request(
                    operation.method, target, "{}", fields: ["Content-Type": type])
                let expected = statuses.subtracting([400, 413, 422])
                Self.expectProblem(reply, expected, "\(operation.name) as \(type.prefix(40))")
            }
        }
        let after = try await self.gateway.get("/v1/connections/\(id)").json
        for member in [
            "state", "sentMessages", "receivedMessages", "description", "priority", "labels", "suspended",
        ] {
            #expect(before[member] == after[member], "\(member)")
        }
        try await self.expectEcho(id)
        let all = try await self.gateway.get("/v1/connections").json["items"]?.items
        #expect(all?.count == 2, "the connection and its accepted end")
    }

    @Test func bodyThatIsANumberOutOfRangeIsNamed() async throws {
        let reply = try await self.gateway.post("/v1/connections", "1e999")
        #expect(reply.problem == "422 invalid-value " && reply.detail == "The body is a number out of range.")
    }

    @Test func unknownNameIsNotFoundAtEveryOperation() async throws {
        // Any name may be that of a user: there is nothing to find.
        for operation in try await self.operations()
        where operation.path.contains("{id}") && !operation.path.hasPrefix("/v1/users/") {
            for name in [
                "", "0", "-1", "x", "17u17", String(repeating: "9", count: 40), "%00", "%FF", "%2F", "..",
                "%2e%2e%2f",
                "..%5c", "..;", "%0d%0aX:%20y", "%252e%252e", "%F0%9D%9F%99", "%7Bid%7D", "1;x", "1%20", "null",
                "1:send", String(repeating: "a", count: 4000),
            ] {
                let target = operation.path.replacing("{id}", with: name)
                let reply = try await HTTPExchange.run(
                    self.gateway.control, operation.method, target, fields: ["Content-Type": "application/json"],
                    body: operation.method == "GET" ? [] : Array("{}".utf8))
                Self.expectProblem(reply, [400, 404, 405], "\(operation.method) \(target.prefix(80))")
            }
        }
    }

    @Test func malformedQueryIsAProblemAtEveryOperation() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let many = (0..<100).map { "a\($0)=1" }.joined(separator: "&")
        for operation in try await self.operations() {
            for query in [
                "unknown=1", "%zz=1", "%", "a=%FF", many, "limit=1&limit=2", "=", "fields=%00",
                String(repeating: "x", count: 8000),
            ] {
                let target = operation.path.replacing("{id}", with: id) + "?" + query
                let reply = try await self.gateway.request(
                    operation.method, target, operation.method == "GET" ? nil : "{}")
                Self.expectProblem(reply, [400], "\(operation.method) \(target.prefix(80))")
            }
        }
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["state"]?.string == "open")
    }

    @Test(arguments: ["1.5", "-1", "1e400", "-1e400", "99999999999999999999"])
    func numberOutOfItsRangeIsPointedAt(_ number: String) async throws {
        let cases = [
            (
                "/v1/connections", #"{"url":"ws://127.0.0.1/","maximumMessageSizeBytes":#}"#,
                "/maximumMessageSizeBytes"
            ),
            ("/v1/connections", #"{"url":"ws://127.0.0.1/","keepAlive":{"probes":#}}"#, "/keepAlive/probes"),
            ("/v1/drains", #"{"all":true,"code":#}"#, "/code"),
            ("/v1/listeners", #"{"name":"x","listen":"ws://127.0.0.1:0","backlog":#}"#, "/backlog"),
        ]
        for (path, body, pointer) in cases {
            let reply = try await self.gateway.post(path, body.replacing("#", with: number))
            #expect(reply.status == 422)
            #expect(reply.json["errors"]?.items.first?["pointer"]?.string == pointer, "\(reply.text)")
        }
    }

    // MARK: Bodies at and over their limits

    @Test(arguments: ["/v1/connections", "/v1/drains", "/v1/routes"])
    func bodyLongerThanOneMebibyteIsRefused(_ path: String) async throws {
        let limit = 1 << 20
        let atLimit = try await self.gateway.post(path, "{}" + String(repeating: " ", count: limit - 2))
        #expect(atLimit.status == 422, "\(atLimit.text)")
        let over = try await self.gateway.post(path, "{}" + String(repeating: " ", count: limit - 1))
        #expect(over.problem == "413 body-too-large")
        #expect(over.detail == "The body is longer than \(limit) bytes; send less at a time.")
        #expect(over.fields["connection"] == "close")
    }

    @Test(arguments: ["/v1/connections/ID:suspend", "/v1/connections"])
    func announcedLengthOverTheLimitIsRefusedBeforeTheBodyArrives(_ path: String) async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let head =
            "POST \(path.replacing("ID", with: id)) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n"
        let reply = try await HTTPExchange.run(self.gateway.control, Array(head.utf8))
        #expect(reply.problem == "413 body-too-large")
        #expect(reply.fields["connection"] == "close")
        #expect(try await self.gateway.get("/v1/connections/\(id)").json["suspended"]?.boolean == false)
    }

    @Test func clientThatSendsARefusedBodyToItsEndGetsTheResponse() async throws {
        let length = 16 << 20
        let exchange = HTTPExchange(self.gateway.control)
        defer { exchange.close() }
        try await exchange.send(
            Array("POST /v1/drains HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(length)\r\n\r\n".utf8))
        // More than the buffers of both sockets hold: the server has to read it.
        try await exchange.send(Array(repeating: UInt8(ascii: " "), count: length))
        #expect(try HTTPReply(try await exchange.receiveToEnd()).problem == "413 body-too-large")
    }

    @Test func compressedBodyIsRefused() async throws {
        for path in ["/v1/connections", "/v1/drains", "/v1/transfers", "/v1/routes"] {
            let reply = try await self.gateway.post(path, "{}", fields: ["Content-Encoding": "gzip"])
            #expect(reply.problem == "415 unsupported-coding", "\(path)")
        }
        #expect(try await self.gateway.get("/v1/connections").json["items"]?.items == [])
    }

    // MARK: Heads

    @Test func malformedHeadIsAProblemAndEndsItsConnection() async throws {
        let id = try await self.gateway.open(self.gateway.echo)
        let post = "POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        let fields = (0..<1000).map { "X\($0): 1\r\n" }.joined()
        let hello: [UInt8] =
            [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03] + Array(repeating: 0, count: 64)
            + Array("\r\n\r\n".utf8)
        let long = String(repeating: "a", count: 100_000)
        let heads = [
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \(long)\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\(fields)\r\n",
            "GET /\(long) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "\u{0}\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", post + "Content-Length: -1\r\n\r\n",
            post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
            post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ]
        for head in heads.map({ Array($0.utf8) }) + [hello] {
            let reply = try await HTTPExchange.run(self.gateway.control, head)
            let note = String(decoding: head.prefix(60), as: UTF8.self)
            Self.expectProblem(reply, [400, 422], note)
            #expect(reply.text.hasSuffix("}\n"), "\(note)")
            #expect(reply.fields["date"] != nil, "\(note)")
        }
        try await self.expectEcho(id)
    }

    @Test(arguments: [("1.0", "chunked"), ("1.1", "gzip, chunked"), ("1.1", "gzip")])
    func unknownTransferCodingIsNotImplemented(_ version: String, _ coding: String) async throws {
        let head =
            "POST /v1/drains HTTP/\(version)\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Transfer-Encoding: \(coding)\r\n\r\n"
        let body = "c\r\n{\"all\":true}\r\n0\r\n\r\n"
        let reply = try await HTTPExchange.run(self.gateway.control, Array((head + body).utf8))
        #expect(reply.problem == "501 unsupported-transfer-coding")
        #expect(reply.fields["date"] != nil)
        #expect(reply.fields["connection"] == "close")
        #expect(!self.gateway.log.contains { $0.contains("operation=startDrain") })
    }

    @Test func authorityOfAnAbsoluteTargetIsUsed() async throws {
        let own = self.gateway.control
        for (target, fields, expected) in [
            ("http://evil.example/livez", "Host: 127.0.0.1\r\n", "421 unknown-host"),
            (own + "/livez", "Host: evil.example\r\n", "200"),
            (own + "/livez", "Host: evil.example\r\nOrigin: \(own)\r\n", "200"),
            ("http://localhost/livez", "Host: 127.0.0.1\r\nOrigin: \(own)\r\n", "403 cross-origin"),
            (own + "/livez", "", "400 bad-host"), (own + "/livez", "Host: a\r\nHost: b\r\n", "400 bad-host"),
            ("http://user@127.0.0.1/livez", "Host: 127.0.0.1\r\n", "400 bad-host"),
            ("ftp://127.0.0.1/livez", "Host: 127.0.0.1\r\n", "421 unknown-scheme"),
            ("/livez", "", "400 bad-host"), ("/livez", "Host: \r\n", "400 bad-host"),
        ] {
            let reply = try await HTTPExchange.run(
                own, Array("GET \(target) HTTP/1.1\r\n\(fields)Connection: close\r\n\r\n".utf8))
            #expect(reply.problem.hasPrefix(expected), "\(target) \(fields): \(reply.text)")
        }
    }

    @Test(arguments: ["h2c", "websocket", "other"])
    func refusedUpgradeIsAnsweredOnceAndEndsTheConnection(_ offer: String) async throws {
        for line in ["GET /livez", "GET /v1/connections", "GET /v1/nothing", "POST /v1/connections"] {
            let request =
                "\(line) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                + "Connection: Upgrade\r\nUpgrade: \(offer)\r\nContent-Length: 12\r\n\r\n{\"url\": \"x\"}"
            let reply = try await HTTPExchange.run(self.gateway.control, Array(request.utf8))
            #expect(reply.fields["connection"] == "close", "\(line)")
            #expect(reply.json != .null && !reply.text.contains("HTTP/1.1"), "\(line)")
        }
    }
}
