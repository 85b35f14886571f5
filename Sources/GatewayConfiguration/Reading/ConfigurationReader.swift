/// Reads a configuration from YAML or a document, and reports all its problems at once.
package enum ConfigurationReader {
    /// The largest file that is read, in bytes: 1 MiB.
    package static let maximumFileSize = YAMLDocument.maximumSize

    /// - Parameters:
    ///   - bytes: content of the file, YAML in UTF-8.
    ///   - file: name of the file for messages.
    /// - Throws: all problems at once; for text that is not YAML, only the first.
    package static func read(_ bytes: [UInt8], file: String) throws(ConfigurationProblems) -> LocatedConfiguration {
        let document: DocumentNode
        do throws(ConfigurationProblem) {
            document = try Self.document(bytes, name: file)
        } catch {
            throw ConfigurationProblems([error])
        }
        return try Self.read(document)
    }

    /// Parses YAML into a document without interpreting it.
    package static func document(_ bytes: [UInt8], name: String) throws(ConfigurationProblem) -> DocumentNode {
        try YAMLDocument.read(bytes, file: name)
    }

    /// Reads a document from another source, like the command line.
    package static func read(_ document: DocumentNode) throws(ConfigurationProblems) -> LocatedConfiguration {
        let problems = ProblemCollector(document: document)
        let configuration = Configuration(reading: SectionReader(document, at: .root, problems: problems))
        ConfigurationValidator(configuration: configuration, problems: problems).validate()
        try problems.finish()
        return LocatedConfiguration(configuration: configuration, document: document)
    }
}

/// A configuration that passed every check, with the document it was read from.
package struct LocatedConfiguration: Sendable {
    package let configuration: Configuration
    package let document: DocumentNode

    /// Whether the document has a value at `path`; otherwise the default applies.
    package func isPresent(_ path: ConfigurationKeyPath) -> Bool {
        self.document.node(at: path) != nil
    }

    /// A problem with the value at `path` found after reading, with its position in the file or on the command line.
    package func problem(
        at path: ConfigurationKeyPath, expected: String, found: String, remedy: String = ""
    ) -> ConfigurationProblem {
        ConfigurationProblem(
            origin: self.document.origin(at: path), keyPath: path, expected: expected, found: found, remedy: remedy)
    }
}
