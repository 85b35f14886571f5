import ControlAPI
import GatewayTestSupport
import Testing

@Suite("The list of users in the REST interface", .timeLimit(.minutes(5)))
struct UserListTests {
    private func names(_ reply: HTTPReply) -> [String] {
        (reply.json["items"]?.items ?? []).compactMap { $0["id"]?.string }
    }

    @Test func usersAreListedWithTheirConnectionsAndRooms() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, user: "bob")
            _ = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            let second = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            _ = try await RoomProbe(gateway, in: "plain")
            let items = try await gateway.get("/v1/users").json["items"]
            #expect(
                items
                    == JSONValue(
                        text: """
                            [{"connectionCount":2,"hasMoreRooms":false,"id":"ada","rooms":["kept:a","plain"]},\
                            {"connectionCount":1,"hasMoreRooms":false,"id":"bob","rooms":[]}]
                            """))
            _ = try await gateway.request("DELETE", "/v1/connections/\(second.id)")
            try await gateway.wait {
                let user = try await gateway.get("/v1/users").json["items"]?.items.first
                return user?["connectionCount"]?.integer == 1 && user?["rooms"] == ["kept:a"]
            }
        }
    }

    @Test func patternRoomAndFieldsSelect() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, user: "ada", in: "plain", "kept:a")
            _ = try await RoomProbe(gateway, user: "ada")
            _ = try await RoomProbe(gateway, user: "adam", in: "plain2")
            #expect(self.names(try await gateway.get("/v1/users?pattern=ada*")) == ["ada", "adam"])
            #expect(self.names(try await gateway.get("/v1/users?pattern=*m")) == ["adam"])
            // Also in a room that keeps no presence.
            let members = try await gateway.get("/v1/users?room=plain&fields=connectionCount").json["items"]
            #expect(members == JSONValue(text: #"[{"connectionCount":1,"id":"ada"}]"#))
            #expect(self.names(try await gateway.get("/v1/users?room=kept%3Anone")) == [])
            let ids = try await gateway.get("/v1/users?fields=id").json["items"]
            #expect(ids == JSONValue(text: #"[{"id":"ada"},{"id":"adam"}]"#))
            for (query, problem) in [
                ("fields=x", "400 invalid-parameter fields"), ("limit=0", "400 invalid-parameter limit"),
                ("room=a&room=b", "400 invalid-parameter room"), ("node=b", "404 unknown-node"),
                ("room=", "400 invalid-parameter room"), ("pattern=", "400 invalid-parameter pattern"),
                ("node=", "400 invalid-parameter node"),
            ] {
                #expect(try await gateway.get("/v1/users?\(query)").problem == problem)
            }
        }
    }

    @Test func pagesListEachUserOnce() async throws {
        try await RoomProbe.run { gateway in
            let all = ["a/b", "c d", "e:f", "ü"]
            for name in all.shuffled() { _ = try await RoomProbe(gateway, user: name) }
            var (found, target): ([String], String?) = ([], "/v1/users?limit=1&fields=id")
            while let current = target {
                let reply = try await gateway.get(current)
                found += self.names(reply)
                target = reply.json["next"]?.string
                #expect(reply.fields["link"] == target.map { "<\($0)>; rel=\"next\"" })
            }
            #expect(found == all)
        }
    }

    @Test func roomsOfAUserAreBounded() async throws {
        try await RoomProbe.run { gateway in
            let probe = try await RoomProbe(gateway, user: "ada")
            for number in 10..<43 {
                _ = try await probe.command(#"{"id":\#(number),"subscribe":{"channel":"plain\#(number)"}}"#)
            }
            let user = try await gateway.get("/v1/users").json["items"]?.items.first
            #expect(user?["rooms"]?.items.map(\.string) == (10..<42).map { "plain\($0)" })
            #expect(user?["hasMoreRooms"]?.boolean == true)
        }
    }

    @Test func pageOfLongNamesEndsBeforeItsLimit() async throws {
        // Probes answer pings while they read only.
        try await RoomProbe.run { gateway in
            // Two bytes each in JSON.
            let all = (100..<205).map { "\($0)" + String(repeating: "\"", count: 4000) }
            for name in all { _ = try await RoomProbe(gateway, user: name.replacing("\"", with: "\\\"")) }
            let first = try await gateway.get("/v1/users?limit=1000&fields=id")
            let next = try #require(first.json["next"]?.string)
            let second = try await gateway.get(next)
            #expect(self.names(first) + self.names(second) == all && second.json["next"] == nil)
            _ = try await RoomProbe(gateway, user: String(repeating: "y", count: 4097))
            #expect(self.names(try await gateway.get("/v1/users?pattern=y*")) == [])
        }
    }
}
