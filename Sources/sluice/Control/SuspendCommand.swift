import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient

/// `sluice suspend`: reads no more from a connection, so that its peer has to wait.
struct SuspendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Read no more from a connection: its peer has to wait.",
        discussion: """
            Nothing more is read from it until 'sluice resume': its peer has to wait, once the buffers on the way are full.

            EXAMPLES
              sluice suspend 17
              sluice resume 17

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb("suspend", self.id)))
            try await desk.show(answer, as: Connection.self) { [TerminalText.line("\($0.id ?? self.id) suspended")] }
        }
    }
}
