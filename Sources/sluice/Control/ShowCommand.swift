import ArgumentParser
import ControlAPI
import ControlClient

/// `sluice show`: everything about one connection.
struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show everything that is known of a connection.",
        discussion: """
            A line for each fact: state, peer, bytes, messages and frames each way, what waits, round trips, TLS, the opening \
            handshake. Of a connection that is over, what is remembered of it, with exit code 66.

            EXAMPLES
              sluice show 17
              sluice show 17u --json

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("Its id, as 'sluice ls' shows it.", valueName: "ID"))
    var id: String

    @Option(help: ArgumentHelp("With --json: only these members, separated by commas.", valueName: "names"))
    var fields: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.parameters) { desk, parameters in
            do {
                let answer = try await desk.session.send(
                    ControlRequest(.get, ConnectionPath.one(self.id), parameters))
                try await desk.show(answer, as: Connection.self) { ConnectionSheet($0).lines }
            } catch let failure as ControlFailure {
                guard let record = failure.problem?.connection else { throw failure }
                if !desk.printsJSON { try await desk.print(ConnectionSheet(record).lines) }
                // Where to look for how it ended is here.
                var told = ControlFailure(
                    failure.kind, failure.text, remedy: "'sluice ls --state closed' lists what is over")
                (told.document, told.problem) = (failure.document, failure.problem)
                throw told
            }
        }
    }

    private func parameters(_ reader: inout OptionReader) -> [ControlRequest.Parameter]? {
        if self.fields != nil, !self.control.json {
            reader.note("--fields", expected: "--json beside it", found: "none")
        }
        return self.fields.map { [ControlRequest.Parameter("fields", $0)] } ?? []
    }
}
