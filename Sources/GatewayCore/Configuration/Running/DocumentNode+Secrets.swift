/// Values that are not shown to everybody who may look at a configuration.
extension DocumentNode {
    /// What stands for such a value. Where it comes back in a change, the value stays what it was.
    package static let hiddenText = "(hidden)"

    private static let secretKeys: Set<String> = ["password", "token"]
    private static let secretFields: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// Whether the value behind the last of `keys` is one.
    package static func isSecret(_ keys: [String]) -> Bool {
        guard let last = keys.last else { return false }
        return self.secretKeys.contains(last)
            || keys.dropLast().last == RouteKey.headers.rawValue && self.secretFields.contains(last.lowercased())
    }

    /// The same with the values of passwords and of headers that carry credentials hidden.
    package func hidingSecrets(below keys: [String] = []) -> DocumentNode {
        switch self.content {
        case .empty: self
        case .scalar(let text):
            DocumentNode(
                .scalar(Self.isSecret(keys) ? Self.hiddenText : Self.hidingField(text, keys)), origin: self.origin)
        case .sequence(let nodes):
            DocumentNode(.sequence(nodes.map { $0.hidingSecrets(below: keys) }), origin: self.origin)
        case .mapping(let entries):
            DocumentNode(
                .mapping(
                    entries.map { entry in
                        Entry(
                            key: entry.key, origin: entry.origin,
                            value: entry.value.hidingSecrets(below: keys + [entry.key]))
                    }), origin: self.origin)
        }
    }

    /// A header may be written as a line of its own.
    private static func hidingField(_ text: String, _ keys: [String]) -> String {
        guard keys.last == RouteKey.headers.rawValue, let colon = text.firstIndex(of: ":"),
            self.secretFields.contains(text[..<colon].lowercased())
        else { return text }
        return "\(text[...colon]) \(self.hiddenText)"
    }

    /// Takes from `former` what is hidden here. What has no counterpart there stays hidden.
    package func restoringSecrets(from former: DocumentNode?, below keys: [String] = []) -> DocumentNode {
        guard let former else { return self }
        switch (self.content, former.content) {
        case (.scalar(let text), .scalar(let formerText)):
            let isHidden =
                Self.isSecret(keys)
                ? text == Self.hiddenText : text != formerText && text == Self.hidingField(formerText, keys)
            return isHidden ? former : self
        case (.sequence(let nodes), .sequence(let formerNodes)):
            let counterparts = Self.counterparts(of: nodes, in: formerNodes)
            let restored = zip(nodes, counterparts).map { $0.restoringSecrets(from: $1, below: keys) }
            return DocumentNode(.sequence(restored), origin: self.origin)
        case (.mapping(let entries), .mapping):
            let restored = entries.map { entry in
                Entry(
                    key: entry.key, origin: entry.origin,
                    value: entry.value.restoringSecrets(from: former[entry.key], below: keys + [entry.key]))
            }
            return DocumentNode(.mapping(restored), origin: self.origin)
        default: return self
        }
    }

    /// By name where there is one, else by place.
    private static func counterparts(of nodes: [DocumentNode], in former: [DocumentNode]) -> [DocumentNode?] {
        nodes.enumerated().map { index, node in
            if let name = node["name"]?.text { return former.first { $0["name"]?.text == name } }
            return former.indices.contains(index) ? former[index] : nil
        }
    }

    /// Where something is still hidden that nobody knows.
    package func unknownSecrets(at path: ConfigurationKeyPath = .root, below keys: [String] = [])
        -> [ConfigurationKeyPath]
    {
        switch self.content {
        case .empty: return []
        case .scalar(let text):
            let isHidden = Self.isSecret(keys) ? text == Self.hiddenText : text.hasSuffix(": \(Self.hiddenText)")
            return isHidden ? [path] : []
        case .sequence(let nodes):
            return nodes.enumerated().flatMap { $1.unknownSecrets(at: path.index($0), below: keys) }
        case .mapping(let entries):
            return entries.flatMap { $0.value.unknownSecrets(at: path.key($0.key), below: keys + [$0.key]) }
        }
    }
}
