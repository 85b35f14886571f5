import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// `sluice drain`: closes connections one after the other.
struct DrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Tell connections to end, one after the other, and watch it.",
        discussion: """
            Which ones must be said, or --all. The i-th is told i / rate seconds after the beginning, and by chance up to --jitter later. \
            The gateway answers when the last one will be told, and warns if the deadline comes before that. Ctrl-C cancels what is left of it; with --background the drain goes on in the gateway, \
            and its id is printed.

            EXAMPLES
              sluice drain --route chat --preview
              sluice drain --route chat --rate 50 --jitter 2s --deadline 5m \\
                --reason 'maintenance'

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Which")
    var which: SelectionOptions

    @Flag(help: "Every connection.")
    var all = false

    @Flag(help: "Only count them.")
    var preview = false

    @Option(help: ArgumentHelp("Close code. (default: 1001)", valueName: "code"))
    var code: String?

    @Option(help: ArgumentHelp("Close reason, at most 123 bytes.", valueName: "text"))
    var reason: String?

    @Flag(help: "End them with a reset.")
    var abort = false

    @Option(help: ArgumentHelp("Connections in a second, 1 to 100000. (default: 100)", valueName: "number"))
    var rate: String?

    @Option(help: ArgumentHelp("Each is told up to so much later, by chance. (default: 0s)", valueName: "duration"))
    var jitter: String?

    @Option(help: ArgumentHelp("What is still there then is reset. (default: none)", valueName: "duration"))
    var deadline: String?

    @Flag(help: "Begin it, print its id, and leave it to itself.")
    var background = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, body in
            let interruption = self.preview || self.background ? nil : try Interruption()
            let answer = try await desk.session.send(try ControlRequest(.post, "/v1/drains", json: body))
            if self.preview {
                if let warning = try answer.decoded(BulkAnswer.self).warning { desk.note(warning) }
                return try await desk.show(answer, as: BulkAnswer.self) { [Self.text($0)] }
            }
            let drain = try answer.decoded(Drain.self)
            if let warning = drain.warning { desk.note(warning) }
            guard let interruption else { return try await desk.show(answer, as: Drain.self) { [$0.id] } }
            if !desk.printsJSON { try await desk.print(DrainWatch.plan(drain)) }
            try await DrainWatch(desk: desk, id: drain.id).untilEnd(interruption)
        }
    }

    private static func text(_ preview: BulkAnswer) -> String {
        let time = preview.takesMs.map { ", told within \(DurationText(.milliseconds($0)))" } ?? ""
        return "\(preview.matched) connections\(time)"
    }

    private func request(_ reader: inout OptionReader) -> BulkRequest? {
        var body = BulkRequest()
        let selection = self.which.selection(&reader)
        let selector = Dictionary(grouping: selection.parameters, by: \.name).mapValues { values in
            JSONValue.array(values.map { .string($0.value) })
        }
        if selector.isEmpty, !self.all {
            reader.note(
                "sluice drain", expected: "which connections are meant, or --all", found: "neither",
                remedy: "try --preview first: it only counts")
        }
        body.selector = selector.isEmpty ? nil : selector
        body.all = self.all ? true : nil
        body.preview = self.preview ? true : nil
        body.code = reader.value("--code", self.code, ValueSyntax<CloseCode>.closeCode).map { Int($0.rawValue) }
        body.reason = reader.value("--reason", self.reason, ValueSyntax<String>.closeReason)
        body.abort = self.abort ? true : nil
        body.ratePerSecond = reader.value("--rate", self.rate, .integer(1...100_000)).map { Double($0) }
        body.jitterMs = OpenOptions.milliseconds("--jitter", self.jitter, &reader)
        body.deadlineMs = OpenOptions.milliseconds("--deadline", self.deadline, &reader)
        return body
    }
}

/// Follows a drain to its end; a signal cancels it.
struct DrainWatch {
    private static let interval = Duration.milliseconds(200)

    let desk: CommandContext
    let id: String

    private var path: String { "/v1/drains/\(ControlRequest.segment(self.id))" }

    func untilEnd(_ interruption: Interruption) async throws {
        try await interruption.guarding {
            try await self.follow()
        } cancelled: {
            _ = try await self.desk.session.send(ControlRequest(.delete, self.path))
            throw ControlFailure(.cancelled, "the drain \(self.id) is cancelled; what was told to end, ends")
        }
    }

    private func follow() async throws {
        while true {
            let answer = try await self.desk.session.send(ControlRequest(.get, self.path))
            let drain = try answer.decoded(Drain.self)
            let isOver = drain.endedAt != nil
            if isOver || self.desk.printsJSON {
                try await self.finish(drain, answer, isOver: isOver)
            } else if Terminal.showsOutput {
                let line = CellText.cut(Self.text(drain), cells: Terminal.columns)
                try await self.desk.write(Array("\r\(line)\u{1B}[K".utf8))
            }
            if isOver { return }
            try await Task.sleep(for: Self.interval)
        }
    }

    private func finish(_ drain: Drain, _ answer: ControlResponse, isOver: Bool) async throws {
        if self.desk.printsJSON { return try await self.desk.print(json: answer.body) }
        try await self.desk.print((Terminal.showsOutput ? "\r\u{1B}[K" : "") + Self.text(drain))
    }

    /// Describes a drain before it starts.
    static func plan(_ drain: Drain) -> String {
        let end = drain.lastToldAt.map { ", the last is told at \($0)" } ?? ""
        let deadline = drain.deadlineAt.map { ", what is left is reset at \($0)" } ?? ""
        return TerminalText.line("drain \(drain.id): \(drain.total) connections\(end)\(deadline)")
    }

    private static func text(_ drain: Drain) -> String {
        TerminalText.line(
            "drain \(drain.id) \(drain.state): \(drain.told) of \(drain.total) told, \(drain.remaining) remain, \(drain.cut) reset"
        )
    }
}
