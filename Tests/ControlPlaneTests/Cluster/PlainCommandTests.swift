import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Commands of plain HTTP that reach another node", .timeLimit(.minutes(5)))
struct PlainCommandTests {
    private static let configuration = """
        listeners:
          - {name: web, listen: 'ws://127.0.0.1:0'}
        routes:
          - {name: events, path: /events, target: room-events}
        control:
          address: http://127.0.0.1:0

        """

    private func url(_ node: LoopbackGateway) -> String { "http://127.0.0.1:\(node.port("web"))" }

    /// A client whose replies come from one node.
    private struct Client {
        let stream: HTTPExchange
        let session: String
        let node: String
    }

    private func connect(_ gateway: LoopbackGateway) async throws -> Client {
        let stream = HTTPExchange(self.url(gateway))
        let body = #"{"id":1,"connect":{}}"#
        let fields = "Host: x\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)"
        let head = "POST /events HTTP/1.1\r\n\(fields)\r\n\r\n"
        try await stream.send(Array((head + body).utf8))
        let text = try await stream.receive(through: "}}\n")
        let line = try #require(text.split(separator: "\r\n").last { $0.hasPrefix("{") })
        let connect = try #require(JSONValue(text: String(line))["connect"])
        return Client(
            stream: stream, session: try #require(connect["session"]?.string),
            node: try #require(connect["node"]?.string))
    }

    private func post(
        _ commands: String, session: String, node: String, to gateway: LoopbackGateway
    ) async throws -> HTTPReply {
        let commands = commands.replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        let body = #"{"session":"\#(session)","node":"\#(node)","data":"\#(commands)"}"#
        return try await HTTPExchange.run(
            self.url(gateway), "POST", "/events", fields: ["Content-Type": "application/json"], body: Array(body.utf8))
    }

    @Test func commandsReachTheNodeThatHasTheResponse() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let client = try await self.connect(a)
            defer { client.stream.close() }
            #expect(client.node == "a")
            for number in 2...9 {
                let command = #"{"id":\#(number),"subscribe":{"channel":"room\#(number)"}}"#
                let reply = try await self.post(command, session: client.session, node: "a", to: b)
                #expect(reply.status == 204, "\(reply.text)")
                _ = try await client.stream.receive(through: #"{"id":\#(number),"subscribe""#)
            }
            for node in [a, b] { #expect(!node.log.joined().contains(client.session)) }
        }
    }

    @Test func commandsThatCannotBeBroughtAreRefused() async throws {
        try await LoopbackCluster.run(
            ["a", "b"], Self.configuration, limits: { $0.commandTimeout = .seconds(60) }
        ) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let client = try await self.connect(a)
            defer { client.stream.close() }
            for (session, node) in [("0", "a"), (client.session, "x"), (client.session, "b"), (client.session, "")] {
                let reply = try await self.post("{}", session: session, node: node, to: b)
                #expect(reply.status == 404 && reply.json["error"]?["code"]?.integer == 107, "\(reply.text)")
            }
            // The node that has the session needs no name.
            #expect(try await self.post("{}", session: client.session, node: "x", to: a).status == 204)
            cluster.network.setSilent("a", true)
            #expect(try await self.post("{}", session: client.session, node: "a", to: b).status == 503)
            cluster.network.setSilent("a", false)
            cluster.network.isAway = true
            let reply = try await self.post("{}", session: client.session, node: "a", to: b)
            #expect(reply.status == 503 && reply.json["error"]?["code"]?.integer == 100, "\(reply.text)")
            cluster.network.isAway = false
            #expect(try await self.post("{}", session: client.session, node: "a", to: b).status == 204)
            for node in [a, b] { #expect(!node.log.joined().contains(client.session)) }
        }
    }

    @Test func callsOfOtherNodesAreCheckedAndAnsweredInOrder() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let bus = try #require(cluster.node("b").gateway.cluster)
            let client = try await self.connect(cluster.node("a"))
            defer { client.stream.close() }
            let all = ["0", client.session, "1"].map { ForwardedCommands(session: $0, data: Array("{}".utf8)) }
            let answer = try await bus.call("a", .commands, ForwardedCommands.encoded(all), timeout: .seconds(240))
            #expect(answer.map(CommandsOutcome.init(rawValue:)) == [.unknownSession, .accepted, .unknownSession])
            #expect(try await bus.call("a", .commands, [9], timeout: .seconds(240)) == [])
        }
    }

    @Test func callThatWasWithdrawnIsNotPerformed() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let bus = try #require(b.gateway.cluster)
            let client = try await self.connect(a)
            defer { client.stream.close() }
            let data = Array(#"{"id":2,"subscribe":{"channel":"x"}}"#.utf8)
            let commands = ForwardedCommands.encoded([.init(session: client.session, data: data)])
            await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                _ = try? await bus.call("a", .commands, commands, timeout: .seconds(240))
            }.value
            let command = #"{"id":3,"subscribe":{"channel":"y"}}"#
            #expect(try await self.post(command, session: client.session, node: "a", to: b).status == 204)
            let text = try await client.stream.receive(through: #"{"id":3,"subscribe""#)
            #expect(!text.contains(#""id":2"#))
        }
    }
}
