/// What a bulk verb did.
package struct BulkAnswer: Codable, Sendable, Equatable {
    /// Connections that are meant.
    package var matched: Int
    /// Of them, told to end; 0 in a preview.
    package var told: Int
    /// Of a drain that is only counted: from its beginning until the last one is told, in milliseconds.
    package var takesMs: Int?
    /// Of a drain that is only counted: that its deadline comes too soon, in words, and what to do.
    package var warning: String?

    package init(matched: Int, told: Int) {
        self.matched = matched
        self.told = told
    }
}
