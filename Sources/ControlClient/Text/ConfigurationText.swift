import CommandLineText
import ControlAPI

/// Table of listeners, routes or upstreams: name, status and other keys.
package struct EntryTable {
    package private(set) var table = TextTable([
        TextTable.Column("NAME"), TextTable.Column("STATUS", minimumWidth: 12, dropOrder: 1),
        TextTable.Column("SETTINGS", minimumWidth: 16, dropOrder: 2),
    ])

    package init(_ entries: ConfigurationEntries) {
        for entry in entries.items {
            let rest = entry.members.filter { $0.name != "name" && $0.name != "status" }
            self.table.add([
                TextTable.Cell(entry["name"].map { DifferenceText.text($0) }),
                TextTable.Cell(entry["status"].map(Self.status)),
                TextTable.Cell(DifferenceText.text(.object(rest))),
            ])
        }
    }

    /// Bound address of a listener, or the endpoints of an upstream with their number of connections.
    private static func status(_ value: JSONValue) -> String {
        if let address = value["address"] { return DifferenceText.text(address) }
        guard case .array(let endpoints)? = value["endpoints"] else { return DifferenceText.text(value) }
        let words = endpoints.map { endpoint -> String in
            guard endpoint["url"] != nil else { return DifferenceText.text(endpoint) }
            let isOut = endpoint["ejected"] == true ? " (ejected)" : ""
            return "\(DifferenceText.text(endpoint["url"])): \(DifferenceText.text(endpoint["connections"]))\(isOut)"
        }
        return words.isEmpty ? "not used" : words.joined(separator: ", ")
    }
}

/// Formats the changes of a configuration as lines of text.
package enum DifferenceText {
    /// The result is sanitized.
    package static func lines(_ difference: ConfigurationDifference) -> [String] {
        let lines = difference.changes.flatMap { item in
            ["\(item.change) \(item.resource)"]
                + item.members.map { member in
                    let place = member.pointer.isEmpty ? "(entire entry)" : member.pointer
                    let restart = member.needsRestart == true ? " (at the next start)" : ""
                    return "  \(place): \(self.text(member.from)) -> \(self.text(member.to))\(restart)"
                }
        }
        let head = difference.changes.isEmpty ? "nothing changed" : difference.applied ? "changed" : "would change"
        return [head] + lines.map { TerminalText.sanitized($0) }
    }

    /// Short form of a JSON value.
    package static func text(_ value: JSONValue?) -> String {
        switch value {
        case nil: "(none)"
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string(let value): TerminalText.singleLine(value)
        case .array(let values): values.map { self.text($0) }.joined(separator: ", ")
        case .object(let members):
            members.map { "\($0.name): \(self.text($0.value))" }.joined(separator: ", ")
        }
    }
}
