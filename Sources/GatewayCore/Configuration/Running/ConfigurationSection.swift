/// One of the lists of a configuration, whose entries have names.
package enum ConfigurationSection: String, CaseIterable, Sendable {
    case listeners
    case routes
    case upstreams

    /// One entry of it, in a sentence.
    package var word: String { String(self.rawValue.dropLast()) }

    package var path: ConfigurationKeyPath { ConfigurationKeyPath.root.key(self) }
}
