import ArgumentParser
import CommandLineText
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// The `sluice` command; every other command is a subcommand of it.
package struct Sluice: AsyncParsableCommand {
    package init() {}

    private static let exitCodes = ExitStatus.help(
        [
            .success: nil, .usage: nil,
            .unavailable: "--require-target was given and the target cannot be reached",
            .internalError: nil, .systemError: nil, .inputOrOutput: nil, .configuration: nil,
        ], title: "EXIT CODES of serve, check and bridge; see --help of other commands")
    package static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "A gateway between TCP, TLS, Unix socket and WebSocket peers.",
        discussion: """
            Relay between two addresses with one command:

              sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900
              sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                --subprotocol mqtt

            Run a service with many listeners, routes and upstreams:

              sluice serve --config /etc/sluice/sluice.yaml

            Connect to a server from a terminal or a pipe:

              sluice connect wss://echo.example/

            Inspect and control a running gateway:

              sluice ls
              sluice open wss://echo.example/
              sluice get https://example.org/

            Print a completion script for bash, zsh or fish:

              sluice --generate-completion-script bash

            \(Self.exitCodes)
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Gateway", subcommands: [ServeCommand.self, CheckCommand.self, BridgeCommand.self]),
            CommandGroup(name: "Client without a gateway", subcommands: [ConnectCommand.self, TokenCommand.self]),
            CommandGroup(
                name: "Background sessions", subcommands: [TransfersCommand.self, TransferDaemonCommand.self]),
            CommandGroup(
                name: "Connections of a running gateway",
                subcommands: [
                    ListCommand.self, ShowCommand.self, OpenCommand.self, SendCommand.self, ReceiveCommand.self,
                    AttachCommand.self, PingCommand.self, CloseCommand.self,
                    SuspensionCommand<Suspend>.self, SuspensionCommand<Resume>.self, SecureCommand.self,
                    SetCommand.self, TapCommand.self,
                ]),
            CommandGroup(
                name: "Rooms of a running gateway",
                subcommands: [RoomsCommand.self, PublishCommand.self, TailCommand.self, UsersCommand.self]),
            CommandGroup(name: "Transfers of a running gateway", subcommands: [GetCommand.self, PutCommand.self]),
            CommandGroup(
                name: "A running gateway as a whole",
                subcommands: [
                    HealthCommand.self, NodesCommand.self, EventsCommand.self, DrainCommand.self, ReloadCommand.self,
                    EntriesCommand<ListenerEntries>.self, EntriesCommand<RouteEntries>.self,
                    EntriesCommand<UpstreamEntries>.self,
                ]),
        ])
}

extension Sluice {
    /// Parses the process's arguments and runs the command. An invalid command line, like every other error, is reported
    /// as one line on standard error. Must be called before the process opens a descriptor.
    package static func main() {
        // Before anything opens a descriptor.
        StandardDescriptors.open()
        let arguments = ProgramArguments()
        guard !arguments.all.isEmpty else {
            ErrorReporter.print("sluice: the arguments cannot be read from /proc/self/cmdline; mount /proc")
            self.exit(withError: ExitStatus.systemError.code)
        }
        if let position = arguments.firstInvalidPosition {
            let remedy = "write it in UTF-8, and rename a file whose name is not"
            ErrorReporter.print("sluice: argument \(position) is not valid UTF-8; \(remedy)")
            self.exit(withError: ExitStatus.usage.code)
        }
        do {
            var command = try self.parseAsRoot(Array(arguments.all.dropFirst()))
            if let lasting = command as? any AsyncParsableCommand { self.start(lasting) }
            try command.run()
        } catch {
            self.end(with: error)
        }
    }

    /// Runs the command in a task, while this thread serves the main executor.
    private static func start(_ command: sending any AsyncParsableCommand) -> Never {
        let isGateway = command is any GatewayCommand
        do throws(ThreadShortage) {
            // A gateway looks again once it knows its loops.
            try ThreadShortage.check(ThreadShortage.clientCount)
        } catch {
            ErrorReporter.print(ErrorReporter.text(of: error))
            self.exit(withError: ErrorReporter.exitCode(of: error))
        }
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

    /// Runs the command in the current task, for a `HostProcess`.
    /// - Returns: the exit code.
    static func run(_ arguments: [String]) async -> Int32 {
        do {
            var command = try self.parseAsRoot(arguments)
            if var lasting = command as? any AsyncParsableCommand {
                try await lasting.run()
            } else {
                try command.run()
            }
            return ExitCode.success.rawValue
        } catch {
            return self.report(error, of: arguments)
        }
    }

    private static func end(with error: any Error) -> Never {
        let code = self.report(error, of: Array(ProgramArguments().all.dropFirst()))
        ProcessOutput.flush()
        self.exit(withError: ExitCode(code))
    }

    /// Prints help or the error.
    /// - Returns: the exit code.
    private static func report(_ error: any Error, of arguments: [String]) -> Int32 {
        let code = self.exitCode(for: error)
        guard !(error is ExitCode) else { return code.rawValue }
        if arguments.first == "help", let said = self.unknownCommand(arguments.dropFirst()) {
            ErrorReporter.print(UsageLine.text(message: said, whole: ""))
            return ExitStatus.usage.rawValue
        }
        let whole = self.fullMessage(for: error)
        guard code == .validationFailure else {
            if code.isSuccess { return self.printRequested(whole) }
            ErrorReporter.print(whole)
            return code.rawValue
        }
        let said =
            self.unknownCommand(arguments) ?? self.unknownOption(self.message(for: error), of: arguments.first)
            ?? self.message(for: error)
        ErrorReporter.print(UsageLine.text(message: said, whole: whole))
        return ExitStatus.usage.rawValue
    }

    /// Prints help, the version or a completion script.
    /// - Returns: the exit code.
    private static func printRequested(_ text: String) -> Int32 {
        do throws(ConnectFailure) {
            try ProcessOutput.print(text + "\n")
            return ExitCode.success.rawValue
        } catch {
            ErrorReporter.print(ErrorReporter.text(of: error))
            return ErrorReporter.exitCode(of: error).rawValue
        }
    }

    /// Message for an unknown long option with the one that was probably meant. The parser's own suggestion only looks at
    /// how similar they are: `--text` for `--cert`.
    private static func unknownOption(_ message: String, of command: String?) -> String? {
        let beginning = "Unknown option '--"
        guard message.hasPrefix(beginning),
            let command = self.configuration.subcommands.first(where: { $0._commandName == command })
        else { return nil }
        let option = String(message.dropFirst(beginning.count).prefix { $0 != "'" })
        let known = self.helpMessage(for: command).split { !$0.isLetter && !$0.isNumber && $0 != "-" }
            .filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) }
        return EditDistance.nearest(to: option, among: known).map {
            "\(beginning)\(option)'. Did you mean '--\($0)'?"
        }
    }

    /// Message for an unknown command, which the parser would call an unexpected argument.
    private static func unknownCommand(_ arguments: some Collection<String>) -> String? {
        let commands = self.configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word = arguments.first, !word.hasPrefix("-"), !commands.contains(word) else { return nil }
        let meant = EditDistance.nearest(to: word, among: commands).map { " (did you mean '\($0)'?)" } ?? ""
        return "there is no command '\(TerminalText.singleLine(word, limit: 60))'\(meant)"
    }
}
