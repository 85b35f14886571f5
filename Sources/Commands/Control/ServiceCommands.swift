import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// `sluice health`: whether a running gateway is well, in an exit code.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Tell whether a running gateway is well.",
        discussion: """
            Done (0) when it takes connections, 75 while it starts or drains, 69 when nothing answers: for the health check of a \
            container, and for scripts that wait until a gateway is up. Needs no token.

            EXAMPLES
              sluice health
              sluice health --live
              until sluice health 2> /dev/null; do sleep 1; done

            \(ControlHelp.exitCodes)
            """)

    /// How long nothing may come: more than the gateway gives its loops to answer.
    private static let patience = Duration.seconds(5)

    @Flag(help: "Only whether all of it still runs, which is so while it drains too.")
    var live = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            var request = ControlRequest(.get, self.live ? "/livez" : "/readyz")
            request.patience = Self.patience
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: ServiceHealth.self) { ["\($0.status): \($0.phase)"] }
        }
    }
}

/// `sluice reload`: a gateway reads its configuration's file again.
struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Let a running gateway read its configuration file again.",
        discussion: """
            Tells what changed, a line for each value; a file with a problem changes nothing.

            EXAMPLES
              sluice reload --dry-run
              sluice reload

            \(ControlHelp.exitCodes)
            """)

    @Flag(help: "Only tell what would change.")
    var dryRun = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let parameters = self.dryRun ? [ControlRequest.Parameter("dryRun", "true")] : []
            let answer = try await desk.session.send(
                ControlRequest(.post, "/v1/configuration:reload", parameters))
            try await desk.show(answer, as: ConfigurationDifference.self) { DifferenceText.lines($0) }
        }
    }
}

/// `sluice listeners`: lists, makes, changes and deletes listeners at run time.
struct ListenersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listeners",
        abstract: "List the listeners of a running gateway, or change them.",
        discussion: EntryAction.discussion("listeners", "listener"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/listeners", desk)
        }
    }
}

/// `sluice routes`: lists, makes, changes and deletes routes at run time.
struct RoutesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "routes",
        abstract: "List the routes of a running gateway, or change them.",
        discussion: EntryAction.discussion("routes", "route"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/routes", desk)
        }
    }
}

/// `sluice upstreams`: lists, makes, changes and deletes upstreams at run time.
struct UpstreamsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upstreams",
        abstract: "List the upstreams of a running gateway, or change them.",
        discussion: EntryAction.discussion("upstreams", "upstream"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/upstreams", desk)
        }
    }
}

/// Operation on entries of the running configuration.
enum EntryAction {
    case list
    case show(String)
    case put(String, [UInt8], dryRun: Bool)
    case patch(String, [UInt8], dryRun: Bool)
    case delete(String, dryRun: Bool)

    /// - Parameter path: as `/v1/listeners`.
    func perform(at path: String, _ desk: CommandContext) async throws {
        switch self {
        case .list:
            let answer = try await desk.session.send(ControlRequest(.get, path))
            try await desk.show(answer, as: ConfigurationEntries.self) { entries in
                EntryTable(entries).table.lines(cells: desk.cells, colors: desk.colors)
            }
        case .show(let name):
            let answer = try await desk.session.send(ControlRequest(.get, Self.one(path, name)))
            try await desk.show(answer, as: JSONValue.self) { Self.sheet($0) }
        case .put(let name, let body, let dryRun):
            try await Self.change(.put, path, name, body, dryRun: dryRun, desk)
        case .patch(let name, let body, let dryRun):
            try await Self.change(.patch, path, name, body, dryRun: dryRun, desk)
        case .delete(let name, let dryRun):
            try await Self.change(.delete, path, name, nil, dryRun: dryRun, desk)
        }
    }

    private static func one(_ path: String, _ name: String) -> String {
        "\(path)/\(ControlRequest.segment(name))"
    }

    private static func change(
        _ method: ControlRequest.Method, _ path: String, _ name: String, _ body: [UInt8]?, dryRun: Bool,
        _ desk: CommandContext
    ) async throws {
        let parameters = dryRun ? [ControlRequest.Parameter("dryRun", "true")] : []
        var request = ControlRequest(method, self.one(path, name), parameters)
        if let body {
            request.body = Data(body)
            request.headers["Content-Type"] = "application/json"
        }
        let answer = try await desk.session.send(request)
        if dryRun {
            return try await desk.show(answer, as: ConfigurationDifference.self) { DifferenceText.lines($0) }
        }
        guard !answer.body.isEmpty else { return }
        try await desk.show(answer, as: JSONValue.self) { Self.sheet($0) }
    }

    /// A line for each key.
    private static func sheet(_ value: JSONValue) -> [String] {
        guard case .object(let members) = value else { return [TerminalText.line(DifferenceText.text(value))] }
        let width = members.keys.reduce(0) { max($0, $1.count) } + 2
        return members.sorted { $0.key < $1.key }.map { key, value in
            CellText.fit(TerminalText.line(key), cells: width)
                + TerminalText.line(DifferenceText.text(value), limit: 4000)
        }
    }

    static func discussion(_ plural: String, _ one: String) -> String {
        """
        A row for each; with NAME, a line for each of its keys. Changes have effect at once, and last until the next start: \
        'sluice reload' goes back to the file.

        EXAMPLES
          sluice \(plural)
          sluice \(plural) NAME --json
          sluice \(plural) NAME --put \(one).json --dry-run
          sluice \(plural) NAME --delete

        \(ControlHelp.exitCodes)
        """
    }
}

/// An entry of the configuration and the operation on it.
struct EntryOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Show this one alone, or do something to it.", valueName: "NAME"))
    var name: String?

    @Flag(help: "Delete it.")
    var delete = false

    @Option(
        help: ArgumentHelp(
            "Make it, or put it in the place of what there is, as this file has it: JSON with the keys of the configuration.",
            valueName: "file"), completion: .file())
    var put: String?

    @Option(
        help: ArgumentHelp(
            "Change only this: JSON with some of its keys, like '{\"max-connections\": 10}'.", valueName: "json"))
    var patch: String?

    @Flag(help: "Only tell what would change.")
    var dryRun = false

    func action(_ reader: inout OptionReader) throws -> EntryAction? {
        let changes = [self.delete, self.put != nil, self.patch != nil].filter(\.self).count
        if changes > 1 { reader.note("--delete", expected: "one of --delete, --put and --patch", found: "several") }
        if changes == 1, self.name == nil {
            reader.note("NAME", expected: "the name of what is changed", found: "none")
        }
        if changes == 0, self.dryRun {
            reader.note("--dry-run", expected: "--delete, --put or --patch beside it", found: "none")
        }
        guard reader.problems.isEmpty else { return nil }
        guard let name else { return .list }
        if self.delete { return .delete(name, dryRun: self.dryRun) }
        if let patch { return .patch(name, Array(patch.utf8), dryRun: self.dryRun) }
        guard let put else { return .show(name) }
        do throws(SystemError) {
            return .put(name, try SystemFile.read(put, limit: 1 << 20), dryRun: self.dryRun)
        } catch {
            throw UnreadableFiles("sluice: --put: \(put): \(error)")
        }
    }
}
