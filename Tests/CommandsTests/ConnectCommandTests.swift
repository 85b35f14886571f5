import ControlAPI
import GatewayTestSupport
import Testing

@Suite("The connect command", .gateway, .timeLimit(.minutes(5)))
struct ConnectCommandTests {
    private let gateway: LoopbackGateway

    init() throws {
        self.gateway = try #require(LoopbackGateway.current)
    }

    /// After the end of the input, the command waits for answers, whatever else the machine has to do.
    private static let patience = ["--wait", "10s"]

    private static func run(
        _ words: String..., input: [String] = []
    ) async -> CommandRun {
        await CommandHost(input: input.map { Array($0.utf8) }).run(["connect"] + words)
    }

    private func runEcho(_ words: String..., input: [String]) async -> CommandRun {
        let host = CommandHost(input: input.map { Array($0.utf8) })
        return await host.run(["connect", self.gateway.echo] + words + Self.patience)
    }

    // MARK: Proxies

    @Test(arguments: ["http_proxy", "HTTP_PROXY", "all_proxy"])
    func proxyOfTheEnvironmentIsForLoopbackToo(_ variable: String) async {
        let run = await CommandRun.of("connect", "ws://127.0.0.1:9/", variables: [variable: "ftp://proxy.example"])
        #expect(run.code == 64 && run.errors.contains(variable))
    }

    // MARK: Messages of a WebSocket

    @Test func eachLineIsATextMessageAndEachMessageALine() async throws {
        let run = await self.runEcho(input: ["one\ntw", "o\r\ngrüße"])
        #expect(run.code == 0 && run.errors == "")
        #expect(run.output == "one\ntwo\ngrüße\n")
    }

    @Test func eachReadIsABinaryMessageWithoutANewline() async throws {
        let words = ["connect", self.gateway.echo, "--binary"] + Self.patience
        let run = await CommandHost(input: [[0x00, 0xFF], [0x0A]]).run(words)
        #expect(run.code == 0 && run.bytes == [0x00, 0xFF, 0x0A])
    }

    @Test func binaryLinesAreMessages() async throws {
        let run = await self.runEcho("--binary", "--lines", "--json", input: ["a\nb\n"])
        #expect(run.code == 0)
        let data = try run.documents.filter { $0["event"]?.string == "data" }.map { $0["data"]?.string }
        #expect(data == ["YQ==", "Yg=="])
    }

    @Test func oneSendsTheWholeInputAndEndsAfterTheReply() async throws {
        let run = await Self.run(self.gateway.echo, "--one", input: ["two\nli", "nes\n"])
        #expect(run.code == 0 && run.output == "two\nlines\n")
    }

    @Test func missingReplyIsAFailure() async throws {
        let chat = "ws://127.0.0.1:\(self.gateway.port("web"))/chat/empty"
        let run = await Self.run(chat, "--one", "--wait", "10ms", input: ["hello"])
        #expect(run.code == 75 && run.output == "")
        #expect(run.errors == "sluice: no answer was received; try a longer --wait\n")
    }

    @Test func invalidUTF8CannotBeSentAsText() async throws {
        let run = await CommandHost(input: [[0xFF, 0x0A]]).run(["connect", self.gateway.echo])
        #expect(run.code == 65)
        #expect(
            run.errors
                == "sluice: standard input is not valid UTF-8, which a text message requires; use --binary\n")
    }

    @Test func lineLongerThanTheLimitIsNotSent() async throws {
        let run = await Self.run(self.gateway.echo, "--max-message-size", "4", input: ["12345\n"])
        #expect(run.code == 65)
        #expect(
            run.errors
                == "sluice: a line of standard input is longer than 4 bytes; raise --max-message-size, or use --binary\n"
        )
        #expect(await self.runEcho("--max-message-size", "4", input: ["1234\n"]).output == "1234\n")
    }

    @Test func closedOutputIsAnError() async throws {
        let host = CommandHost(input: [Array("one\n".utf8)], endsInput: false, acceptsOutput: false)
        let run = await host.run(["connect", self.gateway.echo])
        #expect(run.code == 74)
        #expect(run.errors == "sluice: standard output was closed by its reader\n")
    }

    // MARK: Streams

    @Test func bytesOfAStreamAreCopiedUnchanged() async throws {
        let run = await CommandHost(input: [[0x00, 0xFF], [0x0D, 0x0A]]).run(["connect", self.gateway.raw])
        #expect(run.code == 0 && run.errors == "" && run.bytes == [0x00, 0xFF, 0x0D, 0x0A])
    }

    @Test func linesOfAStreamEndWithCRLF() async throws {
        let run = await Self.run(self.gateway.raw, "--crlf", "--json", input: ["EHLO a\nQUIT\n"])
        #expect(run.code == 0)
        let lines = try run.documents.filter { $0["event"]?.string == "line" }.map { $0["text"]?.string }
        #expect(lines == ["EHLO a", "QUIT"])
        #expect(try run.documents.last?["sentBytes"]?.integer == 14)
    }

    // MARK: Events

    @Test func eventsAreLinesOfJSON() async throws {
        let run = await self.runEcho("--json", input: ["hello\n"])
        #expect(run.code == 0 && run.errors == "")
        let events = try run.documents
        try #require(events.map { $0["event"]?.string } == ["opened", "text", "closed"])
        #expect(events[0]["url"]?.string == self.gateway.echo && events[0]["status"]?.integer == 101)
        #expect(events[0]["peerAddress"]?.string == "127.0.0.1:\(self.gateway.port("web"))")
        #expect(events[1]["text"]?.string == "hello")
        #expect(events[2]["by"]?.string == "us" && events[2]["code"]?.integer == 1000)
        #expect(events[2]["receivedBytes"]?.integer == 5 && events[2]["sentBytes"]?.integer == 5)
        #expect(events.allSatisfy { $0["at"]?.string?.hasSuffix("Z") == true })
    }

    @Test func failureIsAnEventToo() async throws {
        let run = await Self.run("tcp://127.0.0.1:1", "--json")
        #expect(run.code == 69)
        let event = try #require(try run.documents.first)
        #expect(event["event"]?.string == "failed" && event["kind"]?.string == "no-connection")
        #expect(event["remedy"]?.string == "check that a server listens on port 1")
        #expect(run.errors.hasSuffix("; check that a server listens on port 1\n"))
    }

    @Test func verboseOutputDescribesTheConnection() async throws {
        let run = await self.runEcho("-v", "--close-code", "4001", input: ["a\n"])
        #expect(run.code == 0 && run.output == "a\n")
        let lines = run.errors.split(separator: "\n").map(String.init)
        #expect(lines.first == "* connecting to \(self.gateway.echo)")
        #expect(lines.contains("* HTTP/1.1 101 Switching Protocols"))
        #expect(lines.contains("* subprotocol none, extensions none"))
        #expect(lines.last == "* closed by us with 4001; 1 bytes received, 1 sent")
    }

    // MARK: Failures

    @Test func refusedHandshakeShowsStatusAndRemedy() async throws {
        let run = await Self.run("ws://127.0.0.1:\(self.gateway.port("web"))/nothing")
        #expect(run.code == 77 && run.output == "")
        #expect(run.errors.contains("/nothing: the server refused the opening handshake: 404 Not Found"))
        #expect(run.errors.hasSuffix("; check the path\n"))
    }

    @Test func serverWithoutTLSFailsTheHandshake() async throws {
        let run = await Self.run("tls://127.0.0.1:\(self.gateway.port("raw"))", "-k", "--timeout", "100s")
        #expect(run.code == 79)
        #expect(run.errors.contains("warning: -k: the server's certificate is not verified"))
        #expect(run.errors.contains("TLS failed: "))
    }

    @Test(arguments: [["--wait", "none"], ["--one"]])
    func peersCloseCodeIsAFailure(_ options: [String]) async throws {
        let host = CommandHost(endsInput: false)
        async let running = host.run(["connect", self.gateway.echo] + options)
        var id: String?
        try await self.gateway.wait {
            let list = try await self.gateway.get("/v1/connections?listener=web&state=open&fields=id")
            id = list.json["items"]?.items.first?["id"]?.string
            return id != nil
        }
        _ = try await self.gateway.request("DELETE", "/v1/connections/\(id ?? "")?code=4999&reason=moved")
        let run = await running
        #expect(run.code == 80)
        #expect(run.errors == "sluice: the peer closed with 4999 \"moved\"\n")
    }

    @Test func interruptedConnectionIsClosedCleanly() async throws {
        let host = CommandHost(endsInput: false)
        async let running = host.run(["connect", self.gateway.echo, "--wait", "none", "-v"])
        try await self.gateway.wait { host.errors.contains("* HTTP/1.1 101 Switching Protocols") }
        host.interrupt()
        let run = await running
        #expect(run.code == 0)
        #expect(run.errors.hasSuffix("* closed by us with 1000; 0 bytes received, 0 sent\n"))
    }
}
