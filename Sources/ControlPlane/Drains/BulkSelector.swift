import ControlAPI

/// Which connections a body means: the filters of the list, with values as JSON has them.
struct BulkSelector {
    let filter: ConnectionFilter

    /// - Throws: `ControlProblem` 422 with the place of what cannot be meant.
    init(_ members: [String: JSONValue]) throws(ControlProblem) {
        var pairs: [(name: String, value: String)] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let known = name == "labels" ? "label" : name
            guard ConnectionFilter.parameters.contains(known) else {
                throw .invalid(
                    Self.pointer(name),
                    "A selector has \(ConnectionFilter.parameters.sorted().joined(separator: ", ")).")
            }
            for text in try Self.texts(value, of: known, at: Self.pointer(name)) { pairs.append((known, text)) }
        }
        do throws(ControlProblem) {
            self.filter = try ConnectionFilter(Query(pairs: pairs))
        } catch {
            // What a query calls a parameter is a member here.
            throw .invalid("/selector/\(error.errors.first?.parameter ?? "")", error.detail)
        }
    }

    private static func pointer(_ name: String) -> String {
        JSONPointer.member(name, of: "/selector")
    }

    private static func texts(
        _ value: JSONValue, of name: String, at pointer: String
    ) throws(ControlProblem) -> [String] {
        switch value {
        case .null: return []
        case .boolean(let value): return [value ? "true" : "false"]
        case .integer(let value): return ["\(value)"]
        case .number(let value): return ["\(value)"]
        case .string(let value): return [value]
        case .array(let values):
            var texts: [String] = []
            for value in values { texts += try self.texts(value, of: name, at: pointer) }
            return texts
        case .object(let members):
            guard name == "label" else {
                throw ControlProblem(422, "wrong-type", "\(pointer) is to be a value, or a list of values.").at(
                    pointer: pointer)
            }
            var texts: [String] = []
            for (label, value) in members.sorted(by: { $0.key < $1.key }) {
                texts += try self.texts(value, of: name, at: pointer).map { "\(label):\($0)" }
            }
            return texts
        }
    }
}
