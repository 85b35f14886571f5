import CommandLineText
import ControlAPI

/// Entries of the configuration as rows for people: the name, how it stands, and what else it says.
package struct EntryTable {
    package private(set) var table = TextTable([
        TextTable.Column("NAME"), TextTable.Column("STATUS", least: 12, rank: 1),
        TextTable.Column("SETTINGS", least: 16, rank: 2),
    ])

    package init(_ entries: ConfigurationEntries) {
        for case .object(let members) in entries.items {
            let rest = members.filter { $0.key != "name" && $0.key != "status" }
            self.table.add([
                TextTable.Cell(members["name"].map { DifferenceText.text($0) }),
                TextTable.Cell(members["status"].map(Self.status)),
                TextTable.Cell(DifferenceText.text(.object(rest))),
            ])
        }
    }

    /// An address, or each endpoint with what it carries.
    private static func status(_ value: JSONValue) -> String {
        guard case .object(let members) = value else { return DifferenceText.text(value) }
        if let address = members["address"] { return DifferenceText.text(address) }
        guard case .array(let endpoints)? = members["endpoints"] else { return DifferenceText.text(value) }
        let words = endpoints.map { endpoint -> String in
            guard case .object(let facts) = endpoint else { return DifferenceText.text(endpoint) }
            let isOut = facts["ejected"] == .boolean(true) ? " (left out)" : ""
            return "\(DifferenceText.text(facts["url"])): \(DifferenceText.text(facts["connections"]))\(isOut)"
        }
        return words.isEmpty ? "not used" : words.joined(separator: ", ")
    }
}
