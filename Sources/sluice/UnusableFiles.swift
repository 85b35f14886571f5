import GatewayCore

/// A configuration file, or files that it names, cannot be opened.
struct UnusableFiles: Error, CustomStringConvertible {
    /// A line for each.
    let description: String
    /// The same one by one, where the files are named by a configuration.
    let problems: [ConfigurationProblem]

    init(_ description: String) {
        self.description = description
        self.problems = []
    }

    init(_ problems: [ConfigurationProblem]) {
        self.description = problems.map(\.description).joined(separator: "\n")
        self.problems = problems
    }
}
