import ControlAPI
import Foundation
import GatewayTestSupport
import Testing

@Suite("Commands for rooms and users", .timeLimit(.minutes(5)))
struct RoomCommandTests {
    private func run(_ gateway: LoopbackGateway, _ words: String..., input: [String] = []) async -> CommandRun {
        await CommandHost(input: input.map { Array($0.utf8) }).run(words + ["--control", gateway.control])
    }

    @Test func messageIsPublishedFromTextOrInput() async throws {
        try await RoomProbe.run { gateway in
            let probe = try await RoomProbe(gateway, in: "kept:a")
            func data() async throws -> String {
                let text = try await probe.receiveText()
                return text.matches(of: /"data":(.*),"offset"/).first.map { String($0.1) } ?? text
            }
            let first = await self.run(gateway, "publish", "kept:a", #"grüße "x""#)
            #expect(first.code == 0 && first.output == "published at 1\n", "\(first.errors)")
            #expect(try await data() == #""grüße \"x\"""#)
            #expect(await self.run(gateway, "publish", "kept:a", #"{"b":1.0,"a":2}"#).code == 0)
            #expect(try await data() == #"{"b":1.0,"a":2}"#)
            #expect(await self.run(gateway, "publish", "kept:a", "17", "--string").code == 0)
            #expect(try await data() == #""17""#)
            let input = await self.run(gateway, "publish", "kept:a", input: ["one ", "two\n"])
            #expect(input.output == "published at 4\n")
            #expect(try await data() == #""one two""#)
            #expect(await self.run(gateway, "publish", "kept:a", "-", "--binary", input: ["\u{1}"]).code == 0)
            #expect(try await data() == #"{"b64data":"AQ=="}"#)
            #expect(await self.run(gateway, "publish", "plain", "x", "--json").output == "{}\n")
        }
    }

    @Test func roomsAreListedShownAndRead() async throws {
        try await RoomProbe.run { gateway in
            let room = "kept:a/é"
            let ada = try await RoomProbe(gateway, user: "ada", in: room)
            let lines = await self.run(gateway, "rooms").lines
            #expect(lines.count == 2 && lines[0].hasPrefix("ROOM") && lines[1].hasPrefix(room))
            #expect(await self.run(gateway, "rooms", "--pattern", "x*").output == "")
            let shown = await self.run(gateway, "rooms", room).output
            #expect(shown.contains("members       1\n") && shown.contains("policy        kept\n"), "\(shown)")
            let members = await self.run(gateway, "rooms", room, "--members").lines
            #expect(members.count == 2 && members[1].contains(ada.client))
            for number in 1...3 { _ = await self.run(gateway, "publish", room, #"{"n": \#(number)}"#) }
            let history = await self.run(gateway, "rooms", room, "--history", "--last", "2").lines
            #expect(history.map { $0.dropFirst(12) } == [#"  3  -  {"n": 3}"#, #"  2  -  {"n": 2}"#])
            let since = await self.run(gateway, "rooms", room, "--history", "--since", "2")
            #expect(since.lines.count == 1 && since.output.contains(#"{"n": 3}"#))
            // As deeply as a client may.
            let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
            #expect(await self.run(gateway, "publish", room, deep).code == 0)
            #expect(await self.run(gateway, "rooms", room, "--history", "--last", "1").output.contains(deep))
            #expect(await self.run(gateway, "tail", room, "--last", "1", "--count", "1").output.contains(deep))
            #expect(await self.run(gateway, "rooms", room, "--delete", "2").output == "deleted\n")
            #expect(await self.run(gateway, "rooms", room, "--delete-history").output == "deleted\n")
            let missing = await self.run(gateway, "rooms", "none")
            #expect(missing.code == 66 && missing.errors.hasSuffix("; 'sluice rooms' lists the rooms\n"))
        }
    }

    @Test func membersAreModerated() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            #expect(
                await self.run(gateway, "rooms", "kept:a", "--kick", "--user", "bob").output == "removed 0 clients\n")
            let ban = await self.run(gateway, "rooms", "kept:a", "--ban", "ada", "--for", "2h")
            #expect(ban.code == 0 && ban.output.hasPrefix("ban           ada in kept:a for "), "\(ban.output)")
            #expect(try await ada.receive()["push"]?["unsubscribe"] != nil)
            #expect(await self.run(gateway, "rooms", "kept:a", "--restrictions").output.hasPrefix("ban "))
            #expect(await self.run(gateway, "rooms", "kept:a", "--unban", "ada").output == "lifted\n")
            #expect(await self.run(gateway, "rooms", "kept:a", "--unban", "ada").code == 66)
            #expect(
                await self.run(gateway, "users", "ada", "--mute").output.hasPrefix("mute          ada in every room"))
            let user = await self.run(gateway, "users", "ada").output
            #expect(user.contains("client \(ada.client), in no room\nmute          in every room for "), "\(user)")
            #expect(await self.run(gateway, "users", "ada", "--send", "hi").output == "sent to 1 client\n")
            #expect(try await ada.receive()["push"]?["message"]?["data"]?.string == "hi")
            let end = await self.run(gateway, "users", "ada", "--disconnect", "--code", "4501", "--reason", "over")
            #expect(end.output == "disconnected 1 client\n")
            #expect(try await ada.end() == "4501 over")
        }
    }

    @Test func usersAreListed() async throws {
        try await RoomProbe.run { gateway in
            _ = try await RoomProbe(gateway, user: "ada", in: "kept:a", "plain")
            _ = try await RoomProbe(gateway, user: "ada")
            _ = try await RoomProbe(gateway, user: "bob", in: "plain")
            func table(_ words: String...) async -> [[String]] {
                let run = await CommandHost().run(["users"] + words + ["--control", gateway.control])
                #expect(run.code == 0 && run.errors == "", "\(run.errors)")
                return run.lines.map {
                    $0.split(separator: " ", maxSplits: 2).map { $0.trimmingCharacters(in: .whitespaces) }
                }
            }
            let all = await table()
            #expect(all.first == ["USER", "CONNECTIONS", "NODES  ROOMS"])
            #expect(all.dropFirst() == [["ada", "2", "-      kept:a, plain"], ["bob", "1", "-      plain"]])
            #expect(await table("--pattern", "b*").last == ["bob", "1", "-      plain"])
            #expect(await table("--room", "kept:a").count == 2)
            #expect(await table("--pattern", "x*") == [])
            let json = await self.run(gateway, "users", "--json")
            #expect(try json.documents[0]["items"]?.items.map { $0["id"]?.string } == ["ada", "bob"])
            let missing = await self.run(gateway, "users", "eve")
            #expect(
                missing.code == 66 && missing.errors.hasSuffix("; 'sluice users' lists the users who are connected\n"))
        }
    }

    @Test func tailPrintsWhatIsPublished() async throws {
        try await RoomProbe.run { gateway in
            let ada = try await RoomProbe(gateway, user: "ada", in: "kept:a")
            for number in 1...3 {
                let body = #"{"id":\#(number + 8),"publish":{"channel":"kept:a","data":{"n":\#(number)}}}"#
                _ = try await ada.command(body)
            }
            let tail = await self.run(gateway, "tail", "kept:a", "--last", "2", "--count", "2")
            #expect(tail.code == 0 && tail.errors == "")
            #expect(tail.lines.map { $0.dropFirst(12) } == [#"  2  ada  {"n":2}"#, #"  3  ada  {"n":3}"#])
            let json = await self.run(gateway, "tail", "kept:a", "--last", "1", "--count", "1", "--json")
            #expect(try json.documents[0]["publication"]?["data"] == ["n": 3])
            let gap = await self.run(gateway, "tail", "kept:a", "--after", "other.1", "--count", "3")
            // The position may as well be behind the newest message.
            let text = "messages are missing: the room's history does not continue from that position"
            #expect(gap.code == 0 && gap.errors == "sluice: \(text)\n")
        }
    }

    @Test(arguments: [
        (["rooms", "--kick"], "NAME: required with --kick"),
        (["rooms", "x", "--kick", "--ban", "u"], "--kick: cannot be combined with --ban"),
        (["rooms", "x", "--pattern", "y"], "--pattern: cannot be combined with NAME"),
        (["rooms", "x", "--for", "1h"], "--for: requires --ban or --mute"),
        (["rooms", "x", "--last", "1"], "--last: requires --history"),
        (["rooms", "x", "--ban", "u", "--for", "0s"], "--for: expected "),
        (["users", "x", "--ban", "--mute"], "--ban: cannot be combined with --mute"),
        (["users", "x", "--code", "4000"], "--code: requires --disconnect"),
        (["users", "--ban"], "ID: required with --ban"), (["users", "--for", "1h"], "ID: required with --for"),
        (["users", "x", "--room", "y"], "--room: cannot be combined with ID"),
        (["users", "x", "--node", "b"], "--node: cannot be combined with ID"),
        (["publish", "x", "y", "--binary"], "--binary: requires standard input"),
        (["publish", "x", "y", "--tag", "z"], "--tag: expected NAME=VALUE"),
        (["rooms", "x", "--kick", "--user", ""], "--user: is empty; give a value, or leave --user out"),
        (["rooms", "x", "--ban", ""], "--ban: is empty"), (["rooms", "x", "--unmute", ""], "--unmute: is empty"),
        (["rooms", "--pattern", ""], "--pattern: is empty"), (["users", "--pattern", ""], "--pattern: is empty"),
        (["users", "--room", ""], "--room: is empty"), (["publish", "", "y"], "ROOM: is empty"),
        (["tail", ""], "ROOM: is empty"),
        (["tail", "x", "--last", "1", "--after", "a.1"], "--last: cannot be combined with --after"),
    ])
    func invalidOptionsAreRefused(_ words: [String], _ error: String) async {
        let run = await CommandHost().run(words)
        #expect(run.code == 64 && run.errors.hasPrefix(error), "\(run.errors)")
    }
}
