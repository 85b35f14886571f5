import WireText
import Yams

/// Hides secret values from the readers of a configuration.
extension DocumentNode {
    /// Shown instead of a secret value. A change that contains it keeps the value.
    package static let hiddenText = CredentialName.hiddenValue

    private static let secretKeys: Set<String> = ["password", "secret", "token"]

    /// Whether the value at the path `keys` is secret.
    package static func isSecret(_ keys: [String]) -> Bool {
        guard let last = keys.last else { return false }
        // The URL of Redis may contain a password.
        if keys == [GatewayKey.cluster.rawValue] || keys == [GatewayKey.cluster.rawValue, ClusterKey.redis.rawValue] {
            return true
        }
        return self.secretKeys.contains(last)
            || keys.dropLast().last == RouteKey.headers.rawValue && CredentialName.matches(last)
    }

    /// A copy in which passwords, tokens and header fields with credentials are hidden.
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

    /// Hides the value of a header field written as one line, `Name: value`.
    private static func hidingField(_ text: String, _ keys: [String]) -> String {
        guard keys.last == RouteKey.headers.rawValue, let colon = text.firstIndex(of: ":"),
            CredentialName.matches(text[..<colon])
        else { return text }
        return "\(text[...colon]) \(self.hiddenText)"
    }

    /// Restores hidden values from `former`. Values without a counterpart there stay hidden.
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

    /// The counterpart of each node: the one of the same name, or without a name the one at the same index.
    private static func counterparts(of nodes: [DocumentNode], in former: [DocumentNode]) -> [DocumentNode?] {
        nodes.enumerated().map { index, node in
            if let name = node["name"]?.text { return former.first { $0["name"]?.text == name } }
            return former.indices.contains(index) ? former[index] : nil
        }
    }

    /// Paths of values that are still hidden.
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

/// Writes documents as YAML that parses to the same document.
package enum YAMLText {
    /// - Returns: `nil` if the YAML emitter runs out of memory.
    package static func text(of document: DocumentNode) -> String? {
        try? Yams.serialize(node: self.node(document), width: -1, allowUnicode: true)
    }

    private static func node(_ node: DocumentNode) -> Node {
        switch node.content {
        case .empty: .scalar(Node.Scalar("null", Tag(.implicit), .plain))
        case .scalar(let text): .scalar(Self.scalar(text))
        case .sequence(let nodes): .sequence(Node.Sequence(nodes.map(self.node), Tag(.implicit), .any))
        case .mapping(let entries):
            .mapping(
                Node.Mapping(
                    entries.map { (Node.scalar(Self.scalar($0.key)), self.node($0.value)) }, Tag(.implicit), .any))
        }
    }

    /// Quotes text that a YAML reader would take for null or for another type.
    private static func scalar(_ text: String) -> Node.Scalar {
        let isPlain =
            text.utf8.first.map { NameText.isAlphanumeric($0) || $0 == UInt8(ascii: "/") } ?? false
            && text.utf8.allSatisfy { byte in
                NameText.isAlphanumeric(byte) || "-_./ ".utf8.contains(byte)
            } && !["null", "yes", "no", "on", "off"].contains(text.lowercased()) && text.utf8.last != UInt8(ascii: " ")
        return Node.Scalar(text, Tag(.implicit), isPlain ? .plain : .doubleQuoted)
    }
}
