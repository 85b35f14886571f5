import CommandLineText
import Testing

@Suite("Line editor")
struct LineEditorTests {
    private func edited(_ keys: String) -> LineEditor {
        var editor = LineEditor()
        var decoder = KeyDecoder()
        for key in decoder.decode(Array(keys.utf8)) { _ = editor.handle(key) }
        return editor
    }

    /// `|` is the cursor.
    private func shown(_ keys: String) -> String {
        let editor = self.edited(keys)
        var characters = editor.characters
        characters.insert("|", at: editor.cursor)
        return String(characters)
    }

    @Test(arguments: [
        ("abc", "abc|"), ("abc\u{1B}[D", "ab|c"), ("abc\u{01}", "|abc"), ("abc\u{01}\u{05}", "abc|"),
        ("abc\u{1B}[D\u{7F}", "a|c"), ("abc\u{1B}[D\u{1B}[3~", "ab|"), ("abc\u{1B}[D\u{04}", "ab|"),
        ("one two\u{17}", "one |"), ("one two  \u{17}", "one |"), ("one two\u{15}", "|"),
        ("one two\u{01}\u{1B}f\u{0B}", "one|"), ("one two\u{17}\u{01}\u{19}", "two|one "),
        ("one two\u{1B}b\u{1B}b", "|one two"), ("x\u{02}\u{02}y", "y|x"), ("xy\u{01}\u{06}z", "xz|y"),
        ("\u{7F}\u{1B}[D\u{1B}[3~a", "a|"), ("漢字\u{7F}", "漢|"), ("e\u{301}\u{7F}", "|"), ("abc\u{03}", "|"),
    ])
    func keysEditTheLine(_ keys: String, _ line: String) {
        #expect(self.shown(keys) == line)
    }

    @Test func aMarkJoinsTheCharacterBeforeIt() {
        let editor = self.edited("e\u{301}x")
        #expect(editor.characters == ["é", "x"])
    }

    @Test func enterReturnsTheLineAndStartsANewOne() {
        var editor = self.edited("hello")
        #expect(editor.handle(.enter) == .submitted("hello"))
        #expect(editor.text.isEmpty && editor.cursor == 0)
        #expect(editor.handle(.enter) == .submitted(""))
    }

    @Test func controlCAndControlDMeanTheEndOnlyOfAnEmptyLine() {
        var editor = self.edited("x")
        #expect(editor.handle(.control("c")) == .changed)
        #expect(editor.handle(.control("c")) == .interrupted)
        #expect(editor.handle(.control("d")) == .endOfInput)
        #expect(editor.handle(.control("z")) == .suspended)
        #expect(editor.handle(.control("l")) == .cleared)
    }

    @Test func historyIsRecalledAndTheDraftKept() {
        var editor = self.edited("one\rtwo\rtwo\rdraft")
        let up = [Key.up, .up, .up].map { key in
            _ = editor.handle(key)
            return editor.text
        }
        #expect(up == ["two", "one", "one"])
        let down = [Key.down, .down, .down].map { key in
            _ = editor.handle(key)
            return editor.text
        }
        #expect(down == ["two", "draft", "draft"])
        #expect(editor.handle(.down) == .refused)
    }

    @Test func historyDropsTheOldestLine() {
        var history = InputHistory(limit: 2)
        for line in ["a", "b", "", "c"] { history.add(line) }
        #expect(history.older(than: "") == "c")
        #expect(history.older(than: "c") == "b")
        #expect(history.older(than: "b") == nil)
    }

    @Test func aLineHasALimit() {
        var editor = LineEditor()
        for _ in 0..<LineEditor.limit { _ = editor.handle(.character("x")) }
        #expect(editor.handle(.character("x")) == .refused)
        #expect(editor.characters.count == LineEditor.limit)
    }

    @Test func everyKeyIsAnsweredEverywhere() {
        let keys: [Key] =
            [
                .character("a"), .character("\u{301}"), .enter, .tab, .backspace, .delete, .left, .right, .wordLeft,
                .wordRight, .home, .end, .up, .down, .unknown,
            ] + "abcdefghijklmnopqrstuvwxyz".map { .control($0) }
        for first in keys {
            for second in keys {
                var editor = self.edited("one two\rthree fou\u{1B}[D\u{1B}[D")
                for key in [first, second, first] { _ = editor.handle(key) }
                #expect((0...editor.characters.count).contains(editor.cursor), "\(first) \(second)")
            }
        }
    }
}
