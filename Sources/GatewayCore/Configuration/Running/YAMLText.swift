import Yams

/// Writes documents as YAML that reads back as the same.
package enum YAMLText {
    /// - Returns: `nil` where the writer of YAML fails, which it does for want of memory alone.
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

    /// What our own reader, or another one, would take for nothing or for another kind of value stands in quotation marks.
    private static func scalar(_ text: String) -> Node.Scalar {
        let isPlain =
            text.utf8.first.map { NameText.isAlphanumeric($0) || $0 == UInt8(ascii: "/") } ?? false
            && text.utf8.allSatisfy { byte in
                NameText.isAlphanumeric(byte) || "-_./ ".utf8.contains(byte)
            } && !["null", "yes", "no", "on", "off"].contains(text.lowercased()) && text.utf8.last != UInt8(ascii: " ")
        return Node.Scalar(text, Tag(.implicit), isPlain ? .plain : .doubleQuoted)
    }
}
