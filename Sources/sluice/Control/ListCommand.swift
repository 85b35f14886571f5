import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore

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

    private static func list(_ listing: ConnectionListing, _ desk: ControlDesk) async throws {
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
