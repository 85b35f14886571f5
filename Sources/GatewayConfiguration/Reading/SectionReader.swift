/// Settings that are read from one mapping of a configuration.
protocol SettingsSection: Sendable {
    /// Name of the section in schemas: `Listener`, `ServerTLS`.
    static var sectionName: String { get }
    /// Settings before a key is read: the defaults. Required keys have a placeholder.
    static var initial: Self { get }
    static var keys: [SettingsKey<Self>] { get }
    /// Checks settings that require or exclude each other. Called after all keys were read.
    mutating func check(_ section: SectionReader<Self>)
}

extension SettingsSection {
    mutating func check(_ section: SectionReader<Self>) {}

    /// Reads all keys, then checks the settings as a whole.
    init(reading section: SectionReader<Self>) {
        self = Self.initial
        for key in Self.keys { key.read(section, &self) }
        self.check(section)
    }
}

/// Reads the values of one mapping by key. A wrong value is reported to the collector, and the default stays in effect.
struct SectionReader<Settings> {
    typealias Key = SettingsKeyName<Settings>

    let path: ConfigurationKeyPath
    let problems: ProblemCollector
    private let values: [String: DocumentNode]

    /// Reports each unknown key, and any node that is not a mapping.
    init(_ node: DocumentNode, at path: ConfigurationKeyPath, problems: ProblemCollector)
    where Settings: SettingsSection {
        let known = Settings.keys.map(\.name.rawValue)
        var values: [String: DocumentNode] = [:]
        if case .mapping(let entries) = node.content {
            for entry in entries {
                if known.contains(entry.key) {
                    values[entry.key] = entry.value
                } else {
                    Self.reportUnknown(entry, known: known, at: path, problems: problems)
                }
            }
        } else {
            problems.add(
                at: path, expected: "a mapping", found: node.summary,
                remedy: "its keys are \(known.joined(separator: ", "))")
        }
        self.init(values, at: path, problems: problems)
    }

    private init(_ values: [String: DocumentNode], at path: ConfigurationKeyPath, problems: ProblemCollector) {
        self.values = values
        self.path = path
        self.problems = problems
    }

    /// The same mapping, for a group of settings whose keys are part of it.
    func group<Inner>(_ settings: Inner.Type = Inner.self) -> SectionReader<Inner> {
        SectionReader<Inner>(self.values, at: self.path, problems: self.problems)
    }

    private static func reportUnknown(
        _ entry: DocumentNode.Entry, known: [String], at path: ConfigurationKeyPath, problems: ProblemCollector
    ) {
        let candidates = problems.isFull ? [] : known
        let meant = EditDistance.nearest(to: entry.key, among: candidates) ?? Self.synonym(of: entry.key, candidates)
        let suggestion = meant.map { "did you mean \($0)?" }
        problems.add(
            ConfigurationProblem(
                origin: entry.origin, keyPath: path.key(QuotedText.shortened(entry.key)),
                expected: path.steps.isEmpty ? "a known key" : "a known key of \(path)",
                found: QuotedText.quoted(entry.key),
                remedy: suggestion ?? "known are \(known.joined(separator: ", "))"))
    }

    /// Where a section listens, or connects to, has another name in other sections and programs.
    private static func synonym(of key: String, _ known: [String]) -> String? {
        let names = ["listen", "address", "target", "url", "bind"]
        return names.contains(key) ? names.first(where: known.contains) : nil
    }

    func path(_ key: Key) -> ConfigurationKeyPath { self.path.key(key) }

    /// Whether the document has the key, with any value.
    func has(_ key: Key) -> Bool { self.values[key.rawValue] != nil }

    /// Whether the document has a value for the key without a problem so far.
    func isSet(_ key: Key) -> Bool { self.has(key) && self.problems.isValid(self.path(key)) }

    func isMapping(_ key: Key) -> Bool {
        if case .mapping? = self.node(key)?.content { true } else { false }
    }

    func node(_ key: Key) -> DocumentNode? { self.values[key.rawValue] }

    func add(_ key: Key, expected: String, found: String? = nil, remedy: String = "") {
        self.problems.add(at: self.path(key), expected: expected, found: found, remedy: remedy)
    }

    /// The value of `key`; `nil` if it is missing or wrong.
    @_semantics("optimize.sil.specialize.generic.never")
    func value<Value>(_ key: Key, as syntax: ValueSyntax<Value>) -> Value? {
        self.node(key).flatMap { self.parse($0, at: self.path(key), as: syntax) }
    }

    /// Reports a missing key.
    func require(_ key: Key) {
        guard !self.has(key) else { return }
        self.add(key, expected: "a value for \(key.rawValue)", found: "nothing", remedy: "add \(key.rawValue): …")
    }

    /// The values of a list; a single value counts as a list of one. `nil` if the key is missing.
    @_semantics("optimize.sil.specialize.generic.never")
    func list<Value: Hashable>(_ key: Key, as syntax: ValueSyntax<Value>) -> [Value]? {
        guard let node = self.node(key) else { return nil }
        switch node.content {
        case .scalar: return self.parse(node, at: self.path(key), as: syntax).map { [$0] } ?? []
        case .sequence(let nodes): return self.distinct(nodes, at: self.path(key), as: syntax)
        case .empty, .mapping:
            self.add(key, expected: "a list")
            return []
        }
    }

    /// Rejects an empty list where it would mean the opposite of the intention.
    func rejectEmptyList(_ key: Key, expected: String, remedy: String) {
        guard case .sequence(let nodes)? = self.node(key)?.content, nodes.isEmpty else { return }
        self.add(key, expected: expected, remedy: remedy)
    }

    @_semantics("optimize.sil.specialize.generic.never")
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

    @_semantics("optimize.sil.specialize.generic.never")
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
    @_semantics("optimize.sil.specialize.generic.never")
    func section<Inner: SettingsSection>(_ key: Key) -> Inner? {
        self.node(key).map { Inner(reading: SectionReader<Inner>($0, at: self.path(key), problems: self.problems)) }
    }

    /// The elements of the list at `key` with their paths; empty if the key is missing or not a list.
    func elements(_ key: Key) -> [(node: DocumentNode, path: ConfigurationKeyPath)] {
        guard let node = self.node(key) else { return [] }
        guard case .sequence(let nodes) = node.content else {
            self.add(key, expected: "a list", remedy: "begin each entry with a dash")
            return []
        }
        return nodes.enumerated().map { ($0.element, self.path(key).index($0.offset)) }
    }

    /// Reads a list of mappings. Invalid entries are kept, so that indices agree with the document.
    @_semantics("optimize.sil.specialize.generic.never")
    func sections<Inner: SettingsSection>(_ key: Key) -> [Inner] {
        self.elements(key).map {
            Inner(reading: SectionReader<Inner>($0.node, at: $0.path, problems: self.problems))
        }
    }
}
