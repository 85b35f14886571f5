import ControlAPI
import GatewayCore

extension ControlProblem {
    /// Errors of a configuration that are told at most.
    private static let errorLimit = 100

    init(_ refusal: ConfigurationRefusal) {
        switch refusal {
        case .problems(let problems, let entry): self = Self.told(problems, entry: entry)
        case .unknown(let section, let name):
            self.init(404, "unknown-\(section.word)", "There is no \(section.word) \(name.prefix(64)).")
        case .taken(let section, let name):
            self = Self(
                409, "name-taken", "There is a \(section.word) \(name.prefix(64)) already; choose another name."
            )
            .at(pointer: "/name")
        case .cannotRun(let fault):
            self.init(409, "cannot-run", "Everything stays as it was, as this cannot run: \(fault.description)")
        case .changedMeanwhile: self = .changedMeanwhile
        case .noFile: self.init(409, "no-file", "The gateway was started without a file that could be read again.")
        case .unreadable(let text): self.init(409, "unreadable-file", text)
        }
    }

    static let changedMeanwhile = ControlProblem(
        412, "changed-meanwhile",
        "It is not, or not any more, what If-Match or If-None-Match asks for; get it again, and change that.")

    private static func told(_ problems: ConfigurationProblems, entry: ConfigurationKeyPath?) -> ControlProblem {
        let prefix = entry?.steps ?? []
        // Without an entry of its own, whatever is wrong is wrong elsewhere.
        let isOwn = problems.all.contains { entry != nil && $0.keyPath.steps.starts(with: prefix) }
        var problem =
            isOwn
            ? ControlProblem(422, "invalid-configuration", problems.all.first?.words ?? "")
            : ControlProblem(
                409, "conflicts-with-configuration", "It does not go with the rest: \(problems.all[0].located)")
        if problems.all.count > 1 { problem.detail += " (and \(problems.all.count - 1) more)" }
        problem.errors = problems.all.prefix(self.errorLimit).map { one in
            guard entry != nil, one.keyPath.steps.starts(with: prefix) else { return ProblemField(detail: one.located) }
            return ProblemField(
                pointer: one.keyPath.pointer(droppingFirst: prefix.count), detail: one.words)
        }
        return problem
    }
}

extension ConfigurationProblem {
    /// What is wrong, without the place.
    fileprivate var words: String {
        let text = "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : "\(text); \(self.remedy)"
    }

    /// With the place in the whole configuration.
    fileprivate var located: String {
        self.keyPath.steps.isEmpty ? self.words : "\(self.keyPath): \(self.words)"
    }
}

extension ConfigurationKeyPath {
    /// As RFC 6901 writes it.
    func pointer(droppingFirst count: Int = 0) -> String {
        self.steps.dropFirst(count).map { step in
            switch step {
            case .key(let name): "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
            case .index(let index): "/\(index)"
            }
        }.joined()
    }
}
