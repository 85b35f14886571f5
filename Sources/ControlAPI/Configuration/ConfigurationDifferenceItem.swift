/// One part of the configuration that is other than it was.
package struct ConfigurationDifferenceItem: Codable, Sendable, Equatable {
    /// Its path: `/v1/listeners/web`; `/v1/configuration` for what stands outside of the lists.
    package var resource: String
    /// `created`, `changed` or `deleted`.
    package var change: String
    package var members: [ConfigurationDifferenceMember]

    package init(resource: String, change: String, members: [ConfigurationDifferenceMember]) {
        self.resource = resource
        self.change = change
        self.members = members
    }
}
