/// Gathers what is wrong while a document is read, so that all of it is told at once.
final class ProblemCollector {
    /// Beyond these a reader has seen enough.
    static let limit = 100

    private let document: DocumentNode
    /// Notes what is asked for, where the readers run over nothing to tell that.
    let survey: ConfigurationSurvey?
    private var problems: [ConfigurationProblem] = []
    private var flawed: Set<ConfigurationKeyPath> = []
    private var omitted = 0

    init(document: DocumentNode, survey: ConfigurationSurvey? = nil) {
        self.document = document
        self.survey = survey
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
        self.flawed.insert(problem.keyPath)
        guard !self.isRepetition(problem) else { return }
        self.problems.append(problem)
    }

    /// Whether further problems are only counted.
    var isFull: Bool { self.problems.count >= Self.limit }

    /// One option of the command line may set several values; what is wrong with it is told once.
    private func isRepetition(_ problem: ConfigurationProblem) -> Bool {
        guard case .option = problem.origin else { return false }
        return self.problems.contains {
            $0.origin == problem.origin && $0.expected == problem.expected && $0.found == problem.found
        }
    }

    private func omit(_ path: ConfigurationKeyPath) {
        self.flawed.insert(path)
        self.omitted += 1
    }

    /// Whether nothing is wrong at `path` or around it, so that what was read there may be believed.
    func isSound(_ path: ConfigurationKeyPath) -> Bool {
        path.selfAndAncestors.allSatisfy { !self.flawed.contains($0) }
    }

    /// Whether anything stands at `path`.
    func isWritten(_ path: ConfigurationKeyPath) -> Bool {
        self.document.node(at: path) != nil
    }

    /// Whether anything is wrong below `path` or there.
    func hasFlaw(within path: ConfigurationKeyPath) -> Bool {
        self.flawed.contains { $0.steps.starts(with: path.steps) }
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
