import ArgumentParser
import CommandLineText
import ControlClient
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// Exit codes, as in sysexits(3); from 79 on, own ones.
enum ExitStatus {
    /// Invalid command line.
    static let usage = ExitCode(64)
    static let unsendableInput = ExitCode(65)
    static let notFound = ExitCode(66)
    /// A required target, or the control plane, cannot be reached.
    static let unavailable = ExitCode(69)
    /// An internal error.
    static let internalError = ExitCode(70)
    /// The system refused a socket, a thread or another resource at start.
    static let systemError = ExitCode(71)
    static let inputOrOutput = ExitCode(74)
    /// Another attempt may succeed.
    static let temporaryFailure = ExitCode(75)
    static let protocolError = ExitCode(76)
    static let notAllowed = ExitCode(77)
    /// The configuration, or a file that it names, is invalid.
    static let configuration = ExitCode(78)
    static let tls = ExitCode(79)
    /// The peer refused, or closed with an error.
    static let peer = ExitCode(80)
    static let conflict = ExitCode(81)
    static let interrupted = ExitCode(130)
}

/// Maps the errors of all commands to a line on standard error and an exit code.
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
        } catch let problems as ConfigurationProblems {
            self.print("\(problems)")
            throw code
        } catch {
            self.print(self.text(of: error))
            throw self.exitCode(of: error)
        }
    }

    /// Writes lines to standard error.
    static func print(_ text: String) {
        ProcessOutput.printError(text + "\n")
    }

    static func text(of error: any Error) -> String {
        switch error {
        case is UsageProblems, is UnusableFiles: "\(error)"
        case is UnreachableTarget, is SystemError, is GatewayPlanError, is ThreadShortage: "sluice: \(error)"
        case let failure as ControlFailure: "sluice: \(TerminalText.singleLine(failure.line, limit: 1000))"
        case let failure as ConnectFailure: "sluice: \(failure.line)"
        default: "sluice: internal error: \(error)"
        }
    }

    static func exitCode(of error: any Error) -> ExitCode {
        switch error {
        case is UsageProblems: ExitStatus.usage
        case is UnusableFiles: ExitStatus.configuration
        case is UnreachableTarget: ExitStatus.unavailable
        case is SystemError, is GatewayPlanError, is ThreadShortage: ExitStatus.systemError
        case let failure as ControlFailure: self.exitCode(of: failure.kind)
        case let failure as ConnectFailure: self.exitCode(of: failure.kind)
        default: ExitStatus.internalError
        }
    }

    private static func exitCode(of kind: ControlFailure.Kind) -> ExitCode {
        switch kind {
        case .invalidRequest: ExitStatus.usage
        case .invalidConfiguration: ExitStatus.configuration
        case .unsendableInput: ExitStatus.unsendableInput
        case .notFound: ExitStatus.notFound
        case .noConnection: ExitStatus.unavailable
        case .internalError: ExitStatus.internalError
        case .unavailable, .receiveTimedOut: ExitStatus.temporaryFailure
        case .invalidResponse: ExitStatus.protocolError
        case .notAllowed: ExitStatus.notAllowed
        case .tls: ExitStatus.tls
        case .peer: ExitStatus.peer
        case .conflict: ExitStatus.conflict
        case .cancelled: ExitStatus.interrupted
        }
    }

    private static func exitCode(of kind: ConnectFailure.Kind) -> ExitCode {
        switch kind {
        case .unsendableInput: ExitStatus.unsendableInput
        case .noConnection: ExitStatus.unavailable
        case .inputOrOutput: ExitStatus.inputOrOutput
        case .noAnswer: ExitStatus.temporaryFailure
        case .connectionLost: ExitStatus.protocolError
        case .refused: ExitStatus.notAllowed
        case .tls: ExitStatus.tls
        case .closedWithCode: ExitStatus.peer
        case .interrupted: ExitStatus.interrupted
        case .conflict: ExitStatus.conflict
        }
    }
}

enum Version {
    static let text = "0.1.0"
}
