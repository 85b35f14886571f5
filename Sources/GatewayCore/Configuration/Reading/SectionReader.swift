/// Reads one mapping of a document by the keys that it may have. What is wrong goes to the collector and leaves the
/// default.
struct SectionReader<Key: CaseIterable & RawRepresentable<String>> {
    let path: ConfigurationKeyPath
    let problems: ProblemCollector
    private var values: [String: DocumentNode] = [:]

    /// Looks through the keys; each unknown one is a problem, and so is anything but a mapping.
    init(_ node: DocumentNode, at path: ConfigurationKeyPath, problems: ProblemCollector) {
        self.path = path
        self.problems = problems
        let known = Key.allCases.map(\.rawValue)
        guard case .mapping(let entries) = node.content else {
            problems.add(
                at: path, expected: "a mapping", found: node.summary,
                remedy: "its keys are \(known.joined(separator: ", "))")
            return
        }
        for entry in entries {
            if known.contains(entry.key) {
                self.values[entry.key] = entry.value
            } else {
                Self.reportUnknown(entry, known: known, at: path, problems: problems)
            }
        }
    }

    private static func reportUnknown(
        _ entry: DocumentNode.Entry, known: [String], at path: ConfigurationKeyPath, problems: ProblemCollector
    ) {
        let candidates = problems.isFull ? [] : known
        let suggestion = Spelling.nearest(to: entry.key, among: candidates).map { "did you mean \($0)?" }
        problems.add(
            ConfigurationProblem(
                origin: entry.origin, keyPath: path.key(QuotedText.shortened(entry.key)),
                expected: path.steps.isEmpty ? "a known key" : "a known key of \(path)",
                found: QuotedText.quoted(entry.key),
                remedy: suggestion ?? "known are \(known.joined(separator: ", "))"))
    }

    func path(_ key: Key) -> ConfigurationKeyPath { self.path.key(key) }

    /// Whether the key was written, with whatever behind it.
    func has(_ key: Key) -> Bool { self.values[key.rawValue] != nil }

    func node(_ key: Key) -> DocumentNode? { self.values[key.rawValue] }

    func add(_ key: Key, expected: String, found: String? = nil, remedy: String = "") {
        self.problems.add(at: self.path(key), expected: expected, found: found, remedy: remedy)
    }

    /// The value of `key`, if it was written and is right.
    func value<Value>(_ key: Key, as syntax: ValueSyntax<Value>) -> Value? {
        self.node(key).flatMap { self.parse($0, at: self.path(key), as: syntax) }
    }

    /// The same for a key that must be written.
    func required<Value>(_ key: Key, as syntax: ValueSyntax<Value>) -> Value? {
        if !self.has(key) {
            self.add(key, expected: "a value for \(key.rawValue)", found: "nothing", remedy: "add \(key.rawValue): …")
        }
        return self.value(key, as: syntax)
    }

    func read<Value>(_ key: Key, into target: inout Value, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax) { target = value }
    }

    /// For what is `nil` unless it is written.
    func readOptional<Value>(_ key: Key, into target: inout Value?, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax) { target = value }
    }

    /// For what the word `none` switches off.
    func readOrNone<Value>(_ key: Key, into target: inout Value?, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax.orNone) { target = value }
    }

    /// A list; a single value stands for a list of one.
    func readList<Value: Hashable>(_ key: Key, into target: inout [Value], as syntax: ValueSyntax<Value>) {
        guard let node = self.node(key) else { return }
        target = []
        switch node.content {
        case .scalar: target += self.parse(node, at: self.path(key), as: syntax).map { [$0] } ?? []
        case .sequence(let nodes): target = self.distinct(nodes, at: self.path(key), as: syntax)
        case .empty, .mapping: self.add(key, expected: "a list")
        }
    }

    /// For a list that would mean the opposite of what is meant, were it empty.
    func refuseEmptyList(_ key: Key, expected: String, remedy: String) {
        guard case .sequence(let nodes)? = self.node(key)?.content, nodes.isEmpty else { return }
        self.add(key, expected: expected, remedy: remedy)
    }

    private func distinct<Value: Hashable>(
        _ nodes: [DocumentNode], at path: ConfigurationKeyPath, as syntax: ValueSyntax<Value>
    ) -> [Value] {
        var seen: Set<Value> = []
        return nodes.enumerated().compactMap { index, node in
            guard let value = self.parse(node, at: path.index(index), as: syntax) else { return nil }
            if seen.insert(value).inserted { return value }
            self.problems.add(
                at: path.index(index), expected: "each entry once", found: node.summary + " again",
                remedy: "leave it out")
            return nil
        }
    }

    func parse<Value>(_ node: DocumentNode, at path: ConfigurationKeyPath, as syntax: ValueSyntax<Value>) -> Value? {
        do throws(TextFault) {
            if case .scalar(let text) = node.content { return try syntax.parse(text) }
            // What an empty text would lack is what the value lacks.
            _ = try syntax.parse("")
            self.problems.add(at: path, expected: "a single value", found: node.summary)
        } catch {
            self.problems.add(at: path, expected: error.expected, found: node.summary, remedy: error.remedy)
        }
        return nil
    }

    /// The mapping behind `key`, if one was written.
    func section<Inner>(_ key: Key, keys: Inner.Type = Inner.self) -> SectionReader<Inner>? {
        self.node(key).map { SectionReader<Inner>($0, at: self.path(key), problems: self.problems) }
    }

    /// The entries of the list behind `key`, with their places; none when it is missing or no list.
    func elements(_ key: Key) -> [(node: DocumentNode, path: ConfigurationKeyPath)] {
        guard let node = self.node(key) else { return [] }
        guard case .sequence(let nodes) = node.content else {
            self.add(key, expected: "a list", remedy: "begin each entry with a dash")
            return []
        }
        return nodes.enumerated().map { ($0.element, self.path(key).index($0.offset)) }
    }
}
