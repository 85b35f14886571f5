import ControlAPI
import ControlPlane
import Foundation
import GatewayTestSupport
import Testing

@Suite("Commands for a running gateway", .gateway, .timeLimit(.minutes(5)))
struct ControlCommandTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    /// Runs `sluice` with these words and the gateway's address.
    private func run(_ words: String..., input: [String] = []) async -> CommandRun {
        await CommandHost(input: input.map { Array($0.utf8) }).run(words + ["--control", self.gateway.control])
    }

    /// Opens a connection.
    private func open(_ url: String, _ words: String...) async throws -> String {
        let run = await CommandHost().run(["open", url, "--control", self.gateway.control] + words)
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
        let run = await CommandRun.of("health", variables: ["SLUICE_CONTROL": self.gateway.control])
        #expect(run.code == 0 && run.output == "ok: ready\n")
        let invalid = await CommandRun.of("health", variables: ["SLUICE_CONTROL": "x y"])
        #expect(invalid.code == 64)
        #expect(invalid.errors.hasPrefix("SLUICE_CONTROL: expected "))
        let token = await CommandRun.of(
            "ls", variables: ["SLUICE_CONTROL": self.gateway.control, "SLUICE_TOKEN": "a b"])
        #expect(token.code == 64)
        #expect(
            token.errors
                == "SLUICE_TOKEN: expected a token of letters, digits and -._~+/=; 'sluice token' creates one\n")
    }

    @Test func tokenDecidesWhatACommandMayDo() async throws {
        let made = await CommandRun.of("token", "--name", "watch", "--scope", "read", "--json")
        let document = try made.documents[0]
        let token = try #require(document["token"]?.string)
        let digest = try #require(document["hash"]?.string)
        let configuration =
            LoopbackGateway.echo + "  tokens:\n    - {name: watch, hash: '\(digest)', scopes: [read]}\n"
        try await LoopbackGateway.run(configuration) { gateway in
            #expect(await CommandRun.of("ls", "--control", gateway.control).code == 77)
            #expect(await CommandRun.of("ls", "--control", gateway.control, "--token", token).code == 0)
            let refused = await CommandRun.of("open", gateway.echo, "--control", gateway.control, "--token", token)
            #expect(refused.code == 77 && refused.output == "")
            #expect(refused.errors.hasPrefix("sluice: "))
        }
    }

    // MARK: health

    @Test(arguments: [("starting", 75, 0), ("ready", 0, 0), ("draining", 75, 0)])
    func healthIsTheExitCode(_ phase: String, _ code: Int, _ live: Int) async throws {
        self.gateway.phase = try #require(.init(rawValue: phase))
        #expect(await self.run("health").code == Int32(code))
        let liveness = await self.run("health", "--live")
        #expect(liveness.code == Int32(live) && liveness.output == "ok: \(phase)\n")
    }

    // MARK: Connections

    @Test func connectionIsOpenedUsedAndClosed() async throws {
        let id = try await self.open(self.gateway.echo, "--label", "team=blue", "--description", "a test")
        let sent = await self.run("send", id, "grüße")
        #expect(sent.code == 0 && sent.output == "sent 7 bytes\n")
        let received = await self.run("receive", id)
        #expect(received.code == 0 && received.output == "grüße\n")
        let ping = await self.run("ping", id, "--count", "2", "--interval", "0s")
        #expect(ping.code == 0 && ping.lines.count == 2)
        #expect(ping.lines.allSatisfy { $0.hasPrefix("\(id): pong after ") })
        let closed = await self.run("close", id, "--code", "4001", "--reason", "enough")
        #expect(closed.code == 0)
        #expect(closed.output.hasPrefix("\(id) closed") && closed.output.contains("4001"))
        let late = await self.run("send", id, "late")
        #expect(late.code == 66 && late.errors.hasPrefix("sluice: "))
    }

    @Test func standardInputIsOneMessage() async throws {
        let id = try await self.open(self.gateway.echo)
        #expect(await self.run("send", id, input: ["one ", "two\n"]).output == "sent 8 bytes\n")
        #expect(await self.run("receive", id).output.hasPrefix("one two\n"))
        #expect(await self.run("send", id, "00 ff 7f", "--hex").output == "sent 3 bytes\n")
        #expect(await self.run("receive", id).bytes.starts(with: [0x00, 0xFF, 0x7F]))
        let run = await CommandHost(input: [[0xFF]]).run(["send", id, "--control", self.gateway.control])
        #expect(run.code == 65)
        #expect(
            run.errors
                == "sluice: standard input is not valid UTF-8, which a text message requires; use --binary\n")
    }

    @Test func receiveWithoutDataTimesOut() async throws {
        let id = try await self.open(self.gateway.echo)
        let run = await self.run("receive", id, "--timeout", "10ms")
        #expect(run.code == 75 && run.output == "" && run.errors.contains("nothing received"))
    }

    @Test func closedStandardOutputIsAnError() async throws {
        let run = await CommandHost(acceptsOutput: false).run(["ls", "--control", self.gateway.control])
        #expect(run.code == 74)
        #expect(run.errors == "sluice: standard output was closed by its reader\n")
    }

    @Test func listIsATableOrPagesOfJSON() async throws {
        let id = try await self.open(self.gateway.raw, "--label", "team=blue")
        let list = await self.run("ls", "--label", "team=blue")
        #expect(list.code == 0 && list.lines.count == 2)
        #expect(list.lines[1].split(separator: " ").first.map(String.init) == id)
        #expect(list.lines[1].contains("stream") && list.lines[1].contains("team=blue"))
        #expect(!list.output.contains("\u{1B}"))
        let empty = await self.run("ls", "--label", "team=red")
        #expect(empty.code == 0 && empty.lines.count == 1)
        let json = await self.run("ls", "--label", "team=blue", "--json", "--fields", "id,labels")
        #expect(
            try json.documents
                == [JSONValue(text: #"{"items":[{"id":"\#(id)","labels":{"team":"blue"}}]}"#)])
        let invalid = await self.run("ls", "--sort", "size")
        #expect(invalid.code == 64 && invalid.errors.hasPrefix("sluice: "))
    }

    @Test func watchedListEndsSuccessfullyAtAnInterrupt() async throws {
        let host = CommandHost()
        host.interrupt()
        let run = await host.run(["ls", "--watch", "--control", self.gateway.control])
        #expect(run.code == 0, "\(run.errors)")
    }

    @Test func shownConnectionHasALinePerProperty() async throws {
        let id = try await self.open(self.gateway.echo)
        let shown = await self.run("show", id)
        #expect(shown.code == 0 && shown.lines.count > 8)
        #expect(shown.output.contains(self.gateway.echo) && shown.output.contains("open"))
        _ = await self.run("close", id)
        let closed = await self.run("show", id)
        #expect(closed.code == 66 && closed.lines.count > 4)
        #expect(closed.errors.hasSuffix("'sluice ls --state closed' lists closed connections\n"))
        let unknown = await self.run("show", "999")
        #expect(unknown.code == 66 && unknown.output == "")
        let json = await self.run("show", "999", "--json")
        #expect(json.code == 66 && json.errors == unknown.errors)
        #expect(try json.documents[0]["code"]?.string == "unknown-connection")
    }

    @Test func annotationsAreSet() async throws {
        let id = try await self.open(self.gateway.raw)
        let set = await self.run(
            "set", id, "--description", "a customer", "--priority", "0.25", "--label", "a=b", "--json")
        #expect(set.code == 0)
        let one = try set.documents[0]
        #expect(one["description"]?.string == "a customer" && one["labels"] == JSONValue(text: #"{"a":"b"}"#))
        let cleared = await self.run("set", id, "--no-labels", "--json")
        #expect(try cleared.documents[0]["labels"] != one["labels"])
    }

    @Test func connectionIsSuspendedResumedAndHalfClosed() async throws {
        let id = try await self.open(self.gateway.raw)
        #expect(await self.run("suspend", id).output == "\(id) suspended\n")
        let queued = await self.run("send", id, "abc", "--timeout", "10ms")
        #expect(queued.output == "queued 3 bytes, 3 queued; the connection is suspended\n")
        #expect(await self.run("resume", id).output == "\(id) resumed\n")
        #expect(await self.run("close", id, "--write").output == "\(id) closed for writing\n")
    }

    @Test func severalConnectionsAreClosedAndTheFirstFailureDecides() async throws {
        let first = try await self.open(self.gateway.raw)
        let second = try await self.open(self.gateway.raw)
        let run = await self.run("close", first, "999", second, "--abort")
        #expect(run.code == 66)
        #expect(run.lines.map { String($0.prefix { $0 != " " }) } == [first, second])
        #expect(run.errors.split(separator: "\n").count == 1)
    }

    @Test func openFailuresHaveTheirOwnExitCodes() async throws {
        let cases: [(String, Int32)] = [
            ("nonsense", 64), ("tcp://127.0.0.1:1", 80), ("tcp://8.8.8.8:53", 77),
            ("ws://127.0.0.1:\(self.gateway.port("web"))/nothing", 80),
        ]
        for (url, code) in cases {
            let run = await self.run("open", url)
            #expect(run.code == code, "\(url): \(run.errors)")
            #expect(run.output == "" && run.errors.hasPrefix("sluice: ") && run.lines.isEmpty)
        }
        let started = await self.run("open", self.gateway.echo, "--no-wait")
        #expect(started.code == 0 && started.lines.count == 1)
    }

    @Test func tunnelIsOpenedBetweenTwoURLs() async throws {
        let id = try await self.open(self.gateway.raw, "--to", self.gateway.echo)
        let shown = await self.run("show", id, "--json")
        #expect(try shown.documents[0]["tunnelPartner"]?.string == id + "u")
    }

    @Test func streamIsNotSecuredByAPeerWithoutTLS() async throws {
        let id = try await self.open(self.gateway.raw)
        let run = await self.run("secure", id, "--insecure", "--timeout", "100s")
        #expect(run.code == 80, "\(run.errors)")
    }

    // MARK: Traffic

    @Test func attachedInputIsEchoed() async throws {
        let id = try await self.open(self.gateway.echo)
        let run = await self.run("attach", id, "--wait", "10s", input: ["one\n", "two\n"])
        #expect(run.code == 0, "\(run.errors)")
        #expect(run.output == "one\ntwo\n")
        #expect(await self.run("show", id).code == 0)
    }

    @Test func attachToAnUnknownOrRelayedConnectionFails() async throws {
        #expect(await self.run("attach", "999").code == 66)
        _ = try await self.open(self.gateway.echo)
        let list = await self.run("ls", "--direction", "accepted", "--json", "--fields", "id")
        let accepted = try #require(try list.documents[0]["items"]?.items.first?["id"]?.string)
        let run = await self.run("attach", accepted)
        #expect(run.code == 81, "\(run.errors)")
    }

    // MARK: Events

    @Test func eventsArePrintedALineEach() async throws {
        let id = try await self.open(self.gateway.raw)
        _ = await self.run("close", id)
        let words = ["events", "--after", "0", "--connection", id, "--count", "2", "--control", self.gateway.control]
        let run = await CommandHost().run(words)
        #expect(run.code == 0 && run.lines.count == 2, "\(run.output) \(run.errors)")
        #expect(run.lines[0].contains("opened") && run.lines[1].contains("closed"))
        let json = await CommandHost().run(words + ["--json"])
        #expect(try json.documents.map { $0["type"]?.string } == ["opened", "closed"])
        #expect(try json.documents.map { $0["connection"]?.string } == [id, id])
        let invalid = await self.run("events", "--type", "nonsense")
        #expect(invalid.code == 64, "\(invalid.errors)")
    }

    // MARK: drain

    @Test func drainIsPreviewedAndFollowedToItsEnd() async throws {
        for _ in 0..<3 { _ = try await self.open(self.gateway.raw, "--label", "of=test") }
        let preview = await self.run("drain", "--label", "of=test", "--preview")
        #expect(preview.code == 0 && preview.output.hasPrefix("3 connections"))
        let run = await self.run("drain", "--label", "of=test", "--abort")
        #expect(run.code == 0, "\(run.errors)")
        #expect(run.lines.count == 2 && run.lines[0].contains(": 3 connections"))
        #expect(run.lines[1].contains("ended: 3 of 3 notified, 0 remaining"))
        let background = await self.run("drain", "--label", "of=test", "--background")
        #expect(background.code == 0 && background.lines.count == 1)
    }

    @Test func interruptedDrainIsCancelled() async throws {
        // More than a slow machine drains before it is interrupted.
        for _ in 0..<30 { _ = try await self.open(self.gateway.raw, "--label", "of=test") }
        let host = CommandHost()
        host.interrupt()
        let run = await host.run(["drain", "--label", "of=test", "--rate", "1", "--control", self.gateway.control])
        #expect(run.code == 130)
        #expect(run.errors.hasSuffix(" is cancelled; connections already notified still close\n"))
    }

    // MARK: Configuration

    @Test func reloadPrintsTheChanges() async throws {
        let unchanged = await self.run("reload")
        #expect(unchanged.code == 0, "\(unchanged.errors)")
        self.gateway.setFile(LoopbackGateway.echo.replacing("name: chat", with: "name: talk"))
        let planned = await self.run("reload", "--dry-run")
        #expect(planned.code == 0 && planned.output.contains("/v1/routes/talk"))
        #expect(await self.run("routes", "talk").code == 66)
        #expect(await self.run("reload").code == 0)
        #expect(await self.run("routes", "talk").code == 0)
        self.gateway.setFile("listeners: 7")
        let refused = await self.run("reload")
        #expect(refused.code == 78 && refused.errors.hasPrefix("sluice: "))
    }

    @Test(arguments: [("listeners", "web"), ("routes", "echo")])
    func entriesAreListedAndShown(_ command: String, _ name: String) async throws {
        let list = await self.run(command)
        #expect(list.code == 0 && list.lines.dropFirst().contains { $0.hasPrefix(name) })
        let one = await self.run(command, name)
        #expect(one.code == 0 && one.lines.contains { $0.hasPrefix("name") && $0.hasSuffix(name) })
        let json = await self.run(command, name, "--json")
        #expect(try json.documents[0]["name"]?.string == name)
        #expect(await self.run(command, "nowhere").code == 66)
    }

    @Test func entryIsPatchedPutAndDeleted() async throws {
        let folder = FileManager.default.temporaryDirectory
        let file = folder.appendingPathComponent("route-\(UUID().uuidString).json")
        try Data(#"{"path":"/new","target":"echo"}"#.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let planned = await self.run("routes", "new", "--put", file.path, "--dry-run")
        #expect(planned.code == 0 && planned.output.contains("/v1/routes/new"))
        #expect(await self.run("routes", "new").code == 66)
        #expect(await self.run("routes", "new", "--put", file.path).code == 0)
        let patched = await self.run("routes", "new", "--patch", #"{"idle-timeout":"1m"}"#)
        #expect(patched.code == 0 && patched.lines.contains { $0.hasPrefix("idle-timeout") && $0.hasSuffix("1m") })
        let invalid = await self.run("routes", "new", "--patch", #"{"idle-timeout":"x"}"#)
        #expect(invalid.code == 78 || invalid.code == 64, "\(invalid.errors)")
        let deleted = await self.run("routes", "new", "--delete")
        #expect(deleted.code == 0 && deleted.output == "")
        #expect(await self.run("upstreams", "nowhere", "--delete").code == 66)
    }

    // MARK: Transfers

    @Test func downloadIsWrittenToStandardOutput() async throws {
        let run = await self.run("get", self.gateway.control + "/version")
        #expect(run.code == 0, "\(run.errors)")
        #expect(try run.documents == [JSONValue(text: #"{"name":"sluice","version":"0.1.0","api":"/v1"}"#)])
    }

    @Test func downloadIsWrittenToAFile() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("get-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let run = await self.run("get", self.gateway.control + "/version", "-o", file.path)
        #expect(run.code == 0 && run.lines.count == 1, "\(run.errors)")
        #expect(try Data(contentsOf: file).starts(with: Data("{".utf8)))
    }

    @Test func failedTransfersHaveTheirExitCode() async throws {
        let missing = await self.run("get", self.gateway.control + "/nothing")
        #expect(missing.code == 80 && missing.output == "" && missing.errors.contains("404"))
        let denied = await self.run("get", "http://8.8.8.8/")
        #expect(denied.code == 77, "\(denied.errors)")
        let unknown = await self.run("get", "--resume", "999")
        #expect(unknown.code == 66)
    }

    @Test func transferInTheBackgroundPrintsItsID() async throws {
        let run = await self.run("get", self.gateway.control + "/version", "--background")
        #expect(run.code == 0 && run.lines.count == 1)
        let followed = await self.run("get", "--resume", run.lines[0])
        #expect(followed.code == 0 && followed.output.contains("sluice"), "\(followed.errors)")
    }

    @Test func uploadSendsTheFileAndReportsTheStatus() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("put-\(UUID().uuidString)")
        try Data(#"{"path":"/put","target":"echo"}"#.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let run = await self.run(
            "put", file.path, self.gateway.control + "/v1/routes/put", "-H",
            "Content-Type: application/json")
        #expect(run.code == 0, "\(run.errors)")
        #expect(await self.run("routes", "put").code == 0)
        let refused = await self.run(
            "put", file.path, self.gateway.control + "/v1/routes/put", "-X", "DELETE", "-H",
            "If-Match: \"x\"")
        #expect(refused.code == 80, "\(refused.errors)")
    }
}
