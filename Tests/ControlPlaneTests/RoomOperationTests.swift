import ControlAPI
import GatewayCore
import GatewayTestSupport
import Rooms
import Testing

@Suite("Rooms in the REST interface", .timeLimit(.minutes(5)))
struct RoomOperationTests {
    private func publish(_ gateway: LoopbackGateway, _ room: String, _ json: String) async throws -> HTTPReply {
        try await gateway.post("/v1/rooms/\(room):publish", json)
    }

    private func names(_ reply: HTTPReply) -> [String] {
        (reply.json["items"]?.items ?? []).compactMap { $0["name"]?.string }
    }

    // MARK: Reading

    @Test func roomsAreListedWithTheirCounts() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            _ = try await RoomProbe(gateway, user: "bob", in: "kept:a")
            _ = try await self.publish(gateway, "kept%3Aa", #"{"data":1}"#)
            _ = try await self.publish(gateway, "kept%3Ab", #"{"data":[1,2]}"#)
            let items = try await gateway.get("/v1/rooms").json["items"]?.items ?? []
            #expect(items.map { $0["name"]?.string } == ["kept:a", "kept:b", "plain"])
            let first = try #require(items.first)
            #expect(first["policy"]?.string == "kept" && first["members"]?.integer == 2)
            #expect(first["clients"]?.integer == 2 && first["users"]?.integer == 2)
            #expect(first["publications"]?.integer == 1 && first["offset"]?.integer == 1)
            #expect(first["epoch"]?.string?.isEmpty == false)
            #expect(items[1]["members"]?.integer == 0 && items[2]["offset"] == nil)
            #expect(try await gateway.get("/v1/rooms/kept%3Aa").json == first)
            #expect(self.names(try await gateway.get("/v1/rooms?minMembers=1&pattern=*e*")) == ["kept:a"])
        }
    }

    @Test func listsHavePages() async throws {
        try await RoomProbe.run { gateway in
            for name in ["plain/1", "plain 2", "plain:3"] { _ = try await RoomProbe(gateway, in: name) }
            var (found, target): ([String], String?) = ([], "/v1/rooms?limit=1&pattern=plain*")
            while let current = target {
                let reply = try await gateway.get(current)
                found += self.names(reply)
                target = reply.json["next"]?.string
                #expect(reply.fields["link"] == target.map { "<\($0)>; rel=\"next\"" })
            }
            #expect(found == ["plain 2", "plain/1", "plain:3"])
        }
    }

    @Test(arguments: ["kept:/a/..", "kept:%41", "kept: b+c", "kept:é漢🙂", #"kept:"<b>&"#, "kept:."])
    func namesOfRoomsAreData(_ name: String) async throws {
        try await RoomProbe.run { gateway in
            let path = "/v1/rooms/" + name.utf8.map { "%\(String(Int($0) + 256, radix: 16).dropFirst())" }.joined()
            #expect(try await gateway.post("\(path):publish", #"{"data":"x"}"#).status == 200)
            _ = try await gateway.post("\(path):publish", #"{"data":"y"}"#)
            #expect(try await gateway.get(path).json["name"]?.string == name)
            let page = try await gateway.get("\(path)/history?limit=1").json
            let next = try #require(page["next"]?.string)
            #expect(try await gateway.get(next).json["items"]?.items.first?["data"]?.string == "y")
            #expect(gateway.log.allSatisfy { !$0.contains("<b>") })
        }
    }

    @Test func membersAreListedPageByPage() async throws {
        try await RoomProbe.run { gateway in
            let probes = [
                try await RoomProbe(gateway, user: "ada", in: "kept:a"), try await RoomProbe(gateway, in: "kept:a"),
                try await RoomProbe(gateway, user: "ada", in: "kept:a"),
            ]
            let first = try await gateway.get("/v1/rooms/kept%3Aa/members?limit=2").json
            let next = try #require(first["next"]?.string)
            let second = try await gateway.get(next).json
            let items = (first["items"]?.items ?? []) + (second["items"]?.items ?? [])
            #expect(items.map { $0["client"]?.string } == probes.map(\.client))
            #expect(items.map { $0["user"]?.string } == ["ada", nil, "ada"])
            #expect(second["next"] == nil)
            let connection = try #require(items[0]["connection"]?.string)
            #expect(try await gateway.get("/v1/connections/\(connection)").json["route"]?.string == "rooms")
            for cursor in ["x", "1", "0.-1", "9.18446744073709551616"] {
                let reply = try await gateway.get("/v1/rooms/kept%3Aa/members?cursor=\(cursor)")
                #expect(reply.problem == "400 invalid-cursor cursor")
            }
            let end = try await gateway.get("/v1/rooms/kept%3Aa/members?cursor=0.18446744073709551615")
            #expect(end.json["items"]?.items == [])
        }
    }

    @Test(arguments: [
        ("GET", ""), ("GET", "/members"), ("GET", "/history"), ("DELETE", "/history"), ("DELETE", "/history/1"),
        ("POST", ":kick"), ("POST", ":disconnect"),
    ])
    func unknownRoomIsNotFound(_ method: String, _ suffix: String) async throws {
        try await RoomProbe.run { gateway in
            let reply = try await gateway.request(method, "/v1/rooms/kept%3Anone\(suffix)")
            #expect(reply.problem == "404 unknown-room")
        }
    }

    // MARK: Publishing

    @Test func dataArrivesAsItWasPublished() async throws {
        try await RoomProbe.run { gateway in
            let probe = try await RoomProbe(gateway, in: "kept:a")
            let data = #"{"z":12345678901234567890.10,"a":[1e3,"ü"]}"#
            let reply = try await self.publish(gateway, "kept%3Aa", #"{"data": \#(data), "tags": {"k": "v"}}"#)
            #expect(reply.json["offset"]?.integer == 1 && reply.json["epoch"]?.string?.isEmpty == false)
            let text = try await probe.receiveText()
            #expect(text.contains(#""data":\#(data)"#))
            #expect(JSONValue(text: text)["push"]?["pub"]?["tags"] == ["k": "v"])
            #expect(try await gateway.get("/v1/rooms/kept%3Aa/history").text.contains(#""data":\#(data)"#))
            _ = try await self.publish(gateway, "kept%3Aa", #"{"b64data": "AP8="}"#)
            #expect(try await probe.receive()["push"]?["pub"]?["data"]?["b64data"]?.string == "AP8=")
            let items = try await gateway.get("/v1/rooms/kept%3Aa/history").json["items"]?.items
            #expect(items?.last?["b64data"]?.string == "AP8=" && items?.last?["data"] == nil)
        }
    }

    @Test(arguments: [
        ("kept%3Aa", "{}", "422 invalid-value /data"), ("kept%3Aa", #"{"data":null}"#, "422 invalid-value /data"),
        ("kept%3Aa", #"{"data":1,"b64data":"eA=="}"#, "422 invalid-value /data"),
        ("kept%3Aa", #"{"b64data":"***"}"#, "422 invalid-value /b64data"),
        ("kept%3Aa", #"{"b64data":""}"#, "422 invalid-value /b64data"),
        ("kept%3Aa", #"{"data":1,"tag":{}}"#, "422 unknown-member /tag"),
        ("kept%3Aa", #"{"data":1,"tags":{"a":1}}"#, "422 wrong-type /tags/a"),
        ("kept%3Aa", #"{"data":"#, "400 malformed-json"), ("other", #"{"data":1}"#, "404 unknown-room"),
        ("kept%3A%0A", #"{"data":1}"#, "422 invalid-room"),
    ])
    func invalidPublicationIsRefused(_ room: String, _ body: String, _ problem: String) async throws {
        try await RoomProbe.run { gateway in
            let reply = try await self.publish(gateway, room, body)
            #expect(reply.problem == problem)
        }
    }

    @Test func limitsOfSizeNameAndNestingHold() async throws {
        try await RoomProbe.run { gateway in
            let large = String(repeating: "x", count: 1100)
            #expect(
                try await self.publish(gateway, "kept%3Aa", #"{"data":"\#(large)"}"#).problem
                    == "422 message-too-large /data")
            let long = String(repeating: "x", count: 256)
            #expect(try await self.publish(gateway, "plain\(long)", #"{"data":1}"#).problem == "422 invalid-room")
            let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
            let refused = try await self.publish(gateway, "plain", #"{"data":\#(deep)}"#)
            #expect(refused.problem == "422 invalid-value /data")
            let allowed = String(deep.dropFirst().dropLast())
            #expect(try await self.publish(gateway, "plain", #"{"data":\#(allowed)}"#).status == 200)
        }
    }

    @Test func messageIsPublishedOnceForAKeyAndKeptUnlessSkipped() async throws {
        try await RoomProbe.run { gateway in
            let probe = try await RoomProbe(gateway, in: "kept:a")
            let body = #"{"data":1,"idempotencyKey":"k"}"#
            let first = try await self.publish(gateway, "kept%3Aa", body)
            #expect(try await self.publish(gateway, "kept%3Aa", body).json == first.json)
            let skipped = try await self.publish(gateway, "kept%3Aa", #"{"data":2,"skipHistory":true}"#)
            #expect(skipped.status == 200 && skipped.json == [:], "\(skipped.text)")
            #expect(try await probe.receive()["push"]?["pub"]?["data"]?.integer == 1)
            #expect(try await probe.receive()["push"]?["pub"]?["data"]?.integer == 2)
            #expect(try await gateway.get("/v1/rooms/kept%3Aa").json["publications"]?.integer == 1)
        }
    }

    @Test func keyIsRememberedAfterManyOthers() async throws {
        try await RoomProbe.run { gateway in
            func publish(_ key: Int) async throws -> StreamPosition {
                try await gateway.gateway.rooms.publish(
                    Publication(.json([UInt8(ascii: "1")])), in: "kept:a", skipsHistory: false, idempotencyKey: "\(key)"
                )
            }
            let first = try await publish(0)
            for key in 1...1100 { _ = try await publish(key) }
            #expect(try await publish(0) == first)
        }
    }

    @Test func broadcastReportsTheResultInEachRoom() async throws {
        try await RoomProbe.run { gateway in
            let body = #"{"rooms":["kept:a","other","plain",""],"data":{"n":1}}"#
            let items = try await gateway.post("/v1/rooms:broadcast", body).json["items"]?.items ?? []
            #expect(items.map { $0["room"]?.string } == ["kept:a", "other", "plain", ""])
            #expect(items.map { $0["problem"]?.string } == [nil, "unknown-room", nil, "invalid-room"])
            #expect(items.map { $0["offset"]?.integer } == [1, nil, nil, nil])
            let many = (0...1000).map { "\"r\($0)\"" }.joined(separator: ",")
            for rooms in ["[]", "[\(many)]"] {
                let reply = try await gateway.post("/v1/rooms:broadcast", #"{"rooms":\#(rooms),"data":1}"#)
                #expect(reply.problem == "422 invalid-value /rooms")
            }
        }
    }

    // MARK: History

    @Test func historyIsReadInBothDirections() async throws {
        try await RoomProbe.run { gateway in
            for number in 1...5 { _ = try await self.publish(gateway, "kept%3Aa", #"{"data":\#(number)}"#) }
            func offsets(_ query: String) async throws -> [Int?] {
                let reply = try await gateway.get("/v1/rooms/kept%3Aa/history\(query)")
                return (reply.json["items"]?.items ?? []).map { $0["offset"]?.integer }
            }
            #expect(try await offsets("") == [1, 2, 3, 4, 5])
            #expect(try await offsets("?since=3") == [4, 5])
            #expect(try await offsets("?reverse=true&limit=2") == [5, 4])
            #expect(try await offsets("?reverse=true&since=3") == [2, 1])
            var (found, target): ([Int?], String?) = ([], "/v1/rooms/kept%3Aa/history?limit=2&reverse=true")
            while let current = target {
                let json = try await gateway.get(current).json
                found += (json["items"]?.items ?? []).map { $0["offset"]?.integer }
                target = json["next"]?.string
            }
            #expect(found == [5, 4, 3, 2, 1])
            let other = try await gateway.get("/v1/rooms/kept%3Aa/history?since=1&epoch=other")
            #expect(other.problem == "410 other-epoch since")
            for query in ["since=-1", "since=x", "limit=0", "limit=1001", "reverse=1"] {
                let reply = try await gateway.get("/v1/rooms/kept%3Aa/history?\(query)")
                #expect(reply.problem == "400 invalid-parameter \(query.prefix { $0 != "=" })")
            }
            #expect(try await gateway.get("/v1/rooms?pattern=").problem == "400 invalid-parameter pattern")
        }
    }

    @Test func roomWithoutHistoryHasNone() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, in: "plain")
            #expect(try await gateway.get("/v1/rooms/plain/history").problem == "409 no-history")
        }
    }

    @Test func publicationsAreDeletedAndOffsetsGoOn() async throws {
        try await RoomProbe.run { gateway in
            for number in 1...3 { _ = try await self.publish(gateway, "kept%3Aa", #"{"data":\#(number)}"#) }
            #expect(try await gateway.request("DELETE", "/v1/rooms/kept%3Aa/history/2").status == 204)
            for offset in ["2", "x", "18446744073709551616"] {
                let reply = try await gateway.request("DELETE", "/v1/rooms/kept%3Aa/history/\(offset)")
                #expect(reply.problem == "404 unknown-publication")
            }
            let rest = try await gateway.get("/v1/rooms/kept%3Aa/history").json["items"]?.items
            #expect(rest?.map { $0["offset"]?.integer } == [1, 3])
            let probe = try await RoomProbe(gateway, in: "kept:a")
            #expect(try await gateway.request("DELETE", "/v1/rooms/kept%3Aa/history").status == 204)
            #expect(try await self.publish(gateway, "kept%3Aa", #"{"data":4}"#).json["offset"]?.integer == 4)
            #expect(try await probe.receive()["push"]?["pub"]?["offset"]?.integer == 4)
        }
    }

    // MARK: Following

    private func events(_ gateway: LoopbackGateway, _ query: String, fields: [String: String] = [:]) async throws
        -> (ids: [String], events: [JSONValue])
    {
        let reply = try await gateway.get("/v1/rooms/kept%3Aa/events?\(query)", fields: fields)
        #expect(reply.status == 200 && reply.fields["content-type"] == "text/event-stream", "\(reply.text)")
        let lines = reply.text.split(separator: "\n")
        return (
            lines.filter { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) },
            lines.filter { $0.hasPrefix("data: ") }.map { JSONValue(text: String($0.dropFirst(6))) }
        )
    }

    private func summary(_ events: [JSONValue]) -> [String] {
        events.map { event in
            "\(event["type"]?.string ?? "") \(event["publication"]?["offset"]?.integer ?? event["offset"]?.integer ?? -1)"
        }
    }

    @Test func followerContinuesAfterItsLastEvent() async throws {
        try await RoomProbe.run { gateway in
            for number in 1...5 { _ = try await self.publish(gateway, "kept%3Aa", #"{"data":\#(number)}"#) }
            let first = try await self.events(gateway, "last=2&limit=3")
            #expect(self.summary(first.events) == ["publication 4", "publication 5", "following 5"])
            let second = try await self.events(gateway, "limit=2", fields: ["Last-Event-ID": first.ids[0]])
            #expect(self.summary(second.events) == ["publication 5", "following 5"])
            let lost = try await self.events(gateway, "limit=7", fields: ["Last-Event-ID": "other.2"])
            #expect(
                self.summary(lost.events)
                    == ["gap 5"] + (1...5).map { "publication \($0)" } + ["following 5"])
            _ = try await gateway.request("DELETE", "/v1/rooms/kept%3Aa/history/4")
            let gap = try await self.events(gateway, "limit=3&after=\(first.ids[0].dropLast())3")
            #expect(self.summary(gap.events) == ["gap 5", "publication 5", "following 5"])
        }
    }

    @Test func followerGetsWhatIsPublishedWhileItFollows() async throws {
        try await RoomProbe.run { gateway in
            let probe = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            let exchange = HTTPExchange(gateway.control)
            defer { exchange.close() }
            let host = gateway.control.dropFirst("http://".count)
            try await exchange.send(
                Array("GET /v1/rooms/kept%3Aa/events HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
            _ = try await exchange.receive(through: "event: following")
            // Others do not see it, and the policy's list of presence does not have it.
            #expect(try await gateway.get("/v1/rooms/kept%3Aa").json["clients"]?.integer == 1)
            _ = try await probe.command(#"{"id":9,"publish":{"channel":"kept:a","data":{"from":"ada"}}}"#)
            let text = try await exchange.receive(through: "event: publication\ndata: {")
            let rest = text.contains("\"from\"") ? text : text + (try await exchange.receive(through: "\n\n"))
            #expect(rest.contains(#""data":{"from":"ada"}"#) && rest.contains(#""user":"ada""#))
            exchange.close()
            try await gateway.wait { try await gateway.get("/v1/rooms/kept%3Aa").json["members"]?.integer == 1 }
        }
    }

    @Test func quietStreamSendsHeartbeatsAndEnds() async throws {
        try await RoomProbe.run { gateway in
            let reply = try await gateway.get("/v1/rooms/plain/events?heartbeatMs=10&durationMs=5000")
            #expect(reply.text.split(separator: "\n").count { $0 == ":" } >= 1)
            #expect(reply.text.contains("event: following") && !reply.text.contains("id: "))
        }
    }

    @Test func followingIsRefusedWithoutAPolicyOrSpace() async throws {
        try await RoomProbe.run { gateway in
            #expect(try await gateway.get("/v1/rooms/other/events").problem == "404 unknown-room")
            _ = try await RoomProbe(gateway, in: "small:a")
            #expect(try await gateway.get("/v1/rooms/small%3Aa/events").problem == "409 room-full")
            for query in ["after=x", "after=a.b", "last=-1", "heartbeatMs=1", "limit=0"] {
                let reply = try await gateway.get("/v1/rooms/plain/events?\(query)")
                #expect(reply.problem == "400 invalid-parameter \(query.prefix { $0 != "=" })")
            }
            let fields = ["Last-Event-ID": "x"]
            #expect(try await gateway.get("/v1/rooms/plain/events", fields: fields).problem == "400 invalid-header")
        }
    }
}
