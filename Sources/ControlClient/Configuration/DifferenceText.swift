import CommandLineText
import ControlAPI

/// What a change of the configuration did, in lines for people.
package enum DifferenceText {
    /// Safe to print.
    package static func lines(_ difference: ConfigurationDifference) -> [String] {
        let lines = difference.changes.flatMap { item in
            ["\(item.change) \(item.resource)"]
                + item.members.map { member in
                    let place = member.pointer.isEmpty ? "all of it" : member.pointer
                    let restart = member.needsRestart == true ? " (at the next start)" : ""
                    return "  \(place): \(self.text(member.from)) -> \(self.text(member.to))\(restart)"
                }
        }
        let head = difference.changes.isEmpty ? "nothing changed" : difference.applied ? "changed" : "would change"
        return [head] + lines.map { TerminalText.safe($0) }
    }

    /// A value as JSON has it, in short.
    package static func text(_ value: JSONValue?) -> String {
        switch value {
        case nil: "(none)"
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string(let value): TerminalText.line(value)
        case .array(let values): values.map { self.text($0) }.joined(separator: ", ")
        case .object(let members):
            members.sorted { $0.key < $1.key }.map { "\($0.key): \(self.text($0.value))" }.joined(separator: ", ")
        }
    }
}
