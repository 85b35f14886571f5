import ControlAPI
import GatewayTestSupport
import Testing

@Suite("The user of a connection in the REST interface and in the log", .timeLimit(.minutes(5)))
struct ConnectionUserTests {
    /// HS256 with the secret below, made by Python's `hmac`: `{"sub":"ada"}`.
    private static let ada = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.XZ9KL7ZohTLsRrkBsqXfZb33bIYCzMePxOf3oNBuE5Y"
    /// `{"sub":"eve, \"x\"\nlevel=error"}`.
    private static let eve = """
        eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJldmUsIFwieFwiXG5sZXZlbD1lcnJvciJ9.wscVXbjLxiZas7VvP69nztOLxrwvNeHjW9T0E14k-Mg
        """

    private static let configuration = """
        listeners:
          - {name: web, listen: 'ws://127.0.0.1:0'}
          - {name: raw, listen: 'tcp://127.0.0.1:0', route: raw}
        tokens:
          - {name: main, secret: 0123456789abcdef0123456789abcdef}
        routes:
          - {name: echo, path: /echo, target: echo, auth: main}
          - {name: open, path: /open, target: echo}
          - {name: lobby, path: '/lobby/{room}', target: chat}
          - {name: rooms, path: /rooms, target: rooms}
          - {name: events, path: /events, target: room-events}
          - {name: page, path: /page, target: page}
          - {name: raw, target: echo}
        rooms: {tokens: main, user-header: X-User, connect-timeout: 1h, ping-interval: 1h}
        control:
          address: http://127.0.0.1:0
          targets: [127.0.0.1]

        """

    /// The names of the users of these connections; `nil` for a connection without one.
    private func users(_ gateway: LoopbackGateway, _ query: String) async throws -> [String?] {
        let items = try await gateway.get("/v1/connections?direction=accepted&\(query)").json["items"]
        return (items?.items ?? []).map { $0["user"]?.string }
    }

    private func open(_ gateway: LoopbackGateway, _ path: String, _ field: String? = nil) async throws -> String {
        let parts = field?.split(separator: ":", maxSplits: 1).map(String.init) ?? []
        let more = parts.isEmpty ? "" : #","headers":{"\#(parts[0])":"\#(parts[1])"}"#
        return try await gateway.open("ws://127.0.0.1:\(gateway.port("web"))\(path)", more: more)
    }

    @Test func tokenOfTheRouteNamesTheUser() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            let id = try await self.open(gateway, "/echo", "Authorization:Bearer \(Self.ada)")
            _ = try await self.open(gateway, "/open", "Authorization:Bearer \(Self.ada)")
            // Nothing verifies the field of a request that enters no room.
            _ = try await self.open(gateway, "/open", "X-User:ada")
            #expect(try await self.users(gateway, "route=echo") == ["ada"])
            #expect(try await self.users(gateway, "route=open") == [nil, nil])
            #expect(try await self.users(gateway, "user=ada&fields=id,user") == ["ada"])
            #expect(try await self.users(gateway, "user=Ada") == [])
            _ = try await gateway.request("DELETE", "/v1/connections/\(id)")
            try await gateway.wait { try await self.users(gateway, "user=ada&state=closed") == ["ada"] }
            let events = try await gateway.get("/v1/events?after=0&route=echo&type=opened,closed&limit=2").text
            #expect(events.ranges(of: #""user":"ada""#).count == 2)
            let lines = gateway.log.filter { $0.contains("route=echo") }
            #expect(lines.count == 2 && lines.allSatisfy { $0.contains(" user=ada ") }, "\(lines)")
            #expect(!gateway.log.contains { $0.contains("route=open") && $0.contains("user=") })
        }
    }

    @Test func nameOfAUserIsEscapedInTheLog() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            _ = try await self.open(gateway, "/echo", "Authorization:Bearer \(Self.eve)")
            #expect(try await self.users(gateway, "user=eve%2C%20%22x%22%0Alevel%3Derror&user=bob").count == 1)
            #expect(try await self.users(gateway, "user=eve") == [])
            #expect(gateway.log.contains { $0.contains(#" user="eve, \"x\"\nlevel=error" "#) })
        }
    }

    @Test func roomsNameTheUser() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            _ = try await self.open(gateway, "/lobby/a", "X-User:bob")
            _ = try await self.open(gateway, "/rooms", "X-User:cleo")
            let own = try await self.open(gateway, "/rooms")
            _ = try await self.open(gateway, "/lobby/a")
            #expect(try await self.users(gateway, "route=lobby") == ["bob", nil])
            #expect(try await self.users(gateway, "route=rooms") == ["cleo", nil])
            let connect = #"{\"id\":1,\"connect\":{\"token\":\"\#(Self.ada)\"}}"#
            _ = try await gateway.post("/v1/connections/\(own):send", #"{"text":"\#(connect)"}"#)
            try await gateway.wait { try await self.users(gateway, "user=ada") == ["ada"] }
            #expect(try await self.users(gateway, "route=rooms") == ["cleo", "ada"])
        }
    }

    @Test func connectionOfPlainHTTPHasTheUserOfItsLatestRequest() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            let exchange = HTTPExchange("http://127.0.0.1:\(gateway.port("web"))")
            defer { exchange.close() }
            let publish = #"{"publish":{"channel":"a","data":1}}"#
            for (line, name, body, end, user) in [
                ("POST /events", "bob", publish, "}\n", "bob"), ("GET /page", "eve", "", "</html>", nil),
                ("GET /events", "ada", "", #"{"connect""#, "ada"),
            ] {
                let fields = ["Host: localhost", "X-User: \(name)", "Content-Length: \(body.utf8.count)", "", ""]
                let head = "\(line) HTTP/1.1\r\n" + fields.joined(separator: "\r\n")
                try await exchange.send(Array((head + body).utf8))
                _ = try await exchange.receive(through: end)
                #expect(try await self.users(gateway, "kind=http") == [user])
            }
        }
    }

    @Test func refusedRequestHasNotTheUserOfTheOneBefore() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            let exchange = HTTPExchange("http://127.0.0.1:\(gateway.port("web"))")
            defer { exchange.close() }
            let publish = #"{"publish":{"channel":"a","data":1}}"#
            let fields = "Host: localhost\r\nX-User: bob\r\nContent-Length: \(publish.utf8.count)\r\n\r\n"
            try await exchange.send(Array(("POST /events HTTP/1.1\r\n" + fields + publish).utf8))
            _ = try await exchange.receive(through: "}\n")
            #expect(try await self.users(gateway, "kind=http") == ["bob"])
            try await exchange.send(Array("GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            try await gateway.wait { try await self.users(gateway, "kind=http&state=closed") == [nil] }
        }
    }

    @Test func userIsThatOfTheClientsSideAndOfBoundedLength() async throws {
        try await LoopbackGateway.run(Self.configuration) { gateway in
            let name = String(repeating: "n", count: 4096)
            _ = try await self.open(gateway, "/lobby/a", "X-User:\(name)")
            _ = try await self.open(gateway, "/lobby/a", "X-User:\(name)n")
            #expect(try await self.users(gateway, "route=lobby") == [name, nil])
            let opened = try await gateway.get("/v1/connections?direction=opened").json["items"]?.items ?? []
            #expect(opened.count == 2 && opened.allSatisfy { $0["user"] == nil })
        }
    }

    @Test func everyNodeOfAClusterSelectsUsers() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            for (node, user) in [("a", "ada"), ("a", "bob"), ("b", "ada")] {
                _ = try await self.open(cluster.node(node), "/lobby/x", "X-User:\(user)")
            }
            for node in ["a", "b"] {
                let found = try await cluster.node(node).get("/v1/connections?user=ada&fields=node").json["items"]
                #expect(found?.items.map { $0["node"]?.string } == ["a", "b"])
            }
        }
    }
}
