/// Reads the values of one mapping by key. A wrong value is reported to the collector, and the default stays in effect.
struct SectionReader<Key: CaseIterable & RawRepresentable<String>> {
    let path: ConfigurationKeyPath
    let problems: ProblemCollector
    private var values: [String: DocumentNode] = [:]

    /// Reports each unknown key, and any node that is not a mapping.
    init(_ node: DocumentNode, at path: ConfigurationKeyPath, problems: ProblemCollector) {
        self.path = path
        self.problems = problems
        problems.keyCollector?.section(Key.self, at: path)
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

    private var keyCollector: ConfigurationKeyCollector? { self.problems.keyCollector }

    func path(_ key: Key) -> ConfigurationKeyPath { self.path.key(key) }

    /// Whether the document has the key, with any value. Always true while keys are collected, so that keys read under
    /// a condition are collected as well.
    func has(_ key: Key) -> Bool { self.keyCollector != nil || self.values[key.rawValue] != nil }

    func node(_ key: Key) -> DocumentNode? { self.values[key.rawValue] }

    func add(_ key: Key, expected: String, found: String? = nil, remedy: String = "") {
        self.problems.add(at: self.path(key), expected: expected, found: found, remedy: remedy)
    }

    /// The value of `key`; `nil` if it is missing or wrong.
    func value<Value>(_ key: Key, as syntax: ValueSyntax<Value>) -> Value? {
        self.declare(key, as: syntax)
        return self.node(key).flatMap { self.parse($0, at: self.path(key), as: syntax) }
    }

    /// Declares a key that is read only under a condition.
    func declare<Value>(_ key: Key, as syntax: ValueSyntax<Value>) {
        self.keyCollector?.value(syntax.form, at: self.path(key))
    }

    /// Declares a key whose value is a mapping with arbitrary keys.
    func declareMap<Value>(_ key: Key, as syntax: ValueSyntax<Value>) {
        self.keyCollector?.map(at: self.path(key))
        self.keyCollector?.value(syntax.form, at: self.path(key).key("*"))
    }

    /// Declares a key whose value is a list.
    func declareList<Value>(_ key: Key, as syntax: ValueSyntax<Value>) {
        self.keyCollector?.list(at: self.path(key))
        self.keyCollector?.value(syntax.form, at: self.path(key).index(0))
    }

    /// The value of a key that must be present.
    /// - Parameter other: a key that may be present instead.
    func required<Value>(_ key: Key, as syntax: ValueSyntax<Value>, unless other: Key? = nil) -> Value? {
        if other == nil { self.keyCollector?.require(self.path(key)) }
        if !self.has(key) {
            self.add(key, expected: "a value for \(key.rawValue)", found: "nothing", remedy: "add \(key.rawValue): …")
        }
        return self.value(key, as: syntax)
    }

    func read<Value>(_ key: Key, into target: inout Value, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax) { target = value }
    }

    /// Reads a value without a default.
    func readOptional<Value>(_ key: Key, into target: inout Value?, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax) { target = value }
    }

    /// Reads a value that the word `none` turns off.
    func readOptionalOrNone<Value>(_ key: Key, into target: inout Value?, as syntax: ValueSyntax<Value>) {
        if let value = self.value(key, as: syntax.orNone) { target = value }
    }

    /// Reads a list; a single value counts as a list of one.
    func readList<Value: Hashable>(_ key: Key, into target: inout [Value], as syntax: ValueSyntax<Value>) {
        self.declareList(key, as: syntax)
        guard let node = self.node(key) else { return }
        target = []
        switch node.content {
        case .scalar: target += self.parse(node, at: self.path(key), as: syntax).map { [$0] } ?? []
        case .sequence(let nodes): target = self.distinct(nodes, at: self.path(key), as: syntax)
        case .empty, .mapping: self.add(key, expected: "a list")
        }
    }

    /// Rejects an empty list where it would mean the opposite of the intention.
    func rejectEmptyList(_ key: Key, expected: String, remedy: String) {
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
        do throws(ValueSyntaxError) {
            if case .scalar(let text) = node.content { return try syntax.parse(text) }
            // The error for an empty text describes the missing value.
            _ = try syntax.parse("")
            self.problems.add(at: path, expected: "a single value", found: node.summary)
        } catch {
            self.problems.add(at: path, expected: error.expected, found: node.summary, remedy: error.remedy)
        }
        return nil
    }

    /// The mapping at `key`; `nil` if the key is missing.
    func section<Inner>(_ key: Key, keys: Inner.Type = Inner.self) -> SectionReader<Inner>? {
        self.node(key, orSample: .mapping([])).map {
            SectionReader<Inner>($0, at: self.path(key), problems: self.problems)
        }
    }

    /// Value of a key that takes a single value or a mapping.
    enum ValueOrSection<Value, Inner: CaseIterable & RawRepresentable<String>> {
        /// `nil` if the value is wrong.
        case value(Value?)
        case section(SectionReader<Inner>)
    }

    /// - Returns: `nil` if the key is missing.
    func valueOrSection<Value, Inner>(
        _ key: Key, as syntax: ValueSyntax<Value>, keys: Inner.Type = Inner.self
    ) -> ValueOrSection<Value, Inner>? {
        self.declare(key, as: syntax)
        guard let node = self.node(key, orSample: .mapping([])) else { return nil }
        guard case .mapping = node.content else { return .value(self.value(key, as: syntax)) }
        return .section(SectionReader<Inner>(node, at: self.path(key), problems: self.problems))
    }

    /// The value of `key`; while keys are collected, a node with the content `sample`.
    private func node(_ key: Key, orSample sample: DocumentNode.Content) -> DocumentNode? {
        guard self.keyCollector != nil else { return self.node(key) }
        return DocumentNode(sample, origin: .option(""))
    }

    /// The elements of the list at `key` with their paths; empty if the key is missing or not a list.
    func elements(_ key: Key) -> [(node: DocumentNode, path: ConfigurationKeyPath)] {
        self.keyCollector?.list(at: self.path(key))
        let sample = DocumentNode(.mapping([]), origin: .option(""))
        guard let node = self.node(key, orSample: .sequence([sample])) else { return [] }
        guard case .sequence(let nodes) = node.content else {
            self.add(key, expected: "a list", remedy: "begin each entry with a dash")
            return []
        }
        return nodes.enumerated().map { ($0.element, self.path(key).index($0.offset)) }
    }

    /// Reads a list of mappings.
    func elements<Inner, Element>(_ key: Key, read: (SectionReader<Inner>) -> Element) -> [Element] {
        self.elements(key).map { read(SectionReader<Inner>($0.node, at: $0.path, problems: self.problems)) }
    }
}

/// Ranges that several options share.
extension ClosedRange<Duration> {
    /// 10 ms to 10 min.
    static var attempt: Self { .milliseconds(10) ... .seconds(600) }
    /// 1 s to 365 days.
    static var lifetime: Self { .seconds(1) ... .seconds(365 * 86_400) }
    /// 1 s to 9 h, the range of the kernel.
    static var probing: Self { .seconds(1) ... .seconds(32_400) }
    /// 0 to 1 day.
    static var day: Self { .zero ... .seconds(86_400) }
}
