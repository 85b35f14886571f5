import ControlAPI
import ControlPlane
import Foundation
import GatewayTestSupport
import Testing

@Suite("Commands for a running gateway", .timeLimit(.minutes(5)))
struct ControlCommandTests {
    /// Runs `sluice` with these words and the gateway's address.
    private static func run(
        _ gateway: LoopbackGateway, _ words: String..., input: [String] = []
    ) async -> CommandRun {
        await CommandHost(input: input.map { Array($0.utf8) }).run(words + ["--control", gateway.control])
    }

    /// Opens a connection.
    private static func open(_ gateway: LoopbackGateway, _ url: String, _ words: String...) async throws -> String {
        let run = await CommandHost().run(["open", url, "--control", gateway.control] + words)
        try #require(run.code == 0, "\(run.errors)")
        return try #require(run.lines.first)
    }

    // MARK: The gateway's address

    @Test func unreachableControlPlaneIsUnavailable() async {
        let run = await CommandRun.of("ls", "--control", "http://127.0.0.1:1")
        #expect(run.code == 69 && run.output == "")
        #expect(run.errors.hasPrefix("sluice: no control plane at http://127.0.0.1:1: "))
        #expect(run.errors.hasSuffix("; start one with 'sluice serve', or pass its address with --control\n"))
    }

    @Test func addressAndTokenComeFromTheEnvironment() async throws {
        try await LoopbackGateway.run { gateway in
            let run = await CommandRun.of("health", variables: ["SLUICE_CONTROL": gateway.control])
            #expect(run.code == 0 && run.output == "ok: ready\n")
            let invalid = await CommandRun.of("health", variables: ["SLUICE_CONTROL": "x y"])
            #expect(invalid.code == 64)
            #expect(invalid.errors.hasPrefix("SLUICE_CONTROL: expected "))
            let token = await CommandRun.of(
                "ls", variables: ["SLUICE_CONTROL": gateway.control, "SLUICE_TOKEN": "a b"])
            #expect(token.code == 64)
            #expect(
                token.errors
                    == "SLUICE_TOKEN: expected a token of letters, digits and -._~+/=; 'sluice token' creates one\n")
        }
    }

    @Test func tokenDecidesWhatACommandMayDo() async throws {
        let made = await CommandRun.of("token", "--name", "watch", "--scope", "read", "--json")
        let document = try made.documents[0]
        let token = try #require(document["token"]?.string)
        let digest = try #require(document["hash"]?.string)
        let configuration =
            LoopbackGateway.echo + "  tokens:\n    - {name: watch, hash: '\(digest)', scopes: [read]}\n"
        try await LoopbackGateway.run(configuration) { gateway in
            #expect(await Self.run(gateway, "ls").code == 77)
            #expect(await Self.run(gateway, "ls", "--token", token).code == 0)
            let refused = await Self.run(gateway, "open", gateway.echo, "--token", token)
            #expect(refused.code == 77 && refused.output == "")
            #expect(refused.errors.hasPrefix("sluice: "))
        }
    }

    // MARK: health

    @Test(arguments: [("starting", 75, 0), ("ready", 0, 0), ("draining", 75, 0)])
    func healthIsTheExitCode(_ phase: String, _ code: Int, _ live: Int) async throws {
        try await LoopbackGateway.run { gateway in
            gateway.phase = try #require(.init(rawValue: phase))
            #expect(await Self.run(gateway, "health").code == Int32(code))
            let liveness = await Self.run(gateway, "health", "--live")
            #expect(liveness.code == Int32(live) && liveness.output == "ok: \(phase)\n")
        }
    }

    // MARK: Connections

    @Test func connectionIsOpenedUsedAndClosed() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.echo, "--label", "team=blue", "--description", "a test")
            let sent = await Self.run(gateway, "send", id, "grüße")
            #expect(sent.code == 0 && sent.output == "sent 7 bytes\n")
            let received = await Self.run(gateway, "receive", id)
            #expect(received.code == 0 && received.output == "grüße\n")
            let ping = await Self.run(gateway, "ping", id, "--count", "2", "--interval", "0s")
            #expect(ping.code == 0 && ping.lines.count == 2)
            #expect(ping.lines.allSatisfy { $0.hasPrefix("\(id): pong after ") })
            let closed = await Self.run(gateway, "close", id, "--code", "4001", "--reason", "enough")
            #expect(closed.code == 0)
            #expect(closed.output.hasPrefix("\(id) closed") && closed.output.contains("4001"))
            let late = await Self.run(gateway, "send", id, "late")
            #expect(late.code == 66 && late.errors.hasPrefix("sluice: "))
        }
    }

    @Test func standardInputIsOneMessage() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.echo)
            #expect(await Self.run(gateway, "send", id, input: ["one ", "two\n"]).output == "sent 8 bytes\n")
            #expect(await Self.run(gateway, "receive", id).output.hasPrefix("one two\n"))
            #expect(await Self.run(gateway, "send", id, "00 ff 7f", "--hex").output == "sent 3 bytes\n")
            #expect(await Self.run(gateway, "receive", id).bytes.starts(with: [0x00, 0xFF, 0x7F]))
            let run = await CommandHost(input: [[0xFF]]).run(["send", id, "--control", gateway.control])
            #expect(run.code == 65)
            #expect(
                run.errors
                    == "sluice: standard input is not valid UTF-8, which a text message requires; use --binary\n")
        }
    }

    @Test func receiveWithoutDataTimesOut() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.echo)
            let run = await Self.run(gateway, "receive", id, "--timeout", "10ms")
            #expect(run.code == 75 && run.output == "" && run.errors.contains("nothing received"))
        }
    }

    @Test func closedStandardOutputIsAnError() async throws {
        try await LoopbackGateway.run { gateway in
            let run = await CommandHost(acceptsOutput: false).run(["ls", "--control", gateway.control])
            #expect(run.code == 74)
            #expect(run.errors == "sluice: standard output was closed by its reader\n")
        }
    }

    @Test func listIsATableOrPagesOfJSON() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw, "--label", "team=blue")
            let list = await Self.run(gateway, "ls", "--label", "team=blue")
            #expect(list.code == 0 && list.lines.count == 2)
            #expect(list.lines[1].split(separator: " ").first.map(String.init) == id)
            #expect(list.lines[1].contains("stream") && list.lines[1].contains("team=blue"))
            #expect(!list.output.contains("\u{1B}"))
            let empty = await Self.run(gateway, "ls", "--label", "team=red")
            #expect(empty.code == 0 && empty.lines.count == 1)
            let json = await Self.run(gateway, "ls", "--label", "team=blue", "--json", "--fields", "id,labels")
            #expect(
                try json.documents
                    == [JSONValue(text: #"{"items":[{"id":"\#(id)","labels":{"team":"blue"}}]}"#)])
            let invalid = await Self.run(gateway, "ls", "--sort", "size")
            #expect(invalid.code == 64 && invalid.errors.hasPrefix("sluice: "))
        }
    }

    @Test func watchedListEndsSuccessfullyAtAnInterrupt() async throws {
        try await LoopbackGateway.run { gateway in
            let host = CommandHost()
            host.interrupt()
            let run = await host.run(["ls", "--watch", "--control", gateway.control])
            #expect(run.code == 0, "\(run.errors)")
        }
    }

    @Test func shownConnectionHasALinePerProperty() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.echo)
            let shown = await Self.run(gateway, "show", id)
            #expect(shown.code == 0 && shown.lines.count > 8)
            #expect(shown.output.contains(gateway.echo) && shown.output.contains("open"))
            _ = await Self.run(gateway, "close", id)
            let closed = await Self.run(gateway, "show", id)
            #expect(closed.code == 66 && closed.lines.count > 4)
            #expect(closed.errors.hasSuffix("'sluice ls --state closed' lists closed connections\n"))
            let unknown = await Self.run(gateway, "show", "999")
            #expect(unknown.code == 66 && unknown.output == "")
            let json = await Self.run(gateway, "show", "999", "--json")
            #expect(json.code == 66 && json.errors == unknown.errors)
            #expect(try json.documents[0]["code"]?.string == "unknown-connection")
        }
    }

    @Test func annotationsAreSet() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw)
            let set = await Self.run(
                gateway, "set", id, "--description", "a customer", "--priority", "0.25", "--label", "a=b", "--json")
            #expect(set.code == 0)
            let one = try set.documents[0]
            #expect(one["description"]?.string == "a customer" && one["labels"] == JSONValue(text: #"{"a":"b"}"#))
            let cleared = await Self.run(gateway, "set", id, "--no-labels", "--json")
            #expect(try cleared.documents[0]["labels"] != one["labels"])
        }
    }

    @Test func connectionIsSuspendedResumedAndHalfClosed() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw)
            #expect(await Self.run(gateway, "suspend", id).output == "\(id) suspended\n")
            let queued = await Self.run(gateway, "send", id, "abc", "--timeout", "10ms")
            #expect(queued.output == "queued 3 bytes, 3 queued; the connection is suspended\n")
            #expect(await Self.run(gateway, "resume", id).output == "\(id) resumed\n")
            #expect(await Self.run(gateway, "close", id, "--write").output == "\(id) closed for writing\n")
        }
    }

    @Test func severalConnectionsAreClosedAndTheFirstFailureDecides() async throws {
        try await LoopbackGateway.run { gateway in
            let first = try await Self.open(gateway, gateway.raw)
            let second = try await Self.open(gateway, gateway.raw)
            let run = await Self.run(gateway, "close", first, "999", second, "--abort")
            #expect(run.code == 66)
            #expect(run.lines.map { String($0.prefix { $0 != " " }) } == [first, second])
            #expect(run.errors.split(separator: "\n").count == 1)
        }
    }

    @Test func openFailuresHaveTheirOwnExitCodes() async throws {
        try await LoopbackGateway.run { gateway in
            let cases: [(String, Int32)] = [
                ("nonsense", 64), ("tcp://127.0.0.1:1", 80), ("tcp://8.8.8.8:53", 77),
                ("ws://127.0.0.1:\(gateway.port("web"))/nothing", 80),
            ]
            for (url, code) in cases {
                let run = await Self.run(gateway, "open", url)
                #expect(run.code == code, "\(url): \(run.errors)")
                #expect(run.output == "" && run.errors.hasPrefix("sluice: ") && run.lines.isEmpty)
            }
            let started = await Self.run(gateway, "open", gateway.echo, "--no-wait")
            #expect(started.code == 0 && started.lines.count == 1)
        }
    }

    @Test func tunnelIsOpenedBetweenTwoURLs() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw, "--to", gateway.echo)
            let shown = await Self.run(gateway, "show", id, "--json")
            #expect(try shown.documents[0]["tunnelPartner"]?.string == id + "u")
        }
    }

    @Test func streamIsNotSecuredByAPeerWithoutTLS() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw)
            let run = await Self.run(gateway, "secure", id, "--insecure", "--timeout", "5s")
            #expect(run.code == 80, "\(run.errors)")
        }
    }

    // MARK: Traffic

    @Test func attachedInputIsEchoed() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.echo)
            let run = await Self.run(gateway, "attach", id, input: ["one\n", "two\n"])
            #expect(run.code == 0, "\(run.errors)")
            #expect(run.output == "one\ntwo\n")
            #expect(await Self.run(gateway, "show", id).code == 0)
        }
    }

    @Test func attachToAnUnknownOrRelayedConnectionFails() async throws {
        try await LoopbackGateway.run { gateway in
            #expect(await Self.run(gateway, "attach", "999").code == 66)
            _ = try await Self.open(gateway, gateway.echo)
            let list = await Self.run(gateway, "ls", "--direction", "accepted", "--json", "--fields", "id")
            let accepted = try #require(try list.documents[0]["items"]?.items.first?["id"]?.string)
            let run = await Self.run(gateway, "attach", accepted)
            #expect(run.code == 81, "\(run.errors)")
        }
    }

    // MARK: Events

    @Test func eventsArePrintedALineEach() async throws {
        try await LoopbackGateway.run { gateway in
            let id = try await Self.open(gateway, gateway.raw)
            _ = await Self.run(gateway, "close", id)
            let words = ["events", "--after", "0", "--connection", id, "--count", "2", "--control", gateway.control]
            let run = await CommandHost().run(words)
            #expect(run.code == 0 && run.lines.count == 2, "\(run.output) \(run.errors)")
            #expect(run.lines[0].contains("opened") && run.lines[1].contains("closed"))
            let json = await CommandHost().run(words + ["--json"])
            #expect(try json.documents.map { $0["type"]?.string } == ["opened", "closed"])
            #expect(try json.documents.map { $0["connection"]?.string } == [id, id])
            let invalid = await Self.run(gateway, "events", "--type", "nonsense")
            #expect(invalid.code == 64, "\(invalid.errors)")
        }
    }

    // MARK: drain

    @Test func drainIsPreviewedAndFollowedToItsEnd() async throws {
        try await LoopbackGateway.run { gateway in
            for _ in 0..<3 { _ = try await Self.open(gateway, gateway.raw, "--label", "of=test") }
            let preview = await Self.run(gateway, "drain", "--label", "of=test", "--preview")
            #expect(preview.code == 0 && preview.output.hasPrefix("3 connections"))
            let run = await Self.run(gateway, "drain", "--label", "of=test", "--abort")
            #expect(run.code == 0, "\(run.errors)")
            #expect(run.lines.count == 2 && run.lines[0].contains(": 3 connections"))
            #expect(run.lines[1].contains("ended: 3 of 3 notified, 0 remaining"))
            let background = await Self.run(gateway, "drain", "--label", "of=test", "--background")
            #expect(background.code == 0 && background.lines.count == 1)
        }
    }

    @Test func interruptedDrainIsCancelled() async throws {
        try await LoopbackGateway.run { gateway in
            for _ in 0..<3 { _ = try await Self.open(gateway, gateway.raw, "--label", "of=test") }
            let host = CommandHost()
            host.interrupt()
            let run = await host.run(["drain", "--label", "of=test", "--rate", "1", "--control", gateway.control])
            #expect(run.code == 130)
            #expect(run.errors.hasSuffix(" is cancelled; connections already notified still close\n"))
        }
    }

    // MARK: Configuration

    @Test func reloadPrintsTheChanges() async throws {
        try await LoopbackGateway.run { gateway in
            let unchanged = await Self.run(gateway, "reload")
            #expect(unchanged.code == 0, "\(unchanged.errors)")
            gateway.setFile(LoopbackGateway.echo.replacing("name: chat", with: "name: talk"))
            let planned = await Self.run(gateway, "reload", "--dry-run")
            #expect(planned.code == 0 && planned.output.contains("/v1/routes/talk"))
            #expect(await Self.run(gateway, "routes", "talk").code == 66)
            #expect(await Self.run(gateway, "reload").code == 0)
            #expect(await Self.run(gateway, "routes", "talk").code == 0)
            gateway.setFile("listeners: 7")
            let refused = await Self.run(gateway, "reload")
            #expect(refused.code == 78 && refused.errors.hasPrefix("sluice: "))
        }
    }

    @Test(arguments: [("listeners", "web"), ("routes", "echo")])
    func entriesAreListedAndShown(_ command: String, _ name: String) async throws {
        try await LoopbackGateway.run { gateway async throws in
            let list = await Self.run(gateway, command)
            #expect(list.code == 0 && list.lines.dropFirst().contains { $0.hasPrefix(name) })
            let one = await Self.run(gateway, command, name)
            #expect(one.code == 0 && one.lines.contains { $0.hasPrefix("name") && $0.hasSuffix(name) })
            let json = await Self.run(gateway, command, name, "--json")
            #expect(try json.documents[0]["name"]?.string == name)
            #expect(await Self.run(gateway, command, "nowhere").code == 66)
        }
    }

    @Test func entryIsPatchedPutAndDeleted() async throws {
        let folder = FileManager.default.temporaryDirectory
        let file = folder.appendingPathComponent("route-\(UUID().uuidString).json")
        try Data(#"{"path":"/new","target":"echo"}"#.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await LoopbackGateway.run { gateway in
            let planned = await Self.run(gateway, "routes", "new", "--put", file.path, "--dry-run")
            #expect(planned.code == 0 && planned.output.contains("/v1/routes/new"))
            #expect(await Self.run(gateway, "routes", "new").code == 66)
            #expect(await Self.run(gateway, "routes", "new", "--put", file.path).code == 0)
            let patched = await Self.run(gateway, "routes", "new", "--patch", #"{"idle-timeout":"1m"}"#)
            #expect(patched.code == 0 && patched.lines.contains { $0.hasPrefix("idle-timeout") && $0.hasSuffix("1m") })
            let invalid = await Self.run(gateway, "routes", "new", "--patch", #"{"idle-timeout":"x"}"#)
            #expect(invalid.code == 78 || invalid.code == 64, "\(invalid.errors)")
            let deleted = await Self.run(gateway, "routes", "new", "--delete")
            #expect(deleted.code == 0 && deleted.output == "")
            #expect(await Self.run(gateway, "upstreams", "nowhere", "--delete").code == 66)
        }
    }

    // MARK: Transfers

    @Test func downloadIsWrittenToStandardOutput() async throws {
        try await LoopbackGateway.run { gateway async throws in
            let run = await Self.run(gateway, "get", gateway.control + "/version")
            #expect(run.code == 0, "\(run.errors)")
            #expect(try run.documents == [JSONValue(text: #"{"name":"sluice","version":"0.1.0","api":"/v1"}"#)])
        }
    }

    @Test func downloadIsWrittenToAFile() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("get-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try await LoopbackGateway.run { gateway async throws in
            let run = await Self.run(gateway, "get", gateway.control + "/version", "-o", file.path)
            #expect(run.code == 0 && run.lines.count == 1, "\(run.errors)")
            #expect(try Data(contentsOf: file).starts(with: Data("{".utf8)))
        }
    }

    @Test func failedTransfersHaveTheirExitCode() async throws {
        try await LoopbackGateway.run { gateway in
            let missing = await Self.run(gateway, "get", gateway.control + "/nothing")
            #expect(missing.code == 80 && missing.output == "" && missing.errors.contains("404"))
            let denied = await Self.run(gateway, "get", "http://8.8.8.8/")
            #expect(denied.code == 77, "\(denied.errors)")
            let unknown = await Self.run(gateway, "get", "--resume", "999")
            #expect(unknown.code == 66)
        }
    }

    @Test func transferInTheBackgroundPrintsItsID() async throws {
        try await LoopbackGateway.run { gateway in
            let run = await Self.run(gateway, "get", gateway.control + "/version", "--background")
            #expect(run.code == 0 && run.lines.count == 1)
            let followed = await Self.run(gateway, "get", "--resume", run.lines[0])
            #expect(followed.code == 0 && followed.output.contains("sluice"), "\(followed.errors)")
        }
    }

    @Test func uploadSendsTheFileAndReportsTheStatus() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("put-\(UUID().uuidString)")
        try Data(#"{"path":"/put","target":"echo"}"#.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await LoopbackGateway.run { gateway in
            let run = await Self.run(
                gateway, "put", file.path, gateway.control + "/v1/routes/put", "-H", "Content-Type: application/json")
            #expect(run.code == 0, "\(run.errors)")
            #expect(await Self.run(gateway, "routes", "put").code == 0)
            let refused = await Self.run(
                gateway, "put", file.path, gateway.control + "/v1/routes/put", "-X", "DELETE", "-H", "If-Match: \"x\"")
            #expect(refused.code == 80, "\(refused.errors)")
        }
    }
}
