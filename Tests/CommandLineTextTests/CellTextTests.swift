import CommandLineText
import Testing

@Suite("Text in cells")
struct CellTextTests {
    @Test(arguments: [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abc", 0, ""), ("漢字", 4, "漢字"), ("漢字", 3, "漢…"), ("漢字", 2, "…"),
        ("", 2, ""),
    ])
    func textIsCutAfterWholeCharacters(_ text: String, _ cells: Int, _ shown: String) {
        #expect(CellText.truncate(text, cells: cells) == shown)
        #expect(CellWidth.of(CellText.truncate(text, cells: cells)) <= cells)
    }

    @Test func cellIsPaddedOnTheOtherSide() {
        #expect(CellText.fit("ab", cells: 4) == "ab  ")
        #expect(CellText.fit("ab", cells: 4, rightAligned: true) == "  ab")
        #expect(CellText.fit("漢字", cells: 3) == "漢…")
        #expect(CellText.fit("漢字", cells: 2, rightAligned: true) == " …")
    }

    @Test(
        arguments: [
            ("127.0.0.1:50000", 15, "127.0.0.1:50000"), ("127.0.0.1:50000", 12, "127.0…:50000"),
            ("[2001:db8::1]:443", 10, "[2001…:443"), ("127.0.0.1:50000", 6, "127.0…"), ("/run/app.sock", 8, "/run/ap…"),
            ("/run/a:b.sock", 8, "/run/a:…"), ("a:", 1, "…"),
        ] as [(String, Int, String)])
    func anAddressIsCutBeforeItsPort(_ text: String, _ cells: Int, _ cut: String) {
        #expect(CellText.truncate(address: text, cells: cells) == cut)
    }
}
