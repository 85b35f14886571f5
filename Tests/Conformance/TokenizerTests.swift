import Testing

@Suite("Tokens of Swift source")
struct TokenizerTests {
    static let vectors: [(String, [String])] = [
        ("let a = b", ["let", "a", "=", "b"]),
        ("a // b\nc", ["a", "c"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        (#"f("x! // \(y!) z")"#, ["f", "(", "\"", "y", "!", ")"]),
        (##"f(#"a" \(b) \#(c)"#)"##, ["f", "(", "\"", "c", ")"]),
        ("\"\"\"\n fatalError \"x\" \\(a(1))\n\"\"\" + b", ["\"", "a", "(", "1", ")", "+", "b"]),
        (#""\\" + c"#, ["\"", "+", "c"]),
    ]

    @Test(arguments: vectors)
    func tokenizerLeavesCommentsAndStringsOut(_ source: String, _ expected: [String]) {
        #expect(Tokenizer.tokens(of: source).map(\.text) == expected)
    }

    @Test func linesAreCountedThroughCommentsAndLongStrings() {
        let source = "/* one\n two */ a\n\"\"\"\nb\n\"\"\"\nc"
        #expect(Tokenizer.tokens(of: source).map(\.line) == [2, 3, 6])
    }

    @Test func tokenizerMarksAdjacentTokens() {
        #expect(Tokenizer.tokens(of: "a! = !b").map(\.touchesPrevious) == [false, true, false, false, true])
    }

    @Test(arguments: ["\"open", "/* open", "#\"open\"", "\"\\(open", "\"\"\"\nopen"])
    func tokenizerEndsOnUnfinishedSource(_ source: String) {
        #expect(Tokenizer.tokens(of: source).count <= 4)
    }
}
