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

            In a cluster, a drain is of the node that answers, unless --node or --all-nodes name others: those are drained at the \
            same time, or with --one-by-one one after the other.

            EXAMPLES
              sluice drain --route chat --preview
              sluice drain --route chat --rate 50 --jitter 2s --deadline 5m \\
                --reason 'maintenance'
              sluice drain --all --all-nodes --one-by-one --deadline 5m

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

    @Option(parsing: .singleValue, help: .value("name", "Drain this node of a cluster. Repeatable."))
    var node: [String] = []

    @Flag(help: "Drain all nodes of the cluster.")
    var allNodes = false

    @Flag(help: "Drain one node after the other.")
    var oneByOne = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { context, body in
            let interruption = self.preview || self.background ? nil : try Interruption()
            for body in try await self.bodies(body, context) { try await self.perform(body, context, interruption) }
        }
    }

    /// One body for each node with --one-by-one, else one for all.
    private func bodies(_ body: BulkRequest, _ context: CommandContext) async throws -> [BulkRequest] {
        guard self.oneByOne else { return [body] }
        var names = self.node
        if self.allNodes {
            let answer = try await context.session.send(ControlRequest(.get, "/v1/nodes"))
            names = try answer.decoded(NodeList.self).items.map(\.name)
        }
        return names.map { name in
            var body = body
            body.nodes = [name]
            return body
        }
    }

    private func perform(_ body: BulkRequest, _ context: CommandContext, _ interruption: Interruption?) async throws {
        let answer = try await context.session.send(try ControlRequest(.post, "/v1/drains", json: body))
        if self.preview {
            let preview = try answer.decoded(BulkAnswer.self)
            if let warning = preview.warning { context.note(warning) }
            context.note(unreachable: preview.unreachable)
            return try await context.show(answer, as: BulkAnswer.self) { [Self.text($0)] }
        }
        let drains = try self.drains(answer, body, context)
        for warning in drains.compactMap(\.warning) { context.note(warning) }
        guard let interruption else {
            return context.printsJSON
                ? try await context.print(json: answer.body) : try await context.print(drains.map(\.id))
        }
        if !context.printsJSON { try await context.print(drains.map(DrainWatch.plan)) }
        try await DrainWatch(context: context, ids: drains.map(\.id)).run(interruption)
    }

    /// The drain that was started, or that of each node.
    private func drains(_ answer: ControlResponse, _ body: BulkRequest, _ context: CommandContext) throws -> [Drain] {
        guard body.nodes != nil else { return [try answer.decoded(Drain.self)] }
        let list = try answer.decoded(DrainList.self)
        if let nodes = list.unreachable, !nodes.isEmpty {
            context.note("not drained, because they did not answer: \(nodes.joined(separator: ", "))")
        }
        return list.items
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
        if self.allNodes, !self.node.isEmpty { reader.reject("--all-nodes", "cannot be combined with --node") }
        if self.oneByOne, !self.allNodes, self.node.count < 2 {
            reader.reject("--one-by-one", "requires --all-nodes or several --node")
        }
        if self.oneByOne, self.background { reader.reject("--one-by-one", "cannot be combined with --background") }
        body.nodes = self.allNodes ? ["*"] : self.node.isEmpty ? nil : self.node
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

/// Follows drains until they have ended. A signal cancels them.
private struct DrainWatch {
    private static let interval = Duration.milliseconds(200)

    let context: CommandContext
    /// Those of several nodes run at the same time.
    let ids: [String]

    private static func path(_ id: String) -> String { "/v1/drains/\(ControlRequest.segment(id))" }

    func run(_ interruption: Interruption) async throws {
        try await interruption.run {
            for id in self.ids { try await self.follow(id) }
        } cancelled: {
            for id in self.ids { try await self.cancel(id) }
            throw ControlFailure(
                .cancelled,
                "drain \(self.ids.joined(separator: ", ")) is cancelled; connections already notified still close")
        }
    }

    private func cancel(_ id: String) async throws {
        do {
            _ = try await self.context.session.send(ControlRequest(.delete, Self.path(id)))
        } catch {
            // One of several drains may have ended already.
            guard self.ids.count > 1, error.problem?.status == 409 else { throw error }
        }
    }

    private func follow(_ id: String) async throws {
        while true {
            let answer = try await self.context.session.send(ControlRequest(.get, Self.path(id)))
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
        let end = drain.lastNotifiedAt.map { ", last notified at \($0)" } ?? ""
        let deadline = drain.deadlineAt.map { ", remaining reset at \($0)" } ?? ""
        return TerminalText.singleLine("drain \(drain.id): \(drain.total) connections\(end)\(deadline)")
    }

    private static func text(_ drain: Drain) -> String {
        TerminalText.singleLine(
            "drain \(drain.id) \(drain.state): \(drain.notified) of \(drain.total) notified, \(drain.remaining) remaining, \(drain.cut) reset"
        )
    }
}
