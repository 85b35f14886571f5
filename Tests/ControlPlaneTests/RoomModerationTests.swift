import ControlAPI
import GatewayCore
import GatewayTestSupport
import Testing

@Suite("Moderation and users in the REST interface", .timeLimit(.minutes(5)))
struct RoomModerationTests {
    @Test func kickedClientLeavesTheRoomAndStaysConnected() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            let bob = try await RoomProbe(gateway, user: "bob", in: "kept:a")
            let reply = try await gateway.post("/v1/rooms/kept%3Aa:kick", #"{"user":"ada"}"#)
            #expect(reply.json == ["clients": 1])
            let push = try await ada.receive()["push"]
            #expect(push?["channel"]?.string == "kept:a" && push?["unsubscribe"]?["code"]?.integer == 2000)
            #expect(try await ada.command(#"{"id":9,"publish":{"channel":"plain","data":1}}"#)["publish"] != nil)
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:kick", #"{"user":"ada"}"#).json == ["clients": 0])
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:kick").json == ["clients": 1])
            #expect(try await bob.receive()["push"]?["unsubscribe"] != nil)
            #expect(try await gateway.get("/v1/rooms/kept%3Aa").json["members"]?.integer == 0)
        }
    }

    /// As a script sends it whose variable is not set.
    @Test(arguments: ["kick", "disconnect"])
    func emptyUserIsNotEveryoneWithoutAName(_ verb: String) async throws {
        try await RoomProbe.run { gateway in
            let id = try await gateway.open("ws://127.0.0.1:\(gateway.port("web"))/chat/plain")
            for (body, pointer) in [
                (#"{"user":""}"#, "/user"), (#"{"client":""}"#, "/client"), (#"{"user":"","client":""}"#, "/client"),
            ] {
                let reply = try await gateway.post("/v1/rooms/plain:\(verb)", body)
                #expect(reply.problem == "422 invalid-value \(pointer)")
            }
            #expect(try await gateway.get("/v1/rooms/plain").json["members"]?.integer == 1)
            #expect(try await gateway.get("/v1/connections/\(id)").json["state"]?.string == "open")
            #expect(try await gateway.post("/v1/rooms/plain:\(verb)").json == ["clients": 1])
        }
    }

    @Test func clientWithoutAProtocolIsRemovedWithItsConnection() async throws {
        try await RoomProbe.run { gateway in
            let id = try await gateway.open("ws://127.0.0.1:\(gateway.port("web"))/chat/plain")
            let members = try await gateway.get("/v1/rooms/plain/members").json["items"]?.items
            #expect(members?.count == 1 && members?.first?["connection"] != nil)
            #expect(try await gateway.post("/v1/rooms/plain:kick").json == ["clients": 1])
            let end = try await gateway.post("/v1/connections/\(id):receive", #"{"timeoutMs":100000}"#)
            #expect(end.json["connection"]?["closeCode"]?.integer == 1008)
        }
    }

    @Test func membersAreDisconnectedWithACode() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            let bob = try await RoomProbe(gateway, user: "bob", in: "kept:a")
            let body = #"{"user":"ada","code":4001,"reason":"maintenance"}"#
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:disconnect", body).json == ["clients": 1])
            #expect(try await ada.end() == "4001 maintenance")
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:disconnect").json == ["clients": 1])
            #expect(try await bob.end() == "3503 force disconnect")
            let metrics = try await gateway.get("/metrics").text
            #expect(metrics.contains(#"sluice_room_disconnects_total{code="4001"} 1"#))
            #expect(metrics.contains(#"sluice_room_disconnects_total{code="3503"} 1"#))
        }
    }

    @Test func restrictionsAreLimitedInNumber() async throws {
        try await RoomProbe.run { gateway in
            for number in 0..<Moderation.limit {
                _ = gateway.gateway.rooms.restrict(.ban, user: "\(number)", in: nil, for: .seconds(3600))
            }
            let refused = try await gateway.post("/v1/rooms/kept%3Aa:ban", #"{"user":"one too many"}"#)
            #expect(refused.problem == "429 too-many-restrictions")
            #expect(try await gateway.post("/v1/users/7:unban").status == 204)
            #expect(gateway.gateway.rooms.restrict(.ban, user: "one more", in: nil, for: .seconds(1)))
        }
    }

    @Test(arguments: [
        (":disconnect", #"{"code":2999}"#, "422 invalid-value /code"),
        (":disconnect", #"{"code":5000}"#, "422 invalid-value /code"),
        (":disconnect", #"{"users":"x"}"#, "422 unknown-member /users"), (":ban", "{}", "422 missing-member /user"),
        (":ban", #"{"user":""}"#, "422 invalid-value /user"),
        (":mute", #"{"user":"a","durationMs":999}"#, "422 invalid-value /durationMs"),
        (":unban", #"{"user":"a"}"#, "404 unknown-restriction"),
        (":unmute", #"{"user":"a"}"#, "404 unknown-restriction"),
    ])
    func invalidModerationIsRefused(_ verb: String, _ body: String, _ problem: String) async throws {
        try await RoomProbe.run { gateway in
            let reply = try await gateway.post("/v1/rooms/kept%3Aa\(verb)", body)
            #expect(reply.problem == problem)
        }
    }

    @Test func bannedUserIsRemovedAndKeptOut() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            let ban = try await gateway.post("/v1/rooms/kept%3Aa:ban", #"{"user":"ada","durationMs":60000}"#)
            let item = try #require(ban.json["items"]?.items.first)
            #expect(item["kind"]?.string == "ban" && item["user"]?.string == "ada" && item["room"]?.string == "kept:a")
            #expect(try await ada.receive()["push"]?["unsubscribe"]?["code"]?.integer == 2000)
            let enter = #"{"id":7,"subscribe":{"channel":"kept:a"}}"#
            #expect(try await ada.command(enter)["error"]?["code"]?.integer == 103)
            #expect(try await gateway.get("/v1/rooms/kept%3Aa/restrictions").json["items"]?.items.count == 1)
            #expect(try await gateway.get("/v1/rooms/plain/restrictions").json["items"]?.items == [])
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:unban", #"{"user":"ada"}"#).status == 204)
            #expect(try await ada.command(enter)["subscribe"] != nil)
        }
    }

    @Test func mutedUserReadsButDoesNotPublish() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:mute", #"{"user":"ada"}"#).status == 200)
            let publish = #"{"id":7,"publish":{"channel":"kept:a","data":1}}"#
            #expect(try await ada.command(publish)["error"]?["code"]?.integer == 103)
            #expect(try await gateway.post("/v1/rooms/kept%3Aa:unmute", #"{"user":"ada"}"#).status == 204)
            #expect(try await ada.command(publish)["publish"] != nil)
        }
    }

    // MARK: Users

    @Test func userIsShownWithConnectionsAndRooms() async throws {
        try await RoomProbe.run { gateway in
            let name = "a/d:a %é"
            let path = "/v1/users/a%2Fd%3Aa%20%25%C3%A9"
            #expect(try await gateway.get(path).problem == "404 unknown-user")
            let probe = try await RoomProbe(gateway, user: "ada", in: "plain", "kept:a")
            let ada = try await gateway.get("/v1/users/ada").json
            #expect(ada["connectionCount"]?.integer == 1)
            let connection = try #require(ada["connections"]?.items.first)
            #expect(connection["client"]?.string == probe.client && connection["roomCount"]?.integer == 2)
            #expect(connection["rooms"] == ["kept:a", "plain"])
            _ = try await gateway.post("\(path):ban", #"{"durationMs":1000000}"#)
            let banned = try await gateway.get(path).json
            #expect(banned["id"]?.string == name)
            #expect(banned["restrictions"]?.items.first?["kind"]?.string == "ban")
            #expect(try await gateway.post("\(path):unban").status == 204)
        }
    }

    @Test func userGetsMessagesAndIsDisconnected() async throws {
        try await RoomProbe.run { gateway in
            let (first, second) = (try await RoomProbe(gateway, user: "ada"), try await RoomProbe(gateway, user: "ada"))
            _ = try await RoomProbe(gateway, user: "bob")
            #expect(try await gateway.post("/v1/users/ada:send", #"{"data":{"z":1,"a":2}}"#).json == ["clients": 2])
            for probe in [first, second] {
                #expect(try await probe.receiveText().contains(#""message":{"data":{"z":1,"a":2}}"#))
            }
            let one = #"{"client":"\#(first.client)","reason":"one"}"#
            #expect(try await gateway.post("/v1/users/bob:disconnect", one).json == ["clients": 0])
            #expect(try await gateway.post("/v1/users/ada:disconnect", one).json == ["clients": 1])
            #expect(try await first.end() == "3503 one")
            #expect(try await gateway.post("/v1/users/ada:disconnect").json == ["clients": 1])
            #expect(try await second.end() == "3503 force disconnect")
            #expect(try await gateway.post("/v1/users/ada:send", "{}").problem == "422 invalid-value /data")
        }
    }

    @Test func userBannedFromEveryRoomLeavesThemAll() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            _ = try await gateway.post("/v1/users/ada:ban")
            let left = [try await ada.receiveText(), try await ada.receiveText()].joined(separator: "\n")
            #expect(left.contains("kept:a") && left.contains("plain"))
            let enter = #"{"id":7,"subscribe":{"channel":"plain"}}"#
            #expect(try await ada.command(enter)["error"]?["code"]?.integer == 103)
            #expect(try await gateway.post("/v1/users/ada:unban").status == 204)
            #expect(try await ada.command(enter)["subscribe"] != nil)
        }
    }

    // MARK: Access and metrics

    @Test func scopesSeparateListsFromMessages() async throws {
        let tokens = """
              tokens:
                - {name: r, hash: 'sha256:454349e422f05297191ead13e21d3db520e5abef52055e4964b82fb213f593a1', scopes: [read]}
                - {name: o, hash: 'sha256:65c74c15a686187bb6bbf9958f494fc6b80068034a659a9ad44991b08c58f2d2', scopes: [operate]}

            """
        try await RoomProbe.run(more: tokens) { gateway async throws in
            func status(_ method: String, _ target: String, _ token: String) async throws -> Int {
                let fields = ["Authorization": "Bearer \(token)"]
                let body = method == "POST" ? #"{"data":1}"# : nil
                return try await gateway.request(method, target, body, fields: fields).status
            }
            #expect(try await status("POST", "/v1/rooms/kept%3Aa:publish", "o") == 200)
            for target in ["/v1/rooms", "/v1/rooms/kept%3Aa", "/v1/rooms/kept%3Aa/members", "/v1/users"] {
                #expect(try await status("GET", target, "r") == 200)
                #expect(try await status("GET", target, "o") == 403)
            }
            for target in ["/v1/rooms/kept%3Aa/history", "/v1/rooms/kept%3Aa/events?limit=1"] {
                #expect(try await status("GET", target, "r") == 403)
                #expect(try await status("GET", target, "o") == 200)
            }
            for target in ["/v1/rooms/kept%3Aa:publish", "/v1/users/ada:send", "/v1/rooms/kept%3Aa:kick"] {
                #expect(try await status("POST", target, "r") == 403)
            }
            #expect(try await gateway.get("/v1/rooms").status == 401)
        }
    }

    @Test func metricsCountEachPolicyAndHaveNoNames() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, user: "ada", in: "kept:secret", "plain")
            _ = try await gateway.post("/v1/rooms/kept%3Asecret:publish", #"{"data":1}"#)
            let text = try await gateway.get("/metrics").text
            for line in [
                "sluice_room_clients 1", "sluice_room_users 1", #"sluice_rooms{policy="kept"} 1"#,
                #"sluice_room_members{policy="plain"} 1"#, #"sluice_room_history_publications{policy="kept"} 1"#,
                #"sluice_room_publications_total{policy="kept"} 1"#, #"sluice_room_lost_total{policy="kept"} 0"#,
                #"sluice_room_publications_total{policy="plain"} 0"#,
                #"sluice_room_unrecovered_total{policy="kept"} 0"#,
            ] {
                #expect(text.contains("\n\(line)\n"), "\(line)")
            }
            #expect(!text.contains("secret") && !text.contains("ada"))
        }
    }

    /// Some megabytes are in the kernel. Without pings, nothing else ends the connection.
    @Test func clientThatDoesNotReadWhatIsSentToItsUserEndsAsSlow() async throws {
        let configuration = RoomProbe.configuration.replacing("%KEYS%", with: "")
            .replacing("target: rooms}", with: "target: rooms, ping-interval: none}")
        try await LoopbackGateway.run(configuration) { gateway in
            _ = try await RoomProbe(gateway, user: "ada")
            let message = #"{"data":"\#(String(repeating: "x", count: 1_000_000))"}"#
            var sent = 0
            while sent < 64, try await gateway.post("/v1/users/ada:send", message).json == ["clients": 1] { sent += 1 }
            #expect(sent < 64)
            #expect(try await gateway.get("/metrics").text.contains(#"sluice_room_disconnects_total{code="3008"} 1"#))
        }
    }
}
