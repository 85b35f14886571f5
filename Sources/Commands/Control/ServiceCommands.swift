import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// `sluice health`: reports the health of a running gateway by exit code.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Check the health of a running gateway.",
        discussion: """
            Exits with 0 if the gateway accepts connections, 75 while it starts or drains, and 69 if it cannot be reached: for \
            container health checks, and for scripts that wait for a gateway to start. Needs no token.

            EXAMPLES
              sluice health
              sluice health --live
              until sluice health 2> /dev/null; do sleep 1; done

            \(ControlHelp.exitCodes)
            """)

    /// Response timeout: longer than the gateway's own timeout for its event loops.
    private static let timeout = Duration.seconds(5)

    @Flag(help: "Check liveness only: also succeeds while the gateway starts or drains.")
    var live = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { context in
            var request = ControlRequest(.get, self.live ? "/livez" : "/readyz")
            request.idleTimeout = Self.timeout
            try await context.perform(request, as: ServiceHealth.self) { ["\($0.status): \($0.phase)"] }
        }
    }
}

/// `sluice reload`: reloads the configuration file of a running gateway.
struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Reload the configuration file of a running gateway.",
        discussion: """
            Prints the changes, one value per line. A file with problems changes nothing.

            EXAMPLES
              sluice reload --dry-run
              sluice reload

            \(ControlHelp.exitCodes)
            """)

    @Flag(help: "Only print what would change.")
    var dryRun = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { context in
            let parameters = self.dryRun ? [ControlRequest.Parameter("dryRun", "true")] : []
            let request = ControlRequest(.post, "/v1/configuration:reload", parameters)
            try await context.perform(request, as: ConfigurationDifference.self) { DifferenceText.lines($0) }
        }
    }
}

/// `sluice listeners`, `sluice routes` and `sluice upstreams`: lists, creates, changes and deletes entries at run time.
struct EntriesCommand<Kind: EntryKind>: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: Kind.section.rawValue,
            abstract: "List or change the \(Kind.section.rawValue) of a running gateway.",
            discussion: EntryAction.discussion(Kind.section.rawValue, Kind.section.singularName))
    }

    @OptionGroup
    private var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { context, action in
            try await action.perform(at: "/v1/\(Kind.section.rawValue)", context)
        }
    }
}

/// The list of the configuration that a command is for.
protocol EntryKind {
    static var section: ConfigurationSection { get }
}

enum ListenerEntries: EntryKind { static let section = ConfigurationSection.listeners }
enum RouteEntries: EntryKind { static let section = ConfigurationSection.routes }
enum UpstreamEntries: EntryKind { static let section = ConfigurationSection.upstreams }

/// Operation on the listeners, routes or upstreams of the running configuration.
private enum EntryAction {
    case list
    case show(String)
    case put(String, [UInt8], dryRun: Bool)
    case patch(String, [UInt8], dryRun: Bool)
    case delete(String, dryRun: Bool)

    /// - Parameter path: path of the collection, like `/v1/listeners`.
    func perform(at path: String, _ context: CommandContext) async throws {
        switch self {
        case .list:
            try await context.perform(ControlRequest(.get, path), as: ConfigurationEntries.self) { entries in
                EntryTable(entries).table.lines(cells: context.columns, colors: context.colors)
            }
        case .show(let name):
            try await context.perform(ControlRequest(.get, Self.one(path, name)), as: JSONValue.self) { Self.sheet($0) }
        case .put(let name, let body, let dryRun):
            try await Self.change(.put, path, name, body, dryRun: dryRun, context)
        case .patch(let name, let body, let dryRun):
            try await Self.change(.patch, path, name, body, dryRun: dryRun, context)
        case .delete(let name, let dryRun):
            try await Self.change(.delete, path, name, nil, dryRun: dryRun, context)
        }
    }

    private static func one(_ path: String, _ name: String) -> String {
        "\(path)/\(ControlRequest.segment(name))"
    }

    private static func change(
        _ method: ControlRequest.Method, _ path: String, _ name: String, _ body: [UInt8]?, dryRun: Bool,
        _ context: CommandContext
    ) async throws {
        let parameters = dryRun ? [ControlRequest.Parameter("dryRun", "true")] : []
        var request = ControlRequest(method, self.one(path, name), parameters)
        if let body {
            request.body = Data(body)
            request.headers["Content-Type"] = "application/json"
        }
        let answer = try await context.session.send(request)
        if dryRun {
            return try await context.show(answer, as: ConfigurationDifference.self) { DifferenceText.lines($0) }
        }
        guard !answer.body.isEmpty else { return }
        try await context.show(answer, as: JSONValue.self) { Self.sheet($0) }
    }

    /// One line per key.
    private static func sheet(_ value: JSONValue) -> [String] {
        guard case .object(let members) = value else { return [TerminalText.singleLine(DifferenceText.text(value))] }
        let width = members.reduce(0) { max($0, $1.name.count) } + 2
        return members.map { member in
            CellText.fit(TerminalText.singleLine(member.name), cells: width)
                + TerminalText.singleLine(DifferenceText.text(member.value), limit: 4000)
        }
    }

    static func discussion(_ plural: String, _ one: String) -> String {
        """
        Prints a table, or with NAME one line per key. Changes take effect at once and last until the gateway restarts; \
        'sluice reload' returns to the configuration file.

        EXAMPLES
          sluice \(plural)
          sluice \(plural) NAME --json
          sluice \(plural) NAME --put \(one).json --dry-run
          sluice \(plural) NAME --delete

        \(ControlHelp.exitCodes)
        """
    }
}

/// Options that select an entry of the configuration and the operation on it.
private struct EntryOptions: ParsableArguments {
    @Argument(help: .value("NAME", "Name of the entry to show or change."))
    var name: String?

    @Flag(help: "Delete the entry.")
    var delete = false

    @Option(
        help: .value(
            "file", "Create or replace the entry with this JSON file, which has the keys of the configuration."),
        completion: .file())
    var put: String?

    @Option(help: .value("json", "Change some keys of the entry, like '{\"max-connections\": 10}'."))
    var patch: String?

    @Flag(help: "Only print what would change.")
    var dryRun = false

    func action(_ reader: inout OptionReader) throws -> EntryAction? {
        let changes = [self.delete, self.put != nil, self.patch != nil].filter(\.self).count
        if changes > 1 { reader.reject("--delete", "--delete, --put and --patch cannot be combined") }
        if changes == 1, self.name == nil {
            reader.reject("NAME", "required with --delete, --put and --patch")
        }
        if changes == 0, self.dryRun {
            reader.reject("--dry-run", "requires --delete, --put or --patch")
        }
        reader.requireText("NAME", self.name)
        guard reader.problems.isEmpty else { return nil }
        guard let name else { return .list }
        if self.delete { return .delete(name, dryRun: self.dryRun) }
        if let patch { return .patch(name, Array(patch.utf8), dryRun: self.dryRun) }
        guard let put else { return .show(name) }
        return .put(name, try OptionReader.file(put, "--put"), dryRun: self.dryRun)
    }
}
