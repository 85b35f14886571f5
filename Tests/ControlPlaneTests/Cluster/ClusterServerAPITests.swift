import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Centrifugo's server API in a cluster", .timeLimit(.minutes(5)))
struct ClusterServerAPITests {
    private static let configuration = RoomProbe.configuration.replacing(
        "%KEYS%",
        with: """
              api-keys:
                - {name: backend, hash: 'sha256:2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683'}
            """)

    private func result(_ gateway: LoopbackGateway, _ method: String, _ json: String) async throws -> JSONValue {
        let fields = ["X-API-Key": "key", "Content-Type": "application/json"]
        let reply = try await HTTPExchange.run(
            gateway.control, "POST", "/api/\(method)", fields: fields, body: Array(json.utf8))
        #expect(reply.status == 200, "\(reply.text)")
        return reply.json["result"] ?? reply.json
    }

    @Test func clientsOfAllNodesAreConcerned() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            let ada = try await RoomProbe(b, user: "ada")
            #expect(
                try await self.result(
                    a, "subscribe", #"{"user":"ada","channel":"kept:a","info":{"x":1.0},"data":{"y":2.0}}"#) == [:])
            let push = try await ada.receiveText()
            #expect(push.contains("subscribe") && push.contains("kept:a"), "\(push)")
            #expect(push.contains(#""data":{"y":2.0}"#), "\(push)")
            let members = try await b.get("/v1/rooms/kept%3Aa/members").text
            #expect(members.contains(#""roomInfo":{"x":1.0}"#))
            #expect(try await self.result(a, "unsubscribe", #"{"user":"ada","channel":"kept:a"}"#) == [:])
            #expect(try await ada.receive()["push"]?["unsubscribe"] != nil)
            let keep = #"{"user":"ada","whitelist":["\#(ada.client)"]}"#
            #expect(try await self.result(a, "disconnect", keep) == [:])
            let batch = #"{"commands":[{"disconnect":{"user":"ada","disconnect":{"code":4001,"reason":"out"}}}]}"#
            #expect(try await self.result(a, "batch", batch)["replies"]?.items == [["disconnect": [:]]])
            #expect(try await ada.end() == "4001 out")
        }
    }

    @Test func channelsAndNodesAreThoseOfAllNodes() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let (a, b) = (try cluster.node("a"), try cluster.node("b"))
            _ = try await RoomProbe(a, in: "kept:a", "plain")
            _ = try await RoomProbe(b, in: "kept:a")
            let channels = try await self.result(a, "channels", "{}")["channels"]
            #expect(channels == ["kept:a": ["num_clients": 2], "plain": ["num_clients": 1]])
            let some = try await self.result(b, "channels", #"{"pattern":"pl*"}"#)["channels"]
            #expect(some == ["plain": ["num_clients": 1]])
            let nodes = try await self.result(b, "info", "{}")["nodes"]?.items ?? []
            #expect(nodes.compactMap { $0["name"]?.string }.sorted() == ["a", "b"])
            cluster.network.setSilent("b", true)
            #expect(try await self.result(a, "info", "{}")["nodes"]?.items.count == 1)
            let error = try await self.result(a, "disconnect", #"{"user":"ada"}"#)["error"]
            #expect(error?["code"]?.integer == 100 && error?["message"]?.string?.contains("node b") == true)
        }
    }

    @Test func requestThatOtherNodesCannotGetIsRefusedBeforeItIsPerformed() async throws {
        try await LoopbackCluster.run(["a", "b"], Self.configuration) { cluster in
            let a = try cluster.node("a")
            _ = try await RoomProbe(a, user: "ada")
            let data = String(repeating: "x", count: 1_020_000)
            let request = #"{"user":"ada","channel":"kept:a","data":"\#(data)"}"#
            let error = try await self.result(a, "subscribe", request)["error"]
            #expect(error?["code"]?.integer == 106)
            #expect(error?["message"]?.string?.contains("1015808 bytes") == true)
            #expect(try await !a.get("/v1/rooms/kept%3Aa/members").text.contains("ada"))
        }
    }
}
