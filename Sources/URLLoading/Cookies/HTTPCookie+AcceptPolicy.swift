extension HTTPCookie {
    /// Whose cookies a storage takes from answers.
    public enum AcceptPolicy: UInt, Sendable {
        case always = 0
        case never = 1
        /// Those of the site that the main document is of. Where no document is named, every answer is of its own site.
        case onlyFromMainDocumentDomain = 2
    }
}
