/// Why a piece of text is not what it was read as.
package struct TextFault: Error, Equatable, Sendable {
    /// What the text should have been, to be read after "expected".
    package let expected: String
    /// What to do, a sentence without its full stop; empty where `expected` says it all.
    package let remedy: String

    package init(expected: String, remedy: String = "") {
        self.expected = expected
        self.remedy = remedy
    }
}
