import ControlAPI
import GatewayTestSupport
import Testing

@Suite("Centrifugo's server API", .timeLimit(.minutes(5)))
struct ServerAPITests {
    private static let keys = """
          api-keys:
            - {name: other, hash: 'sha256:65c74c15a686187bb6bbf9958f494fc6b80068034a659a9ad44991b08c58f2d2'}
            - {name: backend, hash: 'sha256:2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683'}
        """

    private func run(_ body: (LoopbackGateway) async throws -> Void) async throws {
        try await RoomProbe.run(keys: Self.keys, body)
    }

    private func call(
        _ gateway: LoopbackGateway, _ method: String, _ json: String, fields: [String: String] = ["X-API-Key": "key"]
    ) async throws -> HTTPReply {
        var fields = fields
        fields["Content-Type"] = fields["Content-Type"] ?? "application/json"
        return try await HTTPExchange.run(
            gateway.control, "POST", "/api/\(method)", fields: fields, body: Array(json.utf8))
    }

    private func result(_ gateway: LoopbackGateway, _ method: String, _ json: String) async throws -> JSONValue {
        let reply = try await self.call(gateway, method, json)
        #expect(reply.status == 200 && reply.fields["content-type"] == "application/json", "\(reply.text)")
        return reply.json["result"] ?? reply.json
    }

    private func error(_ gateway: LoopbackGateway, _ method: String, _ json: String) async throws -> Int? {
        let reply = try await self.call(gateway, method, json)
        #expect(reply.status == 200 && reply.json["error"]?["message"]?.string?.isEmpty == false, "\(reply.text)")
        return reply.json["error"]?["code"]?.integer
    }

    // MARK: Access

    @Test func apiDoesNotExistWithoutAKey() async throws {
        try await RoomProbe.run { gateway in
            for (method, path) in [("POST", "/api/publish"), ("GET", "/api/publish"), ("POST", "/api/x")] {
                let reply = try await HTTPExchange.run(
                    gateway.control, method, path, fields: ["X-API-Key": "key"], body: Array("{}".utf8))
                #expect(reply.problem == "404 unknown-path")
            }
        }
    }

    @Test func keyIsRequired() async throws {
        try await self.run { gateway in
            for fields in [
                [:], ["X-API-Key": ""], ["X-API-Key": "Key"], ["X-API-Key": String(repeating: "k", count: 5000)],
                ["Authorization": "Bearer key"], ["Authorization": "apikey"], ["Authorization": "apikey other"],
            ] {
                let reply = try await self.call(gateway, "info", "{}", fields: fields)
                #expect(reply.problem == "401 unauthorized")
                #expect(reply.fields["www-authenticate"] == "apikey realm=\"sluice\"")
            }
            for fields in [["X-API-Key": "key"], ["X-API-Key": "o"], ["Authorization": "apikey key"]] {
                #expect(try await self.call(gateway, "info", "{}", fields: fields).status == 200)
            }
            let audited = gateway.log.filter { $0.contains("/api/") }
            #expect(audited.count == 7 && audited.allSatisfy { $0.contains("401") }, "\(audited)")
        }
    }

    @Test func documentDescribesTheOwnInterfaceOnly() async throws {
        try await self.run { gateway in
            let paths = try await gateway.get("/openapi.json").json["paths"]?.members.map(\.name) ?? []
            #expect(paths.contains("/v1/rooms") && !paths.contains { $0.hasPrefix("/api") })
        }
    }

    // MARK: Requests

    @Test(arguments: [
        "{", "[]", #"{"channel":1}"#, #"{"channel":"a"} x"#, #"{"tags":{"a":1}}"#, "\u{0}", #"{"b64data":1}"#,
    ])
    func invalidJSONIsABadRequest(_ body: String) async throws {
        try await self.run { gateway in
            let reply = try await self.call(gateway, "publish", body)
            #expect(reply.problem == "400 malformed-json")
        }
    }

    @Test func otherMethodsAndPathsAreUnknown() async throws {
        try await self.run { gateway in
            #expect(try await self.call(gateway, "nonsense", "{}").problem == "404 unknown-path")
            #expect(try await self.error(gateway, "rpc", #"{"method":"x"}"#) == 104)
            let get = try await HTTPExchange.run(gateway.control, "GET", "/api/info", fields: ["X-API-Key": "key"])
            #expect(get.problem == "405 method-not-allowed" && get.fields["allow"] == "POST")
        }
    }

    @Test func anyMediaTypeIsAccepted() async throws {
        try await self.run { gateway in
            let fields = ["X-API-Key": "key", "Content-Type": "application/x-www-form-urlencoded"]
            let reply = try await self.call(gateway, "publish", #"{"channel":"plain","data":{}}"#, fields: fields)
            #expect(reply.json == ["result": [:]])
        }
    }

    // MARK: Methods

    @Test func publicationsAreDeliveredAndKept() async throws {
        try await self.run { gateway in
            let probe = try await RoomProbe(gateway, in: "kept:a")
            let body = #"{"channel":"kept:a","data":{"z":1.50,"a":null},"tags":{"t":"1"},"idempotency_key":"k"}"#
            let first = try await self.result(gateway, "publish", body)
            #expect(first["offset"]?.integer == 1 && first["epoch"]?.string?.isEmpty == false)
            #expect(try await self.result(gateway, "publish", body) == first)
            #expect(try await probe.receiveText().contains(#""data":{"z":1.50,"a":null}"#))
            let history = try await self.call(gateway, "history", #"{"channel":"kept:a","limit":10}"#)
            #expect(history.text.contains(#""data":{"z":1.50,"a":null},"offset":1,"tags":{"t":"1"}"#))
            #expect(history.json["result"]?["publications"]?.items.count == 1)
            let position = try await self.result(gateway, "history", #"{"channel":"kept:a"}"#)
            #expect(position["publications"]?.items == [] && position["offset"]?.integer == 1)
            #expect(try await self.result(gateway, "history_remove", #"{"channel":"kept:a"}"#) == [:])
            let removed = try await self.result(gateway, "history", #"{"channel":"kept:a","limit":-1}"#)
            #expect(removed["publications"]?.items == [] && removed["epoch"] == first["epoch"])
        }
    }

    @Test func idempotencyKeysHaveALimit() async throws {
        let bodies = [255, 256].map { length in
            #"{"channel":"kept:a","data":1,"idempotency_key":"\#(String(repeating: "k", count: length))"}"#
        }
        try await self.run { gateway in
            let published = try await self.result(gateway, "publish", bodies[0])
            let error = try await self.error(gateway, "publish", bodies[1])
            #expect(published["offset"]?.integer == 1 && error == 106)
        }
    }

    @Test(arguments: [
        ("publish", #"{"channel":"kept:a"}"#, 107), ("publish", #"{"data":1}"#, 107),
        ("publish", #"{"channel":"other","data":1}"#, 102), ("publish", #"{"channel":"kept:a","data":"%LARGE%"}"#, 106),
        ("broadcast", #"{"data":1}"#, 107), ("broadcast", #"{"channels":[%MANY%],"data":1}"#, 106),
        ("subscribe", #"{"channel":"kept:a"}"#, 107), ("subscribe", #"{"user":"u","channel":"other"}"#, 102),
        ("unsubscribe", #"{"channel":"kept:a"}"#, 107), ("disconnect", "{}", 107),
        ("disconnect", #"{"user":"u","disconnect":{"code":1000,"reason":""}}"#, 107), ("refresh", "{}", 107),
        ("presence", #"{"channel":"plain"}"#, 108), ("presence_stats", #"{"channel":"other"}"#, 102),
        ("history", #"{"channel":"plain"}"#, 108),
        ("history", #"{"channel":"kept:a","limit":1,"since":{"offset":5,"epoch":"x"}}"#, 112),
        ("history", #"{"channel":"kept:a","limit":1,"reverse":true,"since":{"offset":0,"epoch":""}}"#, 107),
        ("history_remove", #"{"channel":""}"#, 107), ("publish", #"{"channel":"kept:a","b64data":"*"}"#, 107),
        ("publish", #"{"channel":"kept:a","data":1,"b64data":"*"}"#, 107),
        ("subscribe", #"{"user":"u","channel":"kept:a","b64info":"*"}"#, 107),
    ])
    func refusalIsAnErrorWithTheStatus200(_ method: String, _ body: String, _ code: Int) async throws {
        let body = body.replacing("%LARGE%", with: String(repeating: "x", count: 2000))
            .replacing("%MANY%", with: (0...1000).map { "\"\($0)\"" }.joined(separator: ","))
        try await self.run { gateway in
            let found = try await self.error(gateway, method, body)
            #expect(found == code)
        }
    }

    @Test func broadcastAnswersForEachChannel() async throws {
        try await self.run { gateway in
            let body = #"{"channels":["kept:a","other","plain"],"data":1}"#
            let responses = try await self.result(gateway, "broadcast", body)["responses"]?.items ?? []
            #expect(responses.map { $0["error"]?["code"]?.integer } == [nil, 102, nil])
            #expect(responses.first?["result"]?["offset"]?.integer == 1 && responses.last == ["result": [:]])
        }
    }

    @Test func userIsSubscribedUnsubscribedAndDisconnected() async throws {
        try await self.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada")
            let subscribe = #"{"user":"ada","channel":"kept:a","info":{"role":"x"}}"#
            #expect(try await self.result(gateway, "subscribe", subscribe) == [:])
            #expect(try await ada.receive()["push"]?["subscribe"] != nil)
            let presence = try await self.result(gateway, "presence", #"{"channel":"kept:a"}"#)["presence"]
            #expect(presence?[ada.client]?["user"]?.string == "ada")
            #expect(presence?[ada.client]?["chan_info"] == ["role": "x"])
            let stats = try await self.result(gateway, "presence_stats", #"{"channel":"kept:a"}"#)
            #expect(stats == ["num_clients": 1, "num_users": 1])
            let channels = try await self.result(gateway, "channels", #"{"pattern":"kept:*"}"#)
            #expect(channels == ["channels": ["kept:a": ["num_clients": 1]]])
            #expect(try await self.result(gateway, "channels", #"{"pattern":"x*"}"#) == ["channels": [:]])
            _ = try await self.result(gateway, "unsubscribe", #"{"user":"ada","channel":"kept:a","client":"other"}"#)
            _ = try await self.result(gateway, "unsubscribe", #"{"user":"ada","channel":"kept:a"}"#)
            #expect(try await ada.receive()["push"]?["unsubscribe"]?["code"]?.integer == 2000)
            let kept = #"{"user":"ada","whitelist":["\#(ada.client)"]}"#
            #expect(try await self.result(gateway, "disconnect", kept) == [:])
            #expect(try await ada.command(#"{"id":9,"ping":{}}"#)["id"]?.integer == 9)
            let disconnect = #"{"user":"ada","disconnect":{"code":4001,"reason":"bye"}}"#
            #expect(try await self.result(gateway, "disconnect", disconnect) == [:])
            #expect(try await ada.end() == "4001 bye")
        }
    }

    @Test func userIsSubscribedSinceAPosition() async throws {
        try await self.run { gateway in
            var epoch = ""
            for number in 1...3 {
                let body = #"{"channel":"kept:a","data":\#(number)}"#
                epoch = try await self.result(gateway, "publish", body)["epoch"]?.string ?? ""
            }
            let ada = try await RoomProbe(gateway, user: "ada")
            let since = #"{"user":"ada","channel":"kept:a","recover_since":{"offset":1,"epoch":"\#(epoch)"}}"#
            #expect(try await self.result(gateway, "subscribe", since) == [:])
            var pushes: [JSONValue] = []
            // Those of one turn are lines of one message.
            while pushes.count < 3 {
                pushes += try await ada.receiveText().split(separator: "\n").map {
                    JSONValue(text: String($0))["push"] ?? [:]
                }
            }
            #expect(pushes[0]["subscribe"]?["offset"]?.integer == 1)
            #expect(pushes.dropFirst().map { $0["pub"]?["offset"]?.integer } == [2, 3])
            #expect(pushes.dropFirst().map { $0["pub"]?["data"]?.integer } == [2, 3])
        }
    }

    @Test func expiredUserIsDisconnected() async throws {
        try await self.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada")
            #expect(try await self.result(gateway, "refresh", #"{"user":"ada","expire_at":4102444800}"#) == [:])
            #expect(try await ada.receive()["push"]?["refresh"]?["expires"]?.boolean == true)
            #expect(try await self.result(gateway, "refresh", #"{"user":"ada","expired":true}"#) == [:])
            #expect(try await ada.end() == "3005 connection expired")
        }
    }

    @Test func infoHasOneNode() async throws {
        try await self.run { gateway in
            _ = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            let nodes = try await self.result(gateway, "info", "{}")["nodes"]?.items ?? []
            #expect(nodes.count == 1)
            let node = try #require(nodes.first)
            #expect(node["uid"]?.string?.isEmpty == false && node["version"]?.string == "0.1.0")
            #expect(node["num_clients"]?.integer == 1 && node["num_users"]?.integer == 1)
            #expect(node["num_channels"]?.integer == 2 && node["num_subs"]?.integer == 2)
            #expect(try await self.result(gateway, "info", "")["nodes"]?.items.first?["uid"] == node["uid"])
        }
    }

    @Test func batchAnswersEachCommandInOrder() async throws {
        try await self.run { gateway in
            let body = """
                {"parallel": true, "commands": [{"publish": {"channel": "kept:a", "data": 1}}, {"rpc": {}},
                {"publish": {"channel": "other", "data": 1}}, {"history": {"channel": "kept:a", "limit": 1}}, {"x": 1}]}
                """
            let replies = try await self.call(gateway, "batch", body).json["replies"]?.items ?? []
            #expect(replies[0]["publish"]?["offset"]?.integer == 1)
            #expect(replies.map { $0["error"]?["code"]?.integer } == [nil, 104, 102, nil, 104])
            #expect(replies[3]["history"]?["publications"]?.items.count == 1)
            let many = Array(repeating: #"{"info":{}}"#, count: 1001).joined(separator: ",")
            let refused = try await self.call(gateway, "batch", #"{"commands":[\#(many)]}"#)
            #expect(refused.problem == "400 too-many-commands")
            #expect(try await self.call(gateway, "batch", "{}").json == ["replies": []])
        }
    }

    @Test func invalidCommandOfABatchLeavesTheOthersAlone() async throws {
        try await self.run { gateway in
            let body = """
                {"commands": [{"publish": {"channel": "plain", "b64data": "*"}},
                {"publish": {"channel": "plain", "data": 1}}]}
                """
            let replies = try await self.call(gateway, "batch", body).json["replies"]?.items ?? []
            #expect(replies.map { $0["error"]?["code"]?.integer } == [107, nil] && replies.last == ["publish": [:]])
        }
    }

    @Test(arguments: [#""data":null"#, #""data":null,"b64data":"bnVsbA==""#, #""b64data":"bnVsbA==","data":null"#])
    func nullIsPublishedAsAnyOtherValue(_ data: String) async throws {
        try await self.run { gateway in
            let probe = try await RoomProbe(gateway, in: "plain")
            #expect(try await self.result(gateway, "publish", #"{"channel":"plain",\#(data),"tags":null}"#) == [:])
            #expect(try await probe.receiveText().contains(#""data":null"#))
        }
    }

    @Test func publicationThatIsNotKeptHasNoPosition() async throws {
        try await self.run { gateway in
            _ = try await self.result(gateway, "publish", #"{"channel":"kept:a","data":1}"#)
            let body = #"{"channel":"kept:a","data":2,"skip_history":true}"#
            #expect(try await self.result(gateway, "publish", body) == [:])
            let history = try await self.result(gateway, "history", #"{"channel":"kept:a","limit":10}"#)
            #expect(history["publications"]?.items.count == 1 && history["offset"]?.integer == 1)
        }
    }

    @Test func bodyIsBounded() async throws {
        try await self.run { gateway in
            let fields = ["X-API-Key": "key", "Content-Length": "16777217"]
            let reply = try await self.call(gateway, "publish", "{}", fields: fields)
            #expect(reply.problem == "413 body-too-large")
        }
    }
}
