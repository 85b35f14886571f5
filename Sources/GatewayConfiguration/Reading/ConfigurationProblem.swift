/// One problem of a configuration, with its place and what to do about it.
package struct ConfigurationProblem: Error, Sendable, Hashable, CustomStringConvertible {
    package let origin: ConfigurationOrigin
    package let keyPath: ConfigurationKeyPath
    /// To be read after "expected".
    package let expected: String
    /// To be read after "found"; text of the configuration is quoted, shortened and without control characters.
    package let found: String
    /// What to do, without a full stop; empty if `expected` says it.
    package let remedy: String

    package init(
        origin: ConfigurationOrigin, keyPath: ConfigurationKeyPath, expected: String, found: String, remedy: String = ""
    ) {
        self.origin = origin
        self.keyPath = keyPath
        self.expected = expected
        self.found = found
        self.remedy = remedy
    }

    /// `FILE:LINE:COLUMN: KEY PATH: expected …, found …; REMEDY` in one line. For the command line, the option's name
    /// replaces position and key path.
    package var description: String {
        var text = "\(self.origin): "
        if case .option = self.origin {} else if !self.keyPath.steps.isEmpty { text += "\(self.keyPath): " }
        text += "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : text + "; \(self.remedy)"
    }
}

/// All problems of a configuration, sorted by position. Never empty.
package struct ConfigurationProblems: Error, Sendable, Equatable, CustomStringConvertible {
    package let all: [ConfigurationProblem]

    package init(_ problems: [ConfigurationProblem]) {
        self.all = problems
    }

    /// One line for each problem.
    package var description: String {
        self.all.map(\.description).joined(separator: "\n")
    }
}

/// Path of a value in a configuration: `listeners[0].tls.certificate`.
package struct ConfigurationKeyPath: Sendable, Hashable, CustomStringConvertible {
    package enum Step: Sendable, Hashable {
        case key(String)
        case index(Int)
    }

    package let steps: [Step]

    package static let root = ConfigurationKeyPath(steps: [])

    package func key(_ name: String) -> ConfigurationKeyPath {
        ConfigurationKeyPath(steps: self.steps + [.key(name)])
    }

    package func key(_ key: some RawRepresentable<String>) -> ConfigurationKeyPath {
        self.key(key.rawValue)
    }

    package func index(_ index: Int) -> ConfigurationKeyPath {
        ConfigurationKeyPath(steps: self.steps + [.index(index)])
    }

    /// The path itself and its ancestors, up to the root.
    var selfAndAncestors: [ConfigurationKeyPath] {
        (0...self.steps.count).reversed().map { ConfigurationKeyPath(steps: Array(self.steps.prefix($0))) }
    }

    package var description: String {
        self.steps.reduce(into: "") { text, step in
            switch step {
            case .key(let name): text += text.isEmpty ? name : ".\(name)"
            case .index(let index): text += "[\(index)]"
            }
        }
    }
}

/// Where a value was written.
package enum ConfigurationOrigin: Sendable, Hashable, CustomStringConvertible {
    /// In a file; line and column count from 1, columns in Unicode scalars.
    case file(String, line: Int, column: Int)
    /// A whole file.
    case wholeFile(String)
    /// On the command line: `--ping-interval`, `LISTEN`.
    case option(String)

    package var description: String {
        switch self {
        case .file(let name, let line, let column): "\(name):\(line):\(column)"
        case .wholeFile(let name): name
        case .option(let name): name
        }
    }
}

/// Text of a configuration, quoted for a message of one line.
package enum QuotedText {
    /// `text` in quotation marks, cut to 60 characters, with control characters as `\u{…}`.
    package static func quoted(_ text: String) -> String {
        "\"\(Self.shortened(text))\""
    }

    /// The same without the quotation marks.
    package static func shortened(_ text: String) -> String {
        var shown = ""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < 60 else { return shown + "…" }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

/// Collects the problems of a document while it is read, so that all are reported at once.
final class ProblemCollector {
    /// Further problems are only counted.
    static let limit = 100

    private let document: DocumentNode
    private var problems: [ConfigurationProblem] = []
    private var invalidPaths: Set<ConfigurationKeyPath> = []
    private var omitted = 0

    init(document: DocumentNode) {
        self.document = document
    }

    /// Adds a problem with the value at `path`, or with its absence.
    func add(at path: ConfigurationKeyPath, expected: String, found: String? = nil, remedy: String = "") {
        guard !self.isFull else { return self.omit(path) }
        self.add(
            ConfigurationProblem(
                origin: self.document.origin(at: path), keyPath: path, expected: expected,
                found: found ?? self.document.summary(at: path), remedy: remedy))
    }

    func add(_ problem: ConfigurationProblem) {
        guard !self.isFull else { return self.omit(problem.keyPath) }
        self.invalidPaths.insert(problem.keyPath)
        guard !self.isDuplicate(problem) else { return }
        self.problems.append(problem)
    }

    /// Whether further problems are only counted.
    var isFull: Bool { self.problems.count >= Self.limit }

    /// One option of the command line may set several values; a problem with it is reported once.
    private func isDuplicate(_ problem: ConfigurationProblem) -> Bool {
        guard case .option = problem.origin else { return false }
        return self.problems.contains {
            $0.origin == problem.origin && $0.expected == problem.expected && $0.found == problem.found
        }
    }

    private func omit(_ path: ConfigurationKeyPath) {
        self.invalidPaths.insert(path)
        self.omitted += 1
    }

    /// Whether neither `path` nor one of its ancestors has a problem, so that the value read there is usable.
    func isValid(_ path: ConfigurationKeyPath) -> Bool {
        path.selfAndAncestors.allSatisfy { !self.invalidPaths.contains($0) }
    }

    /// Whether the document has a value at `path`.
    func isPresent(_ path: ConfigurationKeyPath) -> Bool {
        self.document.node(at: path) != nil
    }

    /// Whether `path` or a value below it has a problem.
    func hasProblem(within path: ConfigurationKeyPath) -> Bool {
        self.invalidPaths.contains { $0.steps.starts(with: path.steps) }
    }

    /// - Throws: all collected problems, sorted by position.
    func finish() throws(ConfigurationProblems) {
        guard !self.problems.isEmpty else { return }
        var all = self.problems.enumerated().sorted { Self.sortKey($0) < Self.sortKey($1) }.map(\.element)
        if self.omitted > 0 {
            all.append(
                ConfigurationProblem(
                    origin: self.document.origin, keyPath: .root, expected: "no more than \(Self.limit) problems",
                    found: "\(self.omitted) more", remedy: "fix these first"))
        }
        throw ConfigurationProblems(all)
    }

    private static func sortKey(_ element: (offset: Int, element: ConfigurationProblem)) -> (Int, Int, Int) {
        switch element.element.origin {
        case .file(_, let line, let column): (line, column, element.offset)
        case .wholeFile: (0, 0, element.offset)
        case .option: (.max, 0, element.offset)
        }
    }
}
