/// A configuration that passed every check, with the places it was read from.
package struct LocatedConfiguration: Sendable {
    package let configuration: GatewayConfiguration
    package let document: DocumentNode

    init(_ configuration: GatewayConfiguration, document: DocumentNode) {
        self.configuration = configuration
        self.document = document
    }

    /// Whether there was anything at `path`, or its value is the default.
    package func isWritten(_ path: ConfigurationKeyPath) -> Bool {
        self.document.node(at: path) != nil
    }

    /// A problem with the value at `path` that only showed later, at its place in the file or on the command line.
    package func problem(
        at path: ConfigurationKeyPath, expected: String, found: String, remedy: String = ""
    ) -> ConfigurationProblem {
        ConfigurationProblem(
            origin: self.document.origin(at: path), keyPath: path, expected: expected, found: found, remedy: remedy)
    }
}
