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
