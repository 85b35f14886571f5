import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// What is done to entries of a running configuration.
enum EntryAction {
    case list
    case show(String)
    case put(String, [UInt8], dryRun: Bool)
    case patch(String, [UInt8], dryRun: Bool)
    case delete(String, dryRun: Bool)

    /// - Parameter path: as `/v1/listeners`.
    func perform(at path: String, _ desk: ControlDesk) async throws {
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
        _ desk: ControlDesk
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
