/// Editing the document of a running configuration: unchanged parts stay as they were written.
extension DocumentNode {
    /// Origin of values from the REST interface.
    package static let requestOrigin = ConfigurationOrigin.wholeFile("the request")

    package var entries: [Entry] {
        if case .mapping(let entries) = self.content { entries } else { [] }
    }

    package var elements: [DocumentNode] {
        if case .sequence(let nodes) = self.content { nodes } else { [] }
    }

    package var text: String? {
        if case .scalar(let text) = self.content { text } else { nil }
    }

    package subscript(key: String) -> DocumentNode? {
        self.entries.first { $0.key == key }?.value
    }

    /// A copy with `value` at `key`; `nil` removes the key. A node that is not a mapping becomes one.
    package func with(_ key: String, _ value: DocumentNode?) -> DocumentNode {
        var entries = self.entries
        let index = entries.firstIndex { $0.key == key }
        switch (index, value) {
        case (let index?, let value?): entries[index] = Entry(key: key, origin: entries[index].origin, value: value)
        case (let index?, nil): entries.remove(at: index)
        case (nil, let value?): entries.append(Entry(key: key, origin: value.origin, value: value))
        case (nil, nil): break
        }
        return DocumentNode(.mapping(entries), origin: self.origin)
    }

    /// Applies a merge patch (RFC 7396 §2): empty members are removed, mappings are merged, all else is replaced.
    package func merged(with patch: DocumentNode) -> DocumentNode {
        guard case .mapping(let changes) = patch.content else { return patch }
        return changes.reduce(self) { node, change in
            guard case .empty = change.value.content else {
                let former = node[change.key] ?? DocumentNode(.mapping([]), origin: change.origin)
                return node.with(change.key, former.merged(with: change.value))
            }
            return node.with(change.key, nil)
        }
    }

    /// Whether both have the same content. Origins and the order of keys make no difference.
    package func isSame(as other: DocumentNode) -> Bool {
        switch (self.content, other.content) {
        case (.empty, .empty): true
        case (.scalar(let text), .scalar(let otherText)): text == otherText
        case (.sequence(let nodes), .sequence(let otherNodes)):
            nodes.count == otherNodes.count && zip(nodes, otherNodes).allSatisfy { $0.isSame(as: $1) }
        case (.mapping(let entries), .mapping(let otherEntries)):
            entries.count == otherEntries.count
                && entries.allSatisfy { entry in other[entry.key].map { entry.value.isSame(as: $0) } ?? false }
        case (.empty, _), (.scalar, _), (.sequence, _), (.mapping, _): false
        }
    }

    // MARK: Entries of the lists

    package func elements(_ section: ConfigurationSection) -> [DocumentNode] {
        self[section.rawValue]?.elements ?? []
    }

    package func index(of name: String, in section: ConfigurationSection) -> Int? {
        self.elements(section).firstIndex { $0["name"]?.text == name }
    }

    package func with(_ section: ConfigurationSection, _ elements: [DocumentNode]) -> DocumentNode {
        let origin = self[section.rawValue]?.origin ?? Self.requestOrigin
        return self.with(section.rawValue, DocumentNode(.sequence(elements), origin: origin))
    }
}
