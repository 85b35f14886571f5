import ArgumentParser
import CommandLineText

/// As every other error, wrong usage is one line on standard error, with the next thing to try.
extension Sluice {
    static func main() async {
        do {
            var command = try self.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            self.end(with: error)
        }
    }

    private static func end(with error: any Error) -> Never {
        guard !(error is ExitCode), self.exitCode(for: error) == .validationFailure else { self.exit(withError: error) }
        Ending.say(UsageLine.text(message: self.message(for: error), whole: self.fullMessage(for: error)))
        self.exit(withError: ExitStatus.usage)
    }
}
