/// One word or sign of Swift source. Comments are no tokens, and of a string literal only its interpolations are.
struct Token: Equatable {
    /// An identifier, a keyword, a number, `"` for a whole piece of string literal, or one sign.
    let text: String
    /// Counted from 1.
    let line: Int
    /// No blank, line break or comment separates this token from the previous one.
    let touchesPrevious: Bool

    var isWord: Bool {
        self.text.utf8.first.map(Tokenizer.isWordByte) ?? false
    }
}
