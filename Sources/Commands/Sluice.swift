import ArgumentParser
import CommandLineText
import GatewayConfiguration
import GatewayCore

/// The `sluice` command; every other command is a subcommand of it.
package struct Sluice: AsyncParsableCommand {
    package init() {}

    package static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "A gateway between TCP, TLS, Unix socket and WebSocket peers.",
        discussion: """
            Join two kinds of peers with one command:

              sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900
              sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                --subprotocol mqtt

            Or run a service with many listeners, routes and upstreams:

              sluice serve --config /etc/sluice/sluice.yaml

            Or talk to a server yourself, from a terminal or a pipe:

              sluice connect wss://echo.example/

            Or look at a gateway that runs, and steer it:

              sluice ls
              sluice open wss://echo.example/
              sluice get https://example.org/

            Shells complete commands and options with the script that this prints; the last word is bash, zsh or fish:

              sluice --generate-completion-script bash

            EXIT CODES of serve, check and bridge; each other command tells its own
              0   ended as asked
              64  wrong usage of the command line
              69  --require-target was given and the target cannot be reached
              70  a fault of sluice itself
              71  the system refused something at start, like an address in use
              78  a problem in the configuration or the files it names
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Gateway", subcommands: [ServeCommand.self, CheckCommand.self, BridgeCommand.self]),
            CommandGroup(name: "Client without a gateway", subcommands: [ConnectCommand.self, TokenCommand.self]),
            CommandGroup(
                name: "Connections of a running gateway",
                subcommands: [
                    ListCommand.self, ShowCommand.self, OpenCommand.self, SendCommand.self, ReceiveCommand.self,
                    AttachCommand.self, PingCommand.self, CloseCommand.self, SuspendCommand.self, ResumeCommand.self,
                    SecureCommand.self, SetCommand.self, TapCommand.self,
                ]),
            CommandGroup(name: "Transfers of a running gateway", subcommands: [GetCommand.self, PutCommand.self]),
            CommandGroup(
                name: "A running gateway as a whole",
                subcommands: [
                    HealthCommand.self, EventsCommand.self, DrainCommand.self, ReloadCommand.self,
                    ListenersCommand.self, RoutesCommand.self, UpstreamsCommand.self,
                ]),
        ])
}

extension Sluice {
    /// Parses the process's arguments and runs the command. Wrong usage, like every other error, is one line on standard
    /// error with the next thing to try.
    package static func main() {
        do {
            var command = try self.parseAsRoot()
            if let lasting = command as? any AsyncParsableCommand { self.start(lasting) }
            try command.run()
        } catch {
            self.end(with: error)
        }
    }

    /// Runs the command beside this thread, which is left to the main executor.
    private static func start(_ command: sending any AsyncParsableCommand) -> Never {
        let isGateway = command is any GatewayCommand
        Task(executorPreference: isGateway ? MainThread.shared : nil) { await self.run(command) }
        MainThread.shared.serve()
    }

    private static func run(_ command: any AsyncParsableCommand) async {
        var command = command
        do {
            try await command.run()
        } catch {
            self.end(with: error)
        }
        ProcessOutput.flush()
        self.exit()
    }

    private static func end(with error: any Error) -> Never {
        ProcessOutput.flush()
        guard !(error is ExitCode), self.exitCode(for: error) == .validationFailure else { self.exit(withError: error) }
        let said = self.unknownCommand(CommandLine.arguments.dropFirst()) ?? self.message(for: error)
        Ending.say(UsageLine.text(message: said, whole: self.fullMessage(for: error)))
        self.exit(withError: ExitStatus.usage)
    }

    /// Message for an unknown command, which the parser would call an unexpected argument.
    private static func unknownCommand(_ arguments: some Collection<String>) -> String? {
        let commands = self.configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word = arguments.first, !word.hasPrefix("-"), !commands.contains(word) else { return nil }
        let meant = Spelling.nearest(to: word, among: commands).map { " (did you mean '\($0)'?)" } ?? ""
        return "there is no command '\(TerminalText.line(word, limit: 60))'\(meant)"
    }
}
