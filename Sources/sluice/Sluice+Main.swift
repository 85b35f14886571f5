import ArgumentParser
import CommandLineText
import GatewayConfiguration
import GatewayCore

/// As every other error, wrong usage is one line on standard error, with the next thing to try.
extension Sluice {
    static func main() {
        do {
            var command = try self.parseAsRoot()
            if let lasting = command as? any AsyncParsableCommand { self.start(lasting) }
            try command.run()
        } catch {
            self.end(with: error)
        }
    }

    /// Works beside this thread, which is left to whoever takes it.
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

    /// What to say where the first word is no command; the parser calls it an unexpected argument.
    private static func unknownCommand(_ arguments: some Collection<String>) -> String? {
        let commands = self.configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word = arguments.first, !word.hasPrefix("-"), !commands.contains(word) else { return nil }
        let meant = Spelling.nearest(to: word, among: commands).map { " (did you mean '\($0)'?)" } ?? ""
        return "there is no command '\(TerminalText.line(word, limit: 60))'\(meant)"
    }
}
