import ArgumentParser
import CommandLineText

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
        self.exit()
    }

    private static func end(with error: any Error) -> Never {
        guard !(error is ExitCode), self.exitCode(for: error) == .validationFailure else { self.exit(withError: error) }
        Ending.say(UsageLine.text(message: self.message(for: error), whole: self.fullMessage(for: error)))
        self.exit(withError: ExitStatus.usage)
    }
}
