import ArgumentParser
import CommandLineText

/// Why `connect` did not end in order: in words, with the next thing to try.
struct ConnectFailure: Error, Sendable, Equatable {
    enum Kind: String, Sendable {
        case unsendableInput = "unsendable-input"
        case noConnection = "no-connection"
        case inputOrOutput = "input-or-output"
        case noAnswer = "no-answer"
        case outOfOrder = "out-of-order"
        case refused
        case tls
        case closedWithCode = "closed-with-code"
        case interrupted
        /// Of a connection that a gateway keeps: not in the state for it.
        case conflict
    }

    let kind: Kind
    /// One line, without a full stop.
    let text: String
    /// What to do; empty where nothing can be said.
    let remedy: String
    /// Of the answer to the opening handshake.
    var status: Int?

    init(_ kind: Kind, _ text: String, remedy: String = "", status: Int? = nil) {
        self.kind = kind
        self.text = TerminalText.line(text, limit: 600)
        self.remedy = TerminalText.line(remedy, limit: 300)
        self.status = status
    }

    var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }

    var exitCode: ExitCode {
        switch self.kind {
        case .unsendableInput: ExitCode(65)
        case .noConnection: ExitStatus.unavailable
        case .inputOrOutput: ExitCode(74)
        case .noAnswer: ExitCode(75)
        case .outOfOrder: ExitCode(76)
        case .refused: ExitCode(77)
        case .tls: ExitCode(79)
        case .closedWithCode: ExitCode(80)
        case .interrupted: ExitCode(130)
        case .conflict: ExitCode(81)
        }
    }
}
