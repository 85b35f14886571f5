/// What a bulk verb did.
package struct BulkAnswer: Codable, Sendable, Equatable {
    /// Connections that are meant.
    package var matched: Int
    /// Of them, told to end; 0 in a preview.
    package var told: Int

    package init(matched: Int, told: Int) {
        self.matched = matched
        self.told = told
    }
}
