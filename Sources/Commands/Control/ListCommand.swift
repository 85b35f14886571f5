import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration

/// `sluice ls`: lists the connections of a running gateway.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the connections of a running gateway.",
        discussion: """
            Prints a table: kind, state, peer, user if one is known, bytes received from and sent to the peer, queued bytes, round \
            trip of the last ping, idle time, age, and a note with termination reason, description and labels. If the table is wider \
            than the terminal, the least important columns are omitted.

            In a cluster, lists the connections of all nodes; their IDs name the node, like 17@b, and every node understands \
            them.

            With --json, prints each page of up to 1000 connections as one line.

            EXAMPLES
              sluice ls
              sluice ls --node b --sort -age
              sluice ls --state any --label team=blue
              sluice ls --user ada
              sluice ls --watch --sort -bytes
              sluice ls --json | jq -r '.items[].id'

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Selection")
    var which: SelectionOptions

    @OptionGroup(title: "Cluster")
    var nodes: NodeOptions

    @Option(
        parsing: .unconditional,
        help: .value(
            "key",
            "Sort by id, bytes, receivedBytes, sentBytes, queuedBytes, rtt, idle or age; a leading - sorts descending.")
    )
    var sort: String?

    @Option(help: .value("number", "Maximum number of connections. (default: all)"))
    var limit: String?

    @Option(help: .value("names", "With --json: comma-separated names of members to include."))
    var fields: String?

    @Flag(name: .shortAndLong, help: "Refresh the list until Ctrl-C.")
    var watch = false

    @Option(help: .value("duration", "Interval of --watch, 100ms to 1h. (default: 2s)"))
    var interval: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.plan) { context, plan in
            guard self.watch else { return try await Self.list(plan.listing, context) }
            try await ConnectionWatch(context: context, listing: plan.listing, interval: plan.interval)
                .untilInterrupted()
        }
    }

    private func plan(_ reader: inout OptionReader) -> (listing: ConnectionListing, interval: Duration)? {
        var selection = self.which.selection(&reader)
        selection.nodes = self.nodes.node
        let limit = reader.value("--limit", self.limit, .integer(1...100_000_000))
        let interval = reader.value("--interval", self.interval, .duration(.milliseconds(100) ... .seconds(3600)))
        if self.fields != nil, !self.control.json {
            reader.reject("--fields", "requires --json")
        }
        let fields = self.control.json ? self.fields : ConnectionTable.fields.joined(separator: ",")
        let listing = ConnectionListing(selection, sort: self.sort, fields: fields, limit: limit)
        return (listing, interval ?? .seconds(2))
    }

    private static func list(_ listing: ConnectionListing, _ context: CommandContext) async throws {
        var pages = listing.pages(of: context.session)
        var layout: TextTable.Layout?
        while let (answer, page) = try await pages.next() {
            if context.printsJSON {
                try await context.print(json: answer.body)
                continue
            }
            context.note(unreachable: page.unreachable)
            let table = ConnectionTable(page.items).table
            let shown = layout ?? table.layout(cells: context.columns)
            let titles = layout == nil ? [table.title(shown, colors: context.colors)] : []
            layout = shown
            try await context.print(titles + table.lines(shown, colors: context.colors))
        }
    }
}

/// `sluice show`: shows all properties of a connection.
struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all properties of a connection.",
        discussion: """
            Prints one property per line: state, peer, bytes, messages and frames in each direction, queued data, round trips, \
            TLS, the opening handshake. For a closed connection, prints what the gateway still keeps, with exit code 66.

            EXAMPLES
              sluice show 17
              sluice show 17u --json

            \(ControlHelp.exitCodes)
            """)

    @Option(help: .value("names", "With --json: comma-separated names of members to include."))
    var fields: String?

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.parameters) { context, parameters in
            do {
                let request = ControlRequest(.get, ConnectionPath.connection(self.target.id), parameters)
                try await context.perform(request, as: Connection.self) { ConnectionDetails($0).lines }
            } catch let failure as ControlFailure {
                guard let record = failure.problem?.connection else { throw failure }
                if !context.printsJSON { try await context.print(ConnectionDetails(record).lines) }
                // The properties are printed above, so the remedy to show them would mislead.
                var shown = ControlFailure(
                    failure.kind, failure.text, remedy: "'sluice ls --state closed' lists closed connections")
                (shown.document, shown.problem) = (failure.document, failure.problem)
                throw shown
            }
        }
    }

    private func parameters(_ reader: inout OptionReader) -> [ControlRequest.Parameter]? {
        if self.fields != nil, !self.target.control.json {
            reader.reject("--fields", "requires --json")
        }
        return self.fields.map { [ControlRequest.Parameter("fields", $0)] } ?? []
    }
}

/// Options that select connections: they match any value of a repeated option, and all options that are given.
struct SelectionOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: .value("kind", "Kind: stream, ws (also webSocket) or http. Repeatable."),
        completion: .list(["stream", "ws", "http"]))
    var kind: [String] = []

    @Option(
        parsing: .singleValue,
        help: .value("state", "State: opening, open, closing, closed or any. Repeatable. (default: all but closed)"),
        completion: .list(["opening", "open", "closing", "closed", "any"]))
    var state: [String] = []

    @Option(
        help: .value("accepted|opened", "Direction: accepted by a listener, or opened by the gateway."),
        completion: .list(["accepted", "opened"]))
    var direction: String?

    @Option(parsing: .singleValue, help: .value("name", "Name of the listener. Repeatable."))
    var listener: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Name of the route. Repeatable."))
    var route: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Name of the upstream. Repeatable."))
    var upstream: [String] = []

    @Option(parsing: .singleValue, help: .value("address", "Address of the peer, with or without port. Repeatable."))
    var peer: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Name of the client's user. Repeatable."))
    var user: [String] = []

    @Option(parsing: .singleValue, help: .value("name[=value]", "Label that must be set. Repeatable: all must be set."))
    var label: [String] = []

    @Option(help: .value("duration", "Minimum age, like 5m."))
    var minAge: String?

    @Option(help: .value("duration", "Maximum age."))
    var maxAge: String?

    @Option(help: .value("duration", "Minimum idle time."))
    var minIdle: String?

    @Flag(help: "Only connections stalled by backpressure.")
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
        selection.users = self.user
        selection.labels = self.label
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400 * 365))
        selection.minimumAge = reader.value("--min-age", self.minAge, span)
        selection.maximumAge = reader.value("--max-age", self.maxAge, span)
        selection.minimumIdle = reader.value("--min-idle", self.minIdle, span)
        selection.isStalled = self.stalled
        let texts = [
            ("--kind", self.kind), ("--state", self.state), ("--listener", self.listener), ("--route", self.route),
            ("--upstream", self.upstream), ("--peer", self.peer), ("--user", self.user), ("--label", self.label),
        ]
        reader.requireText("--direction", self.direction)
        for (option, values) in texts { reader.requireText(option, values) }
        return selection
    }
}

/// `sluice ls --watch`: refreshes the list periodically.
private struct ConnectionWatch {
    let context: CommandContext
    let listing: ConnectionListing
    let interval: Duration

    private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    /// Redraws in place on a terminal; elsewhere prints one list after the other.
    private var drawsInPlace: Bool { Terminal.isOutputTerminal && !self.context.printsJSON }

    func untilInterrupted() async throws {
        // Bounds the time that writing to a blocked terminal may delay the exit.
        let signals = try ProcessSignals(patience: .seconds(3))
        let watching = Task { try await self.watch() }
        let listening = Task {
            for await _ in signals.events { watching.cancel() }
        }
        if self.drawsInPlace { try await self.context.write(Array(Self.enter.utf8)) }
        let result = await watching.result
        listening.cancel()
        if self.drawsInPlace { try? await self.context.write(Array(Self.leave.utf8)) }
        do {
            try result.get()
        } catch is CancellationError {
            // Ctrl-C ends the command successfully.
        } catch let failure as ControlFailure where failure.kind == .cancelled {
        }
    }

    private func watch() async throws {
        var screen = Screen()
        var isFirst = true
        while true {
            do throws(ControlFailure) {
                screen = try await self.fetch()
            } catch {
                // After the first success, an unreachable gateway may come back.
                guard !isFirst, self.drawsInPlace, [.noConnection, .unavailable].contains(error.kind) else {
                    throw error
                }
                try await self.draw(screen, failure: error.text)
                try await Task.sleep(for: self.interval)
                continue
            }
            isFirst = false
            if self.drawsInPlace {
                try await self.draw(screen, failure: nil)
            } else if !self.context.printsJSON {
                self.context.note(unreachable: screen.unreachable)
                try await self.context.print(screen.lines + [""])
            }
            try await Task.sleep(for: self.interval)
        }
    }

    /// One list.
    private struct Screen {
        /// Empty if it was printed as JSON.
        var lines: [String] = []
        /// Nodes of the cluster that did not answer, in the order of their names.
        var unreachable: [String] = []
    }

    private func fetch() async throws(ControlFailure) -> Screen {
        var listing = self.listing
        if self.drawsInPlace {
            let rows = max(1, Terminal.rows - 3)
            listing.limit = min(listing.limit ?? rows, rows)
        }
        var pages = listing.pages(of: self.context.session)
        var screen = Screen()
        while let (answer, page) = try await pages.next() {
            guard !self.context.printsJSON else {
                do {
                    try await self.context.print(json: answer.body)
                } catch {
                    throw ControlFailure(.cancelled, "\(error)")
                }
                continue
            }
            let table = ConnectionTable(page.items).table
            let all = table.lines(cells: self.context.columns, colors: self.context.colors)
            screen.lines += screen.lines.isEmpty ? all : Array(all.dropFirst())
            screen.unreachable = Set(screen.unreachable + (page.unreachable ?? [])).sorted()
        }
        return screen
    }

    /// - Parameter failure: why this is not the present list.
    private func draw(_ screen: Screen, failure: String?) async throws {
        let cells = Terminal.columns
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: false).timeZone(separator: .omitted))
        let count = max(0, screen.lines.count - 1)
        let head = failure ?? "\(self.context.session.address), \(count) shown at \(time), Ctrl-C exits"
        let warning = CommandContext.missing(from: screen.unreachable) ?? ""
        func row(_ text: String, _ style: TextStyle) -> String {
            let shown = CellText.truncate(TerminalText.singleLine(text, limit: 400), cells: cells)
            return self.context.colors && !shown.isEmpty ? style.applied(to: shown) : shown
        }
        let rows = [row(head, failure == nil ? .faint : .red), row(warning, .red)] + screen.lines
        let text = rows.prefix(Terminal.rows).map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        try await self.context.write(Array(("\u{1B}[H" + text + "\u{1B}[J").utf8))
    }
}
