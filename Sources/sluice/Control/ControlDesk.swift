import ArgumentParser
import CommandLineText
import ControlClient
import Foundation

/// What a command works with: the gateway on one side, standard output on the other.
struct ControlDesk: Sendable {
    let session: ControlSession
    let printsJSON: Bool
    let colors: Bool
    let streams = StandardStreams()

    /// Cells in a row; `nil` where nobody looks at it.
    var cells: Int? { Terminal.showsOutput ? Terminal.columns : nil }

    // MARK: Writing

    func write(_ bytes: [UInt8]) async throws {
        try await self.streams.write(bytes)
    }

    /// Each with an end of line. Safe to print already.
    func print(_ lines: [String]) async throws {
        guard !lines.isEmpty else { return }
        try await self.write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    func print(_ line: String) async throws {
        try await self.print([line])
    }

    /// What the gateway answered, as it came; with an end of line, so that answers that follow are told apart.
    func print(json body: Data) async throws {
        guard !body.isEmpty else { return }
        try await self.write(Array(body) + (body.last == 0x0A ? [] : [0x0A]))
    }

    /// The answer as JSON if that is wanted, else in lines for people.
    func show<Model: Decodable>(
        _ answer: ControlAnswer, as type: Model.Type, _ lines: (Model) -> [String]
    ) async throws {
        if self.printsJSON { return try await self.print(json: answer.body) }
        try await self.print(lines(try answer.decoded(type)))
    }

    /// Beside the output: for people alone.
    func note(_ text: String) {
        Ending.say("sluice: \(TerminalText.line(text, limit: 600))")
    }

    // MARK: Failing

    func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as ControlFailure {
            try await self.tell(failure)
            throw failure.exitCode
        } catch let failure as ConnectFailure {
            Ending.say("sluice: \(failure.line)")
            throw failure.exitCode
        }
    }

    /// One line on standard error; the problem document as it came on standard output, where JSON is wanted.
    func tell(_ failure: ControlFailure) async throws {
        if self.printsJSON, let document = failure.document { try? await self.print(json: document) }
        Ending.say("sluice: \(TerminalText.line(failure.line, limit: 1000))")
    }
}
