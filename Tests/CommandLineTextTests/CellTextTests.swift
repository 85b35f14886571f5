import CommandLineText
import Testing

@Suite("Text in cells")
struct CellTextTests {
    @Test(arguments: [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abc", 0, ""), ("漢字", 4, "漢字"), ("漢字", 3, "漢…"), ("漢字", 2, "…"),
        ("", 2, ""),
    ])
    func cutsBehindWholeCharacters(_ text: String, _ cells: Int, _ shown: String) {
        #expect(CellText.cut(text, cells: cells) == shown)
        #expect(CellWidth.of(CellText.cut(text, cells: cells)) <= cells)
    }

    @Test func fillsUpOnTheOtherSide() {
        #expect(CellText.fit("ab", cells: 4) == "ab  ")
        #expect(CellText.fit("ab", cells: 4, trailing: true) == "  ab")
        #expect(CellText.fit("漢字", cells: 3) == "漢…")
        #expect(CellText.fit("漢字", cells: 2, trailing: true) == " …")
    }
}
