/// One part of a configuration that differs from another.
package struct ConfigurationChange: Sendable {
    package enum Kind: String, Sendable {
        case created
        case changed
        case deleted
    }

    /// A value that differs.
    package struct Member: Sendable {
        /// Path relative to the entry; empty for the whole entry.
        package let path: ConfigurationKeyPath
        package let before: DocumentNode?
        package let after: DocumentNode?
    }

    /// `nil` for settings outside the lists.
    package let section: ConfigurationSection?
    package let name: String
    package let kind: Kind
    package let members: [Member]

    /// Changes that turn `before` into `after`: list by list, then the other settings.
    package static func between(_ before: DocumentNode, _ after: DocumentNode) -> [ConfigurationChange] {
        let lists = ConfigurationSection.allCases.flatMap { self.between(before, after, in: $0) }
        let keys = (before.entries + after.entries).map(\.key).filter { ConfigurationSection(rawValue: $0) == nil }
        var seen: Set<String> = []
        let members = keys.filter { seen.insert($0).inserted }.flatMap { key in
            self.members(before[key], after[key], at: .root.key(key))
        }
        guard !members.isEmpty else { return lists }
        return lists + [ConfigurationChange(section: nil, name: "", kind: .changed, members: members)]
    }

    private static func between(
        _ before: DocumentNode, _ after: DocumentNode, in section: ConfigurationSection
    ) -> [ConfigurationChange] {
        func named(_ document: DocumentNode) -> [(name: String, node: DocumentNode)] {
            document.elements(section).compactMap { node in node["name"]?.text.map { ($0, node) } }
        }
        let (old, new) = (named(before), named(after))
        let deleted = old.filter { entry in !new.contains { $0.name == entry.name } }.map { entry in
            let member = Member(path: .root, before: entry.node, after: nil)
            return Self(section: section, name: entry.name, kind: .deleted, members: [member])
        }
        let others = new.compactMap { entry -> Self? in
            guard let former = old.first(where: { $0.name == entry.name }) else {
                let member = Member(path: .root, before: nil, after: entry.node)
                return Self(section: section, name: entry.name, kind: .created, members: [member])
            }
            let members = Self.members(former.node, entry.node, at: .root)
            return members.isEmpty ? nil : Self(section: section, name: entry.name, kind: .changed, members: members)
        }
        return deleted + others
    }

    private static func members(
        _ before: DocumentNode?, _ after: DocumentNode?, at path: ConfigurationKeyPath
    ) -> [Member] {
        guard let before, let after, case .mapping(let old) = before.content, case .mapping(let new) = after.content
        else {
            let isSame = before.map { before in after.map { before.isSame(as: $0) } ?? false } ?? (after == nil)
            return isSame ? [] : [Member(path: path, before: before, after: after)]
        }
        let added = new.filter { before[$0.key] == nil }
        return old.flatMap { self.members($0.value, after[$0.key], at: path.key($0.key)) }
            + added.flatMap { self.members(nil, $0.value, at: path.key($0.key)) }
    }
}

extension ConfigurationChange.Member {
    /// Whether the change takes effect only at the next start: settings outside the lists that are read only then.
    package var needsRestart: Bool {
        Self.needsRestart(
            self.path.steps[...], in: ConfigurationSchema.whole, [self.before, self.after].compactMap { $0 })
    }

    /// - Parameters:
    ///   - steps: the path of the change below `section`; if empty, each key that one of `values` sets counts.
    ///   - values: before and after the change.
    private static func needsRestart(
        _ steps: ArraySlice<ConfigurationKeyPath.Step>, in section: ConfigurationSchema.Section,
        _ values: [DocumentNode]
    ) -> Bool {
        guard case .key(let name)? = steps.first else {
            return values.flatMap(\.entries).contains { Self.needsRestart([.key($0.key)], in: section, [$0.value]) }
        }
        guard let key = section.key(name) else { return false }
        guard case .section(let inner) = key.form, !key.needsRestart else { return key.needsRestart }
        return Self.needsRestart(steps.dropFirst(), in: inner, values)
    }
}

/// One of the lists of a configuration, whose entries have names.
package enum ConfigurationSection: String, CaseIterable, Sendable {
    case listeners
    case routes
    case upstreams

    /// Name of one entry, for messages.
    package var singularName: String { String(self.rawValue.dropLast()) }

    package var path: ConfigurationKeyPath { ConfigurationKeyPath.root.key(self) }
}
