import GatewayConfiguration

/// One change of the running configuration.
package enum ConfigurationEdit: Sendable {
    /// Adds an entry at the end of its list.
    case create(ConfigurationSection, DocumentNode)
    /// Replaces the entry of this name, or adds it.
    case put(ConfigurationSection, name: String, DocumentNode)
    /// Applies a JSON merge patch to an entry (RFC 7396).
    case merge(ConfigurationSection, name: String, DocumentNode)
    case delete(ConfigurationSection, name: String)
    /// Replaces the whole configuration.
    case replace(DocumentNode)

    /// Result of applying an edit to a document.
    struct Result {
        var document: DocumentNode
        /// Path of the entry that was written; `nil` if none was.
        var path: ConfigurationKeyPath?
    }

    func apply(to document: DocumentNode) throws(ConfigurationRefusal) -> Result {
        switch self {
        case .create(let section, let entry):
            if let name = entry["name"]?.text, document.index(of: name, in: section) != nil {
                throw .taken(section, name)
            }
            return try Self.write(entry, nil, section, in: document)
        case .put(let section, let name, let entry):
            let entry = try Self.named(name, entry, section)
            return try Self.write(entry, document.index(of: name, in: section), section, in: document)
        case .merge(let section, let name, let patch):
            guard let index = document.index(of: name, in: section) else { throw .unknown(section, name) }
            let merged = document.elements(section)[index].merged(with: patch)
            return try Self.write(try Self.named(name, merged, section), index, section, in: document)
        case .delete(let section, let name):
            guard let index = document.index(of: name, in: section) else { throw .unknown(section, name) }
            var elements = document.elements(section)
            elements.remove(at: index)
            return Result(document: document.with(section, elements), path: nil)
        case .replace(let whole):
            let restored = whole.restoringSecrets(from: document)
            try Self.refuseUnknownSecrets(restored, at: .root)
            return Result(document: restored, path: .root)
        }
    }

    /// Section and name of the changed entry; `nil` for the whole configuration.
    package var entry: (section: ConfigurationSection, name: String?)? {
        switch self {
        case .create(let section, let entry): (section, entry["name"]?.text)
        case .put(let section, let name, _), .merge(let section, let name, _), .delete(let section, let name):
            (section, name)
        case .replace: nil
        }
    }

    private static func write(
        _ entry: DocumentNode, _ index: Int?, _ section: ConfigurationSection, in document: DocumentNode
    ) throws(ConfigurationRefusal) -> Result {
        var elements = document.elements(section)
        let path = section.path.index(index ?? elements.count)
        let restored = entry.restoringSecrets(from: index.map { elements[$0] })
        try self.refuseUnknownSecrets(restored, at: path)
        if let index { elements[index] = restored } else { elements.append(restored) }
        return Result(document: document.with(section, elements), path: path)
    }

    private static func refuseUnknownSecrets(
        _ node: DocumentNode, at path: ConfigurationKeyPath
    ) throws(ConfigurationRefusal) {
        let hidden = node.unknownSecrets(at: path)
        guard !hidden.isEmpty else { return }
        let problems = hidden.map { path in
            ConfigurationProblem(
                origin: DocumentNode.requestOrigin, keyPath: path, expected: "a secret",
                found: "the placeholder of a hidden secret", remedy: "give the secret; there is no former value to keep"
            )
        }
        throw .problems(ConfigurationProblems(problems), entry: path)
    }

    /// An entry keeps its name: others refer to it.
    private static func named(
        _ name: String, _ entry: DocumentNode, _ section: ConfigurationSection
    ) throws(ConfigurationRefusal) -> DocumentNode {
        guard let written = entry["name"] else {
            return entry.with("name", DocumentNode(.scalar(name), origin: DocumentNode.requestOrigin))
        }
        guard written.text != name else { return entry }
        let path = section.path.index(0)
        let problem = ConfigurationProblem(
            origin: written.origin, keyPath: path.key("name"),
            expected: "the name in the path, \(QuotedText.quoted(name))",
            found: written.summary, remedy: "leave it out; a \(section.singularName) keeps its name")
        throw .problems(ConfigurationProblems([problem]), entry: path)
    }
}

/// Why a change of the configuration was refused. Nothing is changed.
package enum ConfigurationRefusal: Error, Sendable {
    /// - Parameter entry: path of the written entry in the whole document; `nil` if none was written.
    case problems(ConfigurationProblems, entry: ConfigurationKeyPath?)
    case unknown(ConfigurationSection, String)
    case taken(ConfigurationSection, String)
    /// It cannot run: an unusable certificate, an address in use.
    case cannotRun(GatewayPlanError)
    /// The condition of the change was not met: another request changed the configuration before.
    case preconditionFailed
    /// There is no configuration file.
    case noFile
    /// The file cannot be read.
    case unreadable(String)
}

extension ConfigurationRefusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .problems(let problems, _): problems.description
        case .unknown(let section, let name): "there is no \(section.singularName) \(QuotedText.quoted(name))"
        case .taken(let section, let name): "the \(section.singularName) \(QuotedText.quoted(name)) already exists"
        case .cannotRun(let error): error.description
        case .preconditionFailed: "the configuration has changed since it was read"
        case .noFile: "there is no file"
        case .unreadable(let text): text
        }
    }
}
