/// What a change of the configuration did; with `?dryRun=true`, what it would do.
package struct ConfigurationDifference: Codable, Sendable, Equatable {
    /// Whether it was carried out.
    package var applied: Bool
    package var changes: [ConfigurationDifferenceItem]

    package init(applied: Bool, changes: [ConfigurationDifferenceItem]) {
        self.applied = applied
        self.changes = changes
    }
}
