import ControlAPI
import GatewayConfiguration
import GatewayCore

extension DocumentNode {
    private static let depthLimit = 16
    private static let valueLimit = 50_000

    /// Converts JSON to a configuration document, within the limits of a configuration file.
    /// - Parameter form: the expected form. Unlike in YAML, a string is refused for a number, and a single value for a list.
    /// - Throws: `ControlProblem` 422 with a pointer to the value of the wrong type.
    init(_ value: JSONValue, as form: ConfigurationSchema.Form) throws(ControlProblem) {
        var count = 0
        self = try Self.node(value, form, at: [], count: &count)
    }

    private static func node(
        _ value: JSONValue, _ form: ConfigurationSchema.Form?, at path: [String], count: inout Int
    ) throws(ControlProblem) -> DocumentNode {
        count += 1
        guard path.count < self.depthLimit, count <= self.valueLimit else {
            throw ControlProblem(
                422, "too-large", "A configuration has at most \(self.depthLimit) levels and \(self.valueLimit) values."
            )
        }
        let content: Content
        switch value {
        case .null: content = .empty
        case .boolean(let value): content = .scalar(value ? "true" : "false")
        case .integer(let value): content = .scalar("\(value)")
        case .number(let value): content = .scalar("\(value)")
        case .string(let text): content = .scalar(text)
        case .array(let values):
            var nodes: [DocumentNode] = []
            for (index, value) in values.enumerated() {
                nodes.append(try self.node(value, form?.element, at: path + ["\(index)"], count: &count))
            }
            content = .sequence(nodes)
        case .object(let members):
            var entries: [Entry] = []
            // The name comes first, for readability.
            for member in members.filter({ $0.name == "name" }) + members.filter({ $0.name != "name" }) {
                let node = try self.node(
                    member.value, form?.member(member.name), at: path + [member.name], count: &count)
                entries.append(Entry(key: member.name, origin: self.requestOrigin, value: node))
            }
            content = .mapping(entries)
        }
        // After its members, so that limits are checked before types. The caller checks that the root is an object.
        if let form, !path.isEmpty, !form.accepts(value) { throw Self.wrongType(form, value, at: path) }
        return DocumentNode(content, origin: self.requestOrigin)
    }

    private static func wrongType(
        _ form: ConfigurationSchema.Form, _ value: JSONValue, at path: [String]
    ) -> ControlProblem {
        let found =
            switch value {
            case .null: "null"
            case .boolean(let value): value ? "true" : "false"
            case .integer, .number: "a number"
            case .string(let text): "the text \(QuotedText.quoted(text))"
            case .array: "an array"
            case .object: "an object"
            }
        let pointer = path.reduce("") { JSONPointer.member($1, of: $0) }
        return ControlProblem(422, "invalid-configuration", "expected \(form.expectation), found \(found)").at(
            pointer: pointer)
    }
}
