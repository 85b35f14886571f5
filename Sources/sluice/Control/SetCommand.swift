import ArgumentParser
import ControlAPI
import ControlClient

/// `sluice set`: changes what people keep with a connection.
struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change description, priority and labels of a connection.",
        discussion: """
            What is not named stays. Labels are set all anew: those that are not named go.

            EXAMPLES
              sluice set 17 --description 'a customer' --label team=blue --label tier=1
              sluice set 17 --no-labels

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "What")
    var notes: NoteOptions

    @Flag(help: "Take all labels away.")
    var noLabels = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: Connection.self) { ConnectionSheet($0).lines }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        var patch = self.notes.patch(&reader)
        if self.noLabels {
            if patch.labels != nil { reader.note("--no-labels", expected: "no --label", found: "one") }
            patch.labels = [:]
        }
        if patch == ConnectionPatch(), reader.problems.isEmpty {
            reader.note("sluice set", expected: "--description, --priority, --label or --no-labels", found: "none")
        }
        return try ControlRequest(.patch, ConnectionPath.one(self.id), json: patch)
    }
}
