import WireText

/// The parsed query of a request.
package struct Query: Sendable {
    private static let pairLimit = 64

    /// In the order of the request; names may repeat.
    package let pairs: [(name: String, value: String)]

    /// - Throws: `ControlProblem` for invalid percent-encoding, or more than 64 parameters.
    package init(_ text: String?) throws(ControlProblem) {
        var pairs: [(name: String, value: String)] = []
        for piece in (text ?? "").split(separator: "&") {
            let mark = piece.firstIndex(of: "=") ?? piece.endIndex
            guard let name = PercentCoding.decodedText(piece[..<mark], plusIsSpace: true),
                let value = PercentCoding.decodedText(piece[mark...].dropFirst(), plusIsSpace: true)
            else {
                throw ControlProblem(
                    400, "malformed-query",
                    "The query has a % without two hexadecimal digits, or is not UTF-8.")
            }
            pairs.append((name, value))
            guard pairs.count <= Self.pairLimit else {
                throw ControlProblem(400, "malformed-query", "The query has more than \(Self.pairLimit) parameters.")
            }
        }
        self.pairs = pairs
    }

    package init(pairs: [(name: String, value: String)]) {
        self.pairs = pairs
    }

    package func values(_ name: String) -> [String] {
        self.pairs.filter { $0.name == name }.map(\.value)
    }

    /// The value of a parameter that may occur once.
    package func value(_ name: String) throws(ControlProblem) -> String? {
        let values = self.values(name)
        guard values.count < 2 else {
            throw ControlProblem.invalid(parameter: name, "\(name) is given more than once.")
        }
        return values.first
    }

    /// - Throws: `ControlProblem` 400 for an empty value, and for several.
    func nonEmptyValue(_ name: String) throws(ControlProblem) -> String? {
        let value = try self.value(name)
        guard value != "" else { throw Self.emptyValue(name) }
        return value
    }

    /// The values of a list, separated by commas or by repeating the parameter. Empty values are kept: a condition whose
    /// only value is empty must not become no condition.
    package func list(_ name: String) -> [String] {
        self.values(name).flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
    }

    /// - Throws: `ControlProblem` 400 for an empty value.
    func nonEmptyList(_ name: String) throws(ControlProblem) -> [String] {
        let values = self.list(name)
        guard !values.contains("") else { throw Self.emptyValue(name) }
        return values
    }

    /// The values of a parameter that is repeated for several.
    /// - Throws: `ControlProblem` 400 for an empty value.
    func names(_ name: String) throws(ControlProblem) -> Set<MemberName> {
        let values = self.values(name)
        guard !values.contains("") else { throw Self.emptyValue(name) }
        return Set(values.map { MemberName($0) })
    }

    /// - Throws: `ControlProblem` 400 for a label without a name.
    func labels(_ name: String) throws(ControlProblem) -> [ConnectionFilter.Label] {
        let labels = self.values(name).map { ConnectionFilter.Label($0) }
        guard labels.allSatisfy({ !$0.name.isEmpty }) else { throw Self.emptyValue(name) }
        return labels
    }

    private static func emptyValue(_ name: String) -> ControlProblem {
        .invalid(parameter: name, "\(name) has an empty value; give one, or leave \(name) out.")
    }

    package func integer(_ name: String, in range: ClosedRange<Int>) throws(ControlProblem) -> Int? {
        guard let text = try self.value(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw ControlProblem.invalid(
                parameter: name, "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    package func boolean(_ name: String) throws(ControlProblem) -> Bool? {
        switch try self.value(name) {
        case nil: nil
        case "true": true
        case "false": false
        default:
            throw ControlProblem.invalid(parameter: name, "\(name) must be true or false.")
        }
    }

    package func milliseconds(_ name: String) throws(ControlProblem) -> Duration? {
        guard let text = try self.value(name) else { return nil }
        guard let number = Double(text), number >= 0, let duration = Duration(milliseconds: number) else {
            throw ControlProblem.invalid(parameter: name, "\(name) must be a number of milliseconds.")
        }
        return duration
    }

    /// - Throws: `ControlProblem` 400 for a value that `parse` rejects.
    func set<Value: Hashable>(
        _ name: String, expecting expected: String, _ parse: (String) -> Value?
    ) throws(ControlProblem) -> Set<Value> {
        var values: Set<Value> = []
        for text in self.list(name) {
            guard let value = parse(text) else {
                throw ControlProblem.invalid(parameter: name, "\(name) must be \(expected).")
            }
            values.insert(value)
        }
        return values
    }

    /// Path and query of the next page of a list.
    func nextPage(of path: String, cursor: String) -> String {
        self.nextPage(of: path, [(name: "cursor", value: cursor)])
    }

    /// - Parameter position: the parameters that select the next page.
    func nextPage(of path: String, _ position: [(name: String, value: String)]) -> String {
        let others = self.pairs.filter { pair in !position.contains { $0.name == pair.name } }
        let query = (others + position).map { pair in
            "\(PercentCoding.encoded(pair.name))=\(PercentCoding.encoded(pair.value))"
        }
        return "\(path)?\(query.joined(separator: "&"))"
    }
}
