import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient

/// `sluice suspend`: reads no more from a connection, and holds what is sent on it by command.
struct SuspendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Read no more from a connection, and hold what is sent on it.",
        discussion: """
            Until 'sluice resume' nothing more is read from it: its peer has to wait, once the buffers on the way are full. \
            What 'sluice send' gives it waits in a queue of at most 4 MiB, and no Ping is sent. What a tunnel, an echo or a \
            chat room passes on to it is still sent, and its idle timeout and maximum age go on.

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
