/// One thing wrong in a configuration, with all that is needed to put it right.
package struct ConfigurationProblem: Error, Sendable, Hashable {
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
}

extension ConfigurationProblem: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: KEY PATH: expected …, found …; REMEDY` in one line. On the command line the option's name
    /// replaces place and key path.
    package var description: String {
        var text = "\(self.origin): "
        if case .option = self.origin {} else if !self.keyPath.steps.isEmpty { text += "\(self.keyPath): " }
        text += "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : text + "; \(self.remedy)"
    }
}

/// Everything wrong in a configuration, in the order of its places. Never empty.
package struct ConfigurationProblems: Error, Sendable, Equatable {
    package let all: [ConfigurationProblem]

    package init(_ problems: [ConfigurationProblem]) {
        self.all = problems
    }
}

extension ConfigurationProblems: CustomStringConvertible {
    /// A line for each.
    package var description: String {
        self.all.map(\.description).joined(separator: "\n")
    }
}

/// The way from the top of a configuration to one value: `listeners[0].tls.certificate`.
package struct ConfigurationKeyPath: Sendable, Hashable {
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

    /// Itself, what it lies in, and so on up to the top.
    var selfAndAncestors: [ConfigurationKeyPath] {
        (0...self.steps.count).reversed().map { ConfigurationKeyPath(steps: Array(self.steps.prefix($0))) }
    }
}

extension ConfigurationKeyPath: CustomStringConvertible {
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
package enum ConfigurationOrigin: Sendable, Hashable {
    /// In a file; line and column count from 1, columns in Unicode scalars.
    case file(String, line: Int, column: Int)
    /// In a file as a whole.
    case wholeFile(String)
    /// On the command line: `--ping-interval`, `LISTEN`.
    case option(String)
}

extension ConfigurationOrigin: CustomStringConvertible {
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
    /// In quotation marks, at most 60 characters of it, control characters as `\u{…}`.
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
    /// Beyond these a reader has seen enough.
    static let limit = 100

    private let document: DocumentNode
    /// Collects the declared keys instead of reading values.
    let keyCollector: ConfigurationKeyCollector?
    private var problems: [ConfigurationProblem] = []
    private var invalidPaths: Set<ConfigurationKeyPath> = []
    private var omitted = 0

    init(document: DocumentNode, survey: ConfigurationKeyCollector? = nil) {
        self.document = document
        self.keyCollector = survey
    }

    /// Notes a problem with the value at `path`, or with its absence.
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
        guard !self.isRepetition(problem) else { return }
        self.problems.append(problem)
    }

    /// Whether further problems are only counted.
    var isFull: Bool { self.problems.count >= Self.limit }

    /// One option of the command line may set several values; a problem with it is reported once.
    private func isRepetition(_ problem: ConfigurationProblem) -> Bool {
        guard case .option = problem.origin else { return false }
        return self.problems.contains {
            $0.origin == problem.origin && $0.expected == problem.expected && $0.found == problem.found
        }
    }

    private func omit(_ path: ConfigurationKeyPath) {
        self.invalidPaths.insert(path)
        self.omitted += 1
    }

    /// Whether there is no problem at `path` or around it, so that the value read there is usable.
    func isValid(_ path: ConfigurationKeyPath) -> Bool {
        path.selfAndAncestors.allSatisfy { !self.invalidPaths.contains($0) }
    }

    /// Whether the document has a value at `path`.
    func isPresent(_ path: ConfigurationKeyPath) -> Bool {
        self.document.node(at: path) != nil
    }

    /// Whether anything is wrong below `path` or there.
    func hasProblem(within path: ConfigurationKeyPath) -> Bool {
        self.invalidPaths.contains { $0.steps.starts(with: path.steps) }
    }

    /// - Throws: everything noted, by place.
    func finish() throws(ConfigurationProblems) {
        guard !self.problems.isEmpty else { return }
        var all = self.problems.enumerated().sorted { Self.place($0) < Self.place($1) }.map(\.element)
        if self.omitted > 0 {
            all.append(
                ConfigurationProblem(
                    origin: self.document.origin, keyPath: .root, expected: "no more than \(Self.limit) problems",
                    found: "\(self.omitted) more", remedy: "put these right first"))
        }
        throw ConfigurationProblems(all)
    }

    private static func place(_ element: (offset: Int, element: ConfigurationProblem)) -> (Int, Int, Int) {
        switch element.element.origin {
        case .file(_, let line, let column): (line, column, element.offset)
        case .wholeFile: (0, 0, element.offset)
        case .option: (.max, 0, element.offset)
        }
    }
}
