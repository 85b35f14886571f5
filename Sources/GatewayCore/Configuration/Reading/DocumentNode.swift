/// A configuration as it was written, before anybody asks what it means: from a file or from a command line.
package struct DocumentNode: Sendable {
    package indirect enum Content: Sendable {
        /// A key with nothing behind it, `null` or `~`.
        case empty
        case scalar(String)
        case sequence([DocumentNode])
        case mapping([Entry])
    }

    package struct Entry: Sendable {
        package let key: String
        /// Where the key stands.
        package let origin: ConfigurationOrigin
        package let value: DocumentNode

        package init(key: String, origin: ConfigurationOrigin, value: DocumentNode) {
            self.key = key
            self.origin = origin
            self.value = value
        }
    }

    package let content: Content
    package let origin: ConfigurationOrigin

    package init(_ content: Content, origin: ConfigurationOrigin) {
        self.content = content
        self.origin = origin
    }

    /// What is there, to be read after "found".
    var summary: String {
        switch self.content {
        case .empty: "nothing"
        case .scalar(let text): QuotedText.quoted(text)
        case .sequence(let nodes): nodes.isEmpty ? "an empty list" : "a list"
        case .mapping: "a mapping"
        }
    }

    /// Where the value at `path` was written; of the nearest value around it, if it was not.
    func origin(at path: ConfigurationKeyPath) -> ConfigurationOrigin {
        var node = self
        for step in path.steps {
            guard let next = node.child(step) else { break }
            node = next
        }
        return node.origin
    }

    /// What was written at `path`, to be read after "found".
    func summary(at path: ConfigurationKeyPath) -> String {
        self.node(at: path)?.summary ?? "nothing"
    }

    /// The value at `path`, if it was written.
    func node(at path: ConfigurationKeyPath) -> DocumentNode? {
        var node = self
        for step in path.steps {
            guard let next = node.child(step) else { return nil }
            node = next
        }
        return node
    }

    /// A single value stands for a list of one.
    private func child(_ step: ConfigurationKeyPath.Step) -> DocumentNode? {
        switch (step, self.content) {
        case (.key(let name), .mapping(let entries)): entries.first { $0.key == name }?.value
        case (.index(let index), .sequence(let nodes)) where nodes.indices.contains(index): nodes[index]
        case (.index(0), .scalar): self
        default: nil
        }
    }
}
