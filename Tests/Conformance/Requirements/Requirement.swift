/// One MUST of an RFC that concerns us, and what became of it.
struct Requirement: CustomStringConvertible {
    enum Status {
        /// Tests that fail when the rule is broken: `Type.function`, or `file.py::function` among the scenarios.
        case proven([String])
        /// We do otherwise, for this reason.
        case deviation(String)
        /// We mean to keep it, but no test shows that we do, for this reason.
        case unproven(String)
    }

    /// Document and section, as in `RFC 6455 §4.2.1`.
    let source: String
    /// The rule, in our words.
    let rule: String
    let standing: Status

    var description: String { "\(self.source): \(self.rule)" }

    /// The tests named, if it is proven.
    var tests: [String] {
        if case .proven(let tests) = self.standing { tests } else { [] }
    }

    static func proven(_ source: String, _ rule: String, by tests: String...) -> Requirement {
        Requirement(source: source, rule: rule, standing: .proven(tests))
    }

    static func deviation(_ source: String, _ rule: String, because reason: String) -> Requirement {
        Requirement(source: source, rule: rule, standing: .deviation(reason))
    }

    static func unproven(_ source: String, _ rule: String, because reason: String) -> Requirement {
        Requirement(source: source, rule: rule, standing: .unproven(reason))
    }
}
