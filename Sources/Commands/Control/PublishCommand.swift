import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration

/// `sluice publish`: publishes a message in a room.
struct PublishCommand: AsyncParsableCommand {
    /// Maximum size of standard input in bytes: the gateway's limit for one request in base64.
    private static let limit = 11 << 20

    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish a message in a room of a running gateway.",
        discussion: """
            TEXT that is a JSON value is published as it is, other text as a JSON string. Without TEXT, or with -, all of \
            standard input is one message, without its last line break. The room's policy for clients does not \
            apply.

            EXAMPLES
              sluice publish chat:lobby 'the server restarts at noon'
              sluice publish news '{"title": "Hello"}' --tag language=en
              jq -c . article.json | sluice publish news

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("ROOM", "Name of the room."))
    var room: String

    @Argument(help: .value("TEXT", "Message; - is standard input. (default: standard input)"))
    var text: String?

    @Flag(help: "Publish TEXT as a JSON string, even if it is a JSON value.")
    var string = false

    @Flag(help: "Publish the bytes of standard input unchanged.")
    var binary = false

    @Option(parsing: .singleValue, help: .value("name=value", "Tag of the message. Repeatable."))
    var tag: [String] = []

    @Flag(help: "Do not keep the message in the room's history.")
    var skipHistory = false

    @Option(help: .value("key", "Publish only once with this key within 5 minutes, however often it is repeated."))
    var idempotencyKey: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, body in
            let data: RoomData
            if let text, text != "-" { data = self.data(text) } else { data = try await self.input(context) }
            let request = try ControlRequest(RoomPath.action("publish", self.room), data, beside: body)
            try await context.perform(request, as: RoomPosition.self) { position in
                ["published" + (position.offset.map { " at \($0)" } ?? "")]
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> RoomPublish? {
        reader.requireText("ROOM", self.room)
        if self.binary, self.string { reader.reject("--binary", "cannot be combined with --string") }
        if self.binary, let text, text != "-" { reader.reject("--binary", "requires standard input instead of TEXT") }
        var tags: [String: String]?
        switch LabelText.labels(self.tag) {
        case .success(let labels): tags = labels.isEmpty ? nil : labels
        case .failure(let invalid):
            reader.reject(
                "--tag", "expected NAME=VALUE, found \(QuotedText.quoted(invalid.text))",
                remedy: "for example --tag language=en")
        }
        return RoomPublish { [tags] in
            $0.tags = tags
            $0.skipHistory = self.skipHistory ? true : nil
            $0.idempotencyKey = self.idempotencyKey
        }
    }

    private func data(_ text: String) -> RoomData {
        self.string ? .string(text) : RoomData(text: text)
    }

    private func input(_ context: CommandContext) async throws -> RoomData {
        var all = try await context.readInput(limit: Self.limit, remedy: "publish a reference to it instead")
        if self.binary { return .bytes(all) }
        if all.last == 0x0A { all.removeLast() }
        guard let text = String(validating: all, as: UTF8.self) else {
            throw ConnectFailure(.unsendableInput, "standard input is not valid UTF-8", remedy: "use --binary")
        }
        return self.data(text)
    }
}
