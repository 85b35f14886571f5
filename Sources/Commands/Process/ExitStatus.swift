import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// Exit codes, as in sysexits(3).
enum ExitStatus {
    /// Invalid command line.
    static let usage = ExitCode(64)
    /// A required target, or the control plane, cannot be reached.
    static let unavailable = ExitCode(69)
    /// An internal error.
    static let internalError = ExitCode(70)
    /// The system refused a socket, a thread or another resource at start.
    static let systemError = ExitCode(71)
    /// The configuration, or a file that it names, is invalid.
    static let configuration = ExitCode(78)
}

/// Prints errors of commands on standard error and maps them to exit codes.
enum ErrorReporter {
    /// Runs `body`, and prints any error it throws.
    ///
    /// - Parameter code: exit code for problems of a configuration: `usage` if it was given as options, not in a file.
    /// - Throws: `ExitCode` only.
    static func reporting<Result>(
        problemsAs code: ExitCode = ExitStatus.configuration, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let exit as ExitCode {
            throw exit
        } catch let problems as UsageProblems {
            self.print("\(problems)")
            throw ExitStatus.usage
        } catch let problems as ConfigurationProblems {
            self.print("\(problems)")
            throw code
        } catch let files as UnusableFiles {
            self.print("\(files)")
            throw ExitStatus.configuration
        } catch let failure as StartFailure {
            self.print("sluice: \(failure)")
            throw failure.exitCode
        } catch {
            self.print("sluice: internal error: \(error)")
            throw ExitStatus.internalError
        }
    }

    /// Writes lines to standard error.
    static func print(_ text: String) {
        ProcessOutput.printError(text + "\n")
    }
}

enum Version {
    static let text = "0.1.0"
}
