import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import Synchronization

/// `sluice ls`: the connections of a running gateway.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the connections of a running gateway.",
        discussion: """
            A row for each: what it is and does, bytes received from and sent to its peer, bytes that wait either way, round trip of \
            the last ping, time without data, age, and how it ended, its description and labels. Where a row is wider than the \
            terminal, the least important columns are left out.

            With --json, each page of at most 1000 is a line, as the gateway answers it.

            EXAMPLES
              sluice ls
              sluice ls --state any --label team=blue
              sluice ls --watch --sort -bytes
              sluice ls --json | jq -r '.items[].id'

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Which")
    var which: SelectionOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "id, bytes, receivedBytes, sentBytes, queuedBytes, rtt, idle or age; -bytes is the largest first.",
            valueName: "key"))
    var sort: String?

    @Option(help: ArgumentHelp("At most so many. (default: all)", valueName: "number"))
    var limit: String?

    @Option(
        help: ArgumentHelp("With --json: only these members, separated by commas.", valueName: "names"))
    var fields: String?

    @Flag(name: .shortAndLong, help: "Show the list again and again, until Ctrl-C.")
    var watch = false

    @Option(help: ArgumentHelp("Between two of them, 100ms to 1h. (default: 2s)", valueName: "duration"))
    var interval: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Plan {
        var listing: ConnectionListing
        var interval: Duration
    }

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            guard self.watch else { return try await Self.list(plan.listing, desk) }
            try await ConnectionWatch(desk: desk, listing: plan.listing, interval: plan.interval).untilInterrupted()
        }
    }

    private func plan(_ reader: inout OptionReader) -> Plan? {
        let selection = self.which.selection(&reader)
        let limit = reader.value("--limit", self.limit, .integer(1...100_000_000))
        let interval = reader.value("--interval", self.interval, .duration(.milliseconds(100) ... .seconds(3600)))
        if self.fields != nil, !self.control.json {
            reader.note(
                "--fields", expected: "--json beside it", found: "none", remedy: "the table has its own columns")
        }
        let fields = self.control.json ? self.fields : ConnectionTable.fields.joined(separator: ",")
        return Plan(
            listing: ConnectionListing(selection, sort: self.sort, fields: fields, limit: limit),
            interval: interval ?? .seconds(2))
    }

    private static func list(_ listing: ConnectionListing, _ desk: CommandContext) async throws {
        var pages = listing.pages(of: desk.session)
        var layout: TextTable.Layout?
        while let (answer, page) = try await pages.next() {
            if desk.printsJSON {
                try await desk.print(json: answer.body)
                continue
            }
            let table = ConnectionTable(page.items).table
            let shown = layout ?? table.layout(cells: desk.cells)
            let titles = layout == nil ? [table.title(shown, colors: desk.colors)] : []
            layout = shown
            try await desk.print(titles + table.lines(shown, colors: desk.colors))
        }
    }
}

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

/// Options that say which connections are meant. Of several values of one, any; of several options, all must hold.
struct SelectionOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("stream or ws, as in the table; ws is also webSocket.", valueName: "kind"),
        completion: .list(["stream", "ws"]))
    var kind: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "opening, open, closing, closed, or any. (default: all but closed)", valueName: "state"),
        completion: .list(["opening", "open", "closing", "closed", "any"]))
    var state: [String] = []

    @Option(
        help: ArgumentHelp("accepted by a listener, or opened by the gateway.", valueName: "accepted|opened"),
        completion: .list(["accepted", "opened"]))
    var direction: String?

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the listener.", valueName: "name"))
    var listener: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the route.", valueName: "name"))
    var route: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the upstream.", valueName: "name"))
    var upstream: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Address of the peer, with its port or without.", valueName: "address"))
    var peer: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A label that it must have. Repeat: all of them.", valueName: "name[=value]"))
    var label: [String] = []

    @Option(help: ArgumentHelp("Open for at least this long, like 5m.", valueName: "duration"))
    var minAge: String?

    @Option(help: ArgumentHelp("Open for at most this long.", valueName: "duration"))
    var maxAge: String?

    @Option(help: ArgumentHelp("Without data for at least this long.", valueName: "duration"))
    var minIdle: String?

    @Flag(help: "Only those whose data has nowhere to go just now.")
    var stalled = false

    func selection(_ reader: inout OptionReader) -> ConnectionSelection {
        var selection = ConnectionSelection()
        selection.kinds = self.kind
        selection.states = self.state
        selection.direction = self.direction
        selection.listeners = self.listener
        selection.routes = self.route
        selection.upstreams = self.upstream
        selection.peers = self.peer
        selection.labels = self.label
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400 * 365))
        selection.minimumAge = reader.value("--min-age", self.minAge, span)
        selection.maximumAge = reader.value("--max-age", self.maxAge, span)
        selection.minimumIdle = reader.value("--min-idle", self.minIdle, span)
        selection.isStalled = self.stalled
        return selection
    }
}

/// `sluice ls --watch`: the list, drawn anew again and again.
struct ConnectionWatch {
    let desk: CommandContext
    let listing: ConnectionListing
    let interval: Duration

    private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    /// On a terminal in place; elsewhere one list below the other.
    private var drawsInPlace: Bool { Terminal.showsOutput && !self.desk.printsJSON }

    func untilInterrupted() async throws {
        // Time for the terminal to accept the remaining output.
        let signals = try ProcessSignals(patience: .seconds(3))
        let watching = Task { try await self.watch() }
        let listening = Task {
            for await _ in signals.wishes { watching.cancel() }
        }
        if self.drawsInPlace { try await self.desk.write(Array(Self.enter.utf8)) }
        let result = await watching.result
        listening.cancel()
        if self.drawsInPlace { try? await self.desk.write(Array(Self.leave.utf8)) }
        do {
            try result.get()
        } catch is CancellationError {
            // The requested end.
        } catch let failure as ControlFailure where failure.kind == .cancelled {
        }
    }

    private func watch() async throws {
        var lines: [String] = []
        var isFirst = true
        while true {
            do throws(ControlFailure) {
                lines = try await self.round()
            } catch {
                // Once it was there, it may come back.
                guard !isFirst, self.drawsInPlace, [.noConnection, .later].contains(error.kind) else { throw error }
                try await self.draw(lines, status: error.text)
                try await Task.sleep(for: self.interval)
                continue
            }
            isFirst = false
            if self.drawsInPlace {
                try await self.draw(lines, status: nil)
            } else if !lines.isEmpty {
                try await self.desk.print(lines + [""])
            }
            try await Task.sleep(for: self.interval)
        }
    }

    /// - Returns: the lines of one list; none where it was written as JSON.
    private func round() async throws(ControlFailure) -> [String] {
        var listing = self.listing
        if self.drawsInPlace {
            let rows = max(1, Terminal.rows - 3)
            listing.limit = min(listing.limit ?? rows, rows)
        }
        var pages = listing.pages(of: self.desk.session)
        var lines: [String] = []
        while let (answer, page) = try await pages.next() {
            guard !self.desk.printsJSON else {
                do {
                    try await self.desk.print(json: answer.body)
                } catch {
                    throw ControlFailure(.cancelled, "\(error)")
                }
                continue
            }
            let table = ConnectionTable(page.items).table
            let all = table.lines(cells: self.desk.cells, colors: self.desk.colors)
            lines += lines.isEmpty ? all : Array(all.dropFirst())
        }
        return lines
    }

    private func draw(_ lines: [String], status: String?) async throws {
        let cells = Terminal.columns
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: false).timeZone(separator: .omitted))
        let head = status ?? "\(self.desk.session.address), \(max(0, lines.count - 1)) shown at \(time), Ctrl-C ends"
        let shown = CellText.cut(TerminalText.line(head, limit: 400), cells: cells)
        let ink: Ink = status == nil ? .faint : .red
        let rows = [self.desk.colors ? ink.drawn(shown) : shown, ""] + lines
        let text = rows.prefix(Terminal.rows).map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        try await self.desk.write(Array(("\u{1B}[H" + text + "\u{1B}[J").utf8))
    }
}

/// Signals as a wish to end work in order; a second one ends the process at once.
final class Interruption: Sendable {
    private struct State {
        var isAsked = false
        var cancel: (@Sendable () -> Void)?
    }

    /// From a signal to the end at the latest: work is ended in order, and the gateway is asked how it ended.
    private static let patience = Duration.seconds(30)

    private let state = Mutex(State())

    /// From here on signals are heard, before there is any work too.
    init() throws {
        let signals = try ProcessSignals(patience: Self.patience)
        Task {
            for await _ in signals.wishes { self.happened() }
        }
    }

    private func happened() {
        let (isSecond, cancel) = self.state.withLock { state in
            defer { state.isAsked = true }
            return (state.isAsked, state.cancel)
        }
        if isSecond { exit(130) }
        cancel?()
    }

    /// - Parameter cancelled: runs after a signal, instead of returning the result of `work`.
    func guarding<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value, cancelled: () async throws -> Value
    ) async throws -> Value {
        let working = Task { try await work() }
        let isLate = self.state.withLock { state in
            state.cancel = { working.cancel() }
            return state.isAsked
        }
        if isLate { working.cancel() }
        do {
            return try await working.value
        } catch let error where working.isCancelled && Self.isCancellation(error) {
            return try await cancelled()
        }
    }

    private static func isCancellation(_ error: any Error) -> Bool {
        error is CancellationError || (error as? ControlFailure)?.kind == .cancelled
    }
}
