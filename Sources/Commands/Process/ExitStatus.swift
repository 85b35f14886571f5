import ArgumentParser
import CommandLineText
import ControlClient
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// Exit codes of all commands, as in sysexits(3); from 79 on, own ones.
enum ExitStatus: Int32 {
    case success = 0
    case usage = 64
    case unsendableInput = 65
    case notFound = 66
    case unavailable = 69
    case internalError = 70
    case systemError = 71
    case inputOrOutput = 74
    case temporaryFailure = 75
    case protocolError = 76
    case notAllowed = 77
    case configuration = 78
    case tls = 79
    case peer = 80
    case conflict = 81
    case interrupted = 130

    var code: ExitCode { ExitCode(self.rawValue) }

    /// Meaning in the help of a command that gives no other.
    private var meaning: String {
        switch self {
        case .success: "success"
        case .usage: "invalid command line"
        case .unsendableInput: "input too large, or of an unsupported type"
        case .notFound: "not found, or already closed"
        case .unavailable: "cannot connect to the control plane"
        case .internalError: "internal error"
        case .systemError: "system error at start, like an address in use"
        case .inputOrOutput: "error on standard output"
        case .temporaryFailure: "temporarily unavailable, or timed out: try again"
        case .protocolError: "the server is not a control plane of this version"
        case .notAllowed: "not authorized: no token, or a token without the scope"
        case .configuration: "invalid configuration, or a file that it names is invalid"
        case .tls: "TLS with the control plane failed"
        case .peer: "the remote server refused or failed the request"
        case .conflict: "conflict with the current state, or with another change"
        case .interrupted: "interrupted"
        }
    }

    /// A section of a command's help.
    /// - Parameter statuses: each with what it means for this command; `nil` for the usual meaning.
    static func help(_ statuses: KeyValuePairs<ExitStatus, String?>, title: String = "EXIT CODES") -> String {
        let width = statuses.map { "\($0.key.rawValue)".count }.max() ?? 0
        let rows = statuses.map { status, meaning in
            let number = "\(status.rawValue)"
            let padding = String(repeating: " ", count: width - number.count)
            return "  \(number)\(padding)  \(meaning ?? status.meaning)"
        }
        return ([title] + rows).joined(separator: "\n")
    }
}

/// Maps the errors of all commands to a line on standard error and an exit code.
enum ErrorReporter {
    /// Runs `body`, and prints any error it throws.
    ///
    /// - Parameter status: for problems of a configuration: `usage` if it was given as options, not in a file.
    /// - Throws: `ExitCode` only.
    static func reporting<Result>(
        problemsAs status: ExitStatus = .configuration, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let exit as ExitCode {
            throw exit
        } catch let problems as ConfigurationProblems {
            self.print("\(problems)")
            throw status.code
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
        self.status(of: error).code
    }

    private static func status(of error: any Error) -> ExitStatus {
        switch error {
        case is UsageProblems: .usage
        case is UnusableFiles: .configuration
        case is UnreachableTarget: .unavailable
        case is SystemError, is GatewayPlanError, is ThreadShortage: .systemError
        case let failure as ControlFailure: self.status(of: failure.kind)
        case let failure as ConnectFailure: self.status(of: failure.kind)
        default: .internalError
        }
    }

    private static func status(of kind: ControlFailure.Kind) -> ExitStatus {
        switch kind {
        case .invalidRequest: .usage
        case .invalidConfiguration: .configuration
        case .unsendableInput: .unsendableInput
        case .notFound: .notFound
        case .noConnection: .unavailable
        case .internalError: .internalError
        case .unavailable, .receiveTimedOut: .temporaryFailure
        case .invalidResponse: .protocolError
        case .notAllowed: .notAllowed
        case .tls: .tls
        case .peer: .peer
        case .conflict: .conflict
        case .cancelled: .interrupted
        }
    }

    private static func status(of kind: ConnectFailure.Kind) -> ExitStatus {
        switch kind {
        case .unsendableInput: .unsendableInput
        case .noConnection: .unavailable
        case .inputOrOutput: .inputOrOutput
        case .noAnswer: .temporaryFailure
        case .connectionLost: .protocolError
        case .refused: .notAllowed
        case .tls: .tls
        case .closedWithCode: .peer
        case .interrupted: .interrupted
        case .conflict: .conflict
        }
    }
}

enum Version {
    static let text = "0.1.0"
}
