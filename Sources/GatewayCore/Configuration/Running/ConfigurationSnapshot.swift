/// The configuration that runs, as it was at one moment.
package struct ConfigurationSnapshot: Sendable {
    private struct Place: Hashable {
        let section: ConfigurationSection
        let name: String
    }

    package let document: DocumentNode
    package let configuration: GatewayConfiguration
    /// Grows with each change.
    package let revision: UInt64
    /// When each entry was last changed.
    private let revisions: [Place: UInt64]

    init(_ document: DocumentNode, _ configuration: GatewayConfiguration) {
        self.document = document
        self.configuration = configuration
        self.revision = 1
        self.revisions = Self.revisions(of: document, 1, former: nil)
    }

    private init(_ document: DocumentNode, _ configuration: GatewayConfiguration, after former: ConfigurationSnapshot) {
        self.document = document
        self.configuration = configuration
        let isSame = document.isSame(as: former.document)
        self.revision = former.revision + (isSame ? 0 : 1)
        self.revisions = Self.revisions(of: document, self.revision, former: former)
    }

    func followed(by document: DocumentNode, _ configuration: GatewayConfiguration) -> ConfigurationSnapshot {
        ConfigurationSnapshot(document, configuration, after: self)
    }

    private static func revisions(
        of document: DocumentNode, _ revision: UInt64, former: ConfigurationSnapshot?
    ) -> [Place: UInt64] {
        var revisions: [Place: UInt64] = [:]
        for section in ConfigurationSection.allCases {
            for node in document.elements(section) {
                guard let name = node["name"]?.text else { continue }
                let place = Place(section: section, name: name)
                let isSame = former?.entry(name, in: section)?.isSame(as: node) ?? false
                revisions[place] = isSame ? former?.revisions[place] ?? revision : revision
            }
        }
        return revisions
    }

    package func entry(_ name: String, in section: ConfigurationSection) -> DocumentNode? {
        self.document.index(of: name, in: section).map { self.document.elements(section)[$0] }
    }

    /// `nil` for an entry that is not there.
    package func revision(of name: String, in section: ConfigurationSection) -> UInt64? {
        self.revisions[Place(section: section, name: name)]
    }
}
