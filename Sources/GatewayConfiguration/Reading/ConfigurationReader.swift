/// Reads a configuration from a document, or reports all its problems.
package enum ConfigurationReader {
    /// The largest file that is read, in bytes: 1 MiB.
    package static let maximumFileSize = YAMLDocument.maximumSize

    /// - Parameters:
    ///   - bytes: a file's content, YAML in UTF-8.
    ///   - file: its name for messages.
    /// - Throws: all problems at once; of text that is not YAML the first.
    package static func read(_ bytes: [UInt8], file: String) throws(ConfigurationProblems) -> LocatedConfiguration {
        let document: DocumentNode
        do throws(ConfigurationProblem) {
            document = try Self.document(bytes, name: file)
        } catch {
            throw ConfigurationProblems([error])
        }
        return try Self.read(document)
    }

    /// Parses YAML into a document, without interpreting it.
    package static func document(_ bytes: [UInt8], name: String) throws(ConfigurationProblem) -> DocumentNode {
        try YAMLDocument.read(bytes, file: name)
    }

    /// The same for a document from elsewhere, like a command line.
    package static func read(_ document: DocumentNode) throws(ConfigurationProblems) -> LocatedConfiguration {
        let problems = ProblemCollector(document: document)
        let configuration = GatewayConfiguration(reading: SectionReader(document, at: .root, problems: problems))
        ConfigurationValidator(configuration, problems: problems).validate()
        try problems.finish()
        return LocatedConfiguration(configuration, document: document)
    }
}

/// A configuration that passed every check, with the places it was read from.
package struct LocatedConfiguration: Sendable {
    package let configuration: GatewayConfiguration
    package let document: DocumentNode

    init(_ configuration: GatewayConfiguration, document: DocumentNode) {
        self.configuration = configuration
        self.document = document
    }

    /// Whether there was anything at `path`, or its value is the default.
    package func isPresent(_ path: ConfigurationKeyPath) -> Bool {
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
