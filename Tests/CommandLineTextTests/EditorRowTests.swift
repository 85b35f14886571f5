import CommandLineText
import Testing

@Suite("Row of the line editor")
struct EditorRowTests {
    @Test func aShortLineIsShownWhole() {
        let row = EditorRow(Array("hello"), cursor: 2, cells: 20)
        #expect(row.text == "hello" && row.cursorCells == 2)
        #expect(row.rendered(prompt: "> ", promptCells: 2) == "\r\u{1B}[K> hello\r\u{1B}[4C")
        #expect(EditorRow([], cursor: 0, cells: 20).rendered(prompt: "", promptCells: 0) == "\r\u{1B}[K\r")
    }

    @Test(arguments: [2, 3, 7, 10, 40])
    func theCursorIsAlwaysInTheRow(_ cells: Int) {
        for line in ["abcdefghijklmnopqrstuvwxyz", "漢字かな交じり文", "a漢b字c", "e\u{301}\u{301}xyz", ""] {
            let characters = Array(line)
            for cursor in 0...characters.count {
                let row = EditorRow(characters, cursor: cursor, cells: cells)
                #expect(row.cursorCells < cells && CellWidth.of(row.text) <= cells, "\(line) \(cursor)")
            }
        }
    }

    @Test func pastedControlCharactersAreEscaped() {
        let row = EditorRow(["a", "\u{202E}", "b"], cursor: 3, cells: 40)
        #expect(row.text == "a\\u{202E}b" && row.cursorCells == 10)
    }

    @Test(arguments: [("a", 1), ("é", 1), ("e\u{301}", 1), ("漢", 2), ("ｱ", 1), ("Ａ", 2), ("🙂", 2), ("👩‍🚀", 2), ("", 0)])
    func charactersHaveTheirWidth(_ text: String, _ cells: Int) {
        #expect(CellWidth.of(text) == cells)
    }
}
