import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient

/// `sluice resume`: goes on with a connection that is suspended.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Go on with a connection that is suspended.",
        discussion: """
            What the peer sent meanwhile is read, and what waited is sent.

            EXAMPLES
              sluice resume 17

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb("resume", self.id)))
            try await desk.show(answer, as: Connection.self) { [TerminalText.line("\($0.id ?? self.id) resumed")] }
        }
    }
}
