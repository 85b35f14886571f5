import Testing

@Suite("Help of the command line")
struct HelpTests {
    static let gateway = ["serve", "check", "bridge"]
    static let local = ["connect", "token", "transferd", "transfers"]
    /// Commands that talk to a running gateway.
    static let clients = [
        "ls", "show", "open", "send", "receive", "attach", "ping", "close", "suspend", "resume", "secure", "set", "tap",
        "rooms", "publish", "tail", "users", "get", "put", "health", "nodes", "events", "drain", "reload", "listeners",
        "routes",
        "upstreams",
    ]

    @Test func rootHelpListsEveryCommand() async {
        let help = await CommandRun.of("--help")
        #expect(help.code == 0 && help.errors == "")
        let listed = help.lines.drop { $0 != "GATEWAY SUBCOMMANDS:" }
            .filter { $0.wholeMatch(of: /\ \ [a-z]+ .*/) != nil }.compactMap { $0.split(separator: " ").first }
        #expect(listed.map(String.init).sorted() == (Self.gateway + Self.local + Self.clients).sorted())
    }

    @Test func commandWithoutArgumentsPrintsTheRootHelp() async {
        let bare = await CommandRun.of()
        let help = await CommandRun.of("--help")
        #expect(bare.code == 0 && bare.output == help.output)
    }

    @Test func versionIsPrinted() async {
        let run = await CommandRun.of("--version")
        #expect(run.code == 0 && run.output == "0.1.0\n")
    }

    @Test(arguments: [
        [], ["--help"], ["help", "ls"], ["--version"], ["--generate-completion-script", "bash"],
        ["token", "--name", "ops", "--scope", "read"],
    ])
    func closedStandardOutputIsAnError(_ words: [String]) async {
        let run = await CommandHost(acceptsOutput: false).run(words)
        #expect(run.code == 74)
        #expect(run.errors == "sluice: standard output was closed by its reader\n")
    }

    @Test(arguments: gateway + local + clients)
    func helpOfACommandIsComplete(_ name: String) async throws {
        let help = await CommandRun.of(name, "--help")
        #expect(help.code == 0 && help.errors == "")
        #expect(help.output == (await CommandRun.of("help", name)).output)
        #expect(help.output.contains("EXAMPLE") && help.output.contains("EXIT CODES"))
        let parts = help.output.split(separator: "USAGE:", maxSplits: 1)
        let text = try #require(parts.first)
        #expect(text.contains("sluice \(name)"), "an example of this command")
        for line in help.lines where !line.hasPrefix("USAGE:") { #expect(line.count <= 80, "\(line)") }
    }

    @Test(arguments: gateway + local + clients)
    func everyOptionOfTheUsageIsExplained(_ name: String) async throws {
        let lines = await CommandRun.of(name, "--help").lines
        let start = try #require(lines.firstIndex { $0.hasPrefix("USAGE:") })
        let usage = lines[start].matches(of: /--[a-z-]+/).map { String($0.output) }
        let explained = lines[(start + 1)...]
        for option in usage {
            let place = explained.firstIndex { $0.hasPrefix("  ") && $0.contains(option) }
            let line = try #require(place, "\(option)")
            let words = lines[line].drop { $0 == " " }.split(separator: "  ").dropFirst()
            #expect(!words.isEmpty || lines[line + 1].hasPrefix("          "), "\(option) is not explained")
        }
    }

    @Test(arguments: clients)
    func clientExplainsTheAddressOfTheGateway(_ name: String) async {
        let help = await CommandRun.of(name, "--help").output
        for text in ["--control ", "--token-file", "--json", "SLUICE_CONTROL", "127.0.0.1:8081"] {
            #expect(help.contains(text), "\(text)")
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completionScriptNamesEveryCommand(_ shell: String) async {
        let script = await CommandRun.of("--generate-completion-script", shell)
        #expect(script.code == 0)
        for name in Self.gateway + Self.local + Self.clients { #expect(script.output.contains(name), "\(name)") }
    }
}
