import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// How the process ends, by sysexits(3).
enum ExitStatus {
    /// Invalid command line.
    static let usage = ExitCode(64)
    /// The target was required and cannot be reached.
    static let unavailable = ExitCode(69)
    /// A fault of ours.
    static let internalFault = ExitCode(70)
    /// The system refused a socket, a thread or the like at start.
    static let systemFault = ExitCode(71)
    /// The configuration, or a file that it names, is not right.
    static let configuration = ExitCode(78)
}

/// Turns what a command threw into lines on standard error and an exit code.
enum Ending {
    /// Runs `body`.
    ///
    /// - Parameter typed: the code for problems of a configuration: the usage code where it was typed, not written in
    /// a file.
    static func reporting<Result>(
        problemsAs typed: ExitCode = ExitStatus.configuration, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let exit as ExitCode {
            throw exit
        } catch let problems as ConfigurationProblems {
            self.say("\(problems)")
            throw typed
        } catch let files as UnreadableFiles {
            self.say("\(files)")
            throw ExitStatus.configuration
        } catch let failure as StartFailure {
            self.say("sluice: \(failure)")
            throw failure.exitCode
        } catch {
            self.say("sluice: internal fault: \(error)")
            throw ExitStatus.internalFault
        }
    }

    /// Writes lines to standard error.
    static func say(_ text: String) {
        ProcessOutput.say(text + "\n")
    }
}

enum Version {
    static let text = "0.1.0"
}
