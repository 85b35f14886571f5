import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// `sluice drain`: closes connections gradually.
struct DrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Close connections gradually, and follow the progress.",
        discussion: """
            Select connections, or use --all. Connections are notified at --rate, each with a random delay of up to --jitter. \
            The gateway reports when the last one will be notified, and warns if the deadline is earlier. Ctrl-C cancels the rest of \
            the drain; with --background it continues in the gateway, and its ID is printed.

            EXAMPLES
              sluice drain --route chat --preview
              sluice drain --route chat --rate 50 --jitter 2s --deadline 5m \\
                --reason 'maintenance'

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Selection")
    var which: SelectionOptions

    @Flag(help: "Drain all connections.")
    var all = false

    @Flag(help: "Only count the connections.")
    var preview = false

    @Option(help: .value("code", "Close code. (default: 1001)"))
    var code: String?

    @Option(help: .value("text", "Close reason, at most 123 bytes."))
    var reason: String?

    @Flag(help: "Close with a reset.")
    var abort = false

    @Option(help: .value("number", "Connections per second, 1 to 100000. (default: 100)"))
    var rate: String?

    @Option(help: .value("duration", "Maximum random delay of each connection. (default: 0s)"))
    var jitter: String?

    @Option(help: .value("duration", "Reset the remaining connections after this time. (default: none)"))
    var deadline: String?

    @Flag(help: "Start the drain, print its ID and exit.")
    var background = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { context, body in
            let interruption = self.preview || self.background ? nil : try Interruption()
            let answer = try await context.session.send(try ControlRequest(.post, "/v1/drains", json: body))
            if self.preview {
                if let warning = try answer.decoded(BulkAnswer.self).warning { context.note(warning) }
                return try await context.show(answer, as: BulkAnswer.self) { [Self.text($0)] }
            }
            let drain = try answer.decoded(Drain.self)
            if let warning = drain.warning { context.note(warning) }
            guard let interruption else { return try await context.show(answer, as: Drain.self) { [$0.id] } }
            if !context.printsJSON { try await context.print(DrainWatch.plan(drain)) }
            try await DrainWatch(context: context, id: drain.id).run(interruption)
        }
    }

    private static func text(_ preview: BulkAnswer) -> String {
        let time = preview.takesMs.map { ", notified within \(DurationText(.milliseconds($0)))" } ?? ""
        return "\(preview.matched) connections\(time)"
    }

    private func request(_ reader: inout OptionReader) -> BulkRequest? {
        var body = BulkRequest()
        let selection = self.which.selection(&reader)
        let selector = Dictionary(grouping: selection.parameters, by: \.name).mapValues { values in
            JSONValue.array(values.map { .string($0.value) })
        }
        if selector.isEmpty, !self.all {
            reader.reject(
                "sluice drain", "expected a selection of connections, or --all",
                remedy: "--preview only counts the connections")
        }
        body.selector = selector.isEmpty ? nil : selector
        body.all = self.all ? true : nil
        body.preview = self.preview ? true : nil
        body.code = reader.value("--code", self.code, ValueSyntax<CloseCode>.closeCode).map { Int($0.rawValue) }
        body.reason = reader.value("--reason", self.reason, ValueSyntax<String>.closeReason)
        body.abort = self.abort ? true : nil
        body.ratePerSecond = reader.value("--rate", self.rate, .integer(1...100_000)).map { Double($0) }
        body.jitterMs = reader.milliseconds("--jitter", self.jitter)
        body.deadlineMs = reader.milliseconds("--deadline", self.deadline)
        return body
    }
}

/// Follows a drain until it ends. A signal cancels it.
private struct DrainWatch {
    private static let interval = Duration.milliseconds(200)

    let context: CommandContext
    let id: String

    private var path: String { "/v1/drains/\(ControlRequest.segment(self.id))" }

    func run(_ interruption: Interruption) async throws {
        try await interruption.run {
            try await self.follow()
        } cancelled: {
            _ = try await self.context.session.send(ControlRequest(.delete, self.path))
            throw ControlFailure(
                .cancelled, "drain \(self.id) is cancelled; connections already notified still close")
        }
    }

    private func follow() async throws {
        while true {
            let answer = try await self.context.session.send(ControlRequest(.get, self.path))
            let drain = try answer.decoded(Drain.self)
            let isOver = drain.endedAt != nil
            if isOver || self.context.printsJSON {
                try await self.print(drain, answer)
            } else if Terminal.isOutputTerminal {
                let line = CellText.truncate(Self.text(drain), cells: Terminal.columns)
                try await self.context.write(Array("\r\(line)\u{1B}[K".utf8))
            }
            if isOver { return }
            try await Task.sleep(for: Self.interval)
        }
    }

    private func print(_ drain: Drain, _ answer: ControlResponse) async throws {
        if self.context.printsJSON { return try await self.context.print(json: answer.body) }
        try await self.context.print((Terminal.isOutputTerminal ? "\r\u{1B}[K" : "") + Self.text(drain))
    }

    /// Describes a drain that has just been started.
    static func plan(_ drain: Drain) -> String {
        let end = drain.lastToldAt.map { ", last notified at \($0)" } ?? ""
        let deadline = drain.deadlineAt.map { ", remaining reset at \($0)" } ?? ""
        return TerminalText.singleLine("drain \(drain.id): \(drain.total) connections\(end)\(deadline)")
    }

    private static func text(_ drain: Drain) -> String {
        TerminalText.singleLine(
            "drain \(drain.id) \(drain.state): \(drain.told) of \(drain.total) notified, \(drain.remaining) remaining, \(drain.cut) reset"
        )
    }
}
