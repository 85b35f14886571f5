import CommandLineText
import Testing

@Suite("Text tables")
struct TextTableTests {
    private static func table() -> TextTable {
        var table = TextTable([
            TextTable.Column("ID", rightAligned: true), TextTable.Column("PEER", minimumWidth: 6, dropOrder: 2),
            TextTable.Column("NAME", minimumWidth: 6, dropOrder: 1),
        ])
        table.add(["7", "127.0.0.1:50000", "blue"])
        table.add(["1234", "10.0.0.1:1", "a name that goes on"])
        return table
    }

    @Test func columnIsAsWideAsItsWidestCell() {
        #expect(
            Self.table().lines() == [
                "  ID  PEER             NAME",
                "   7  127.0.0.1:50000  blue",
                "1234  10.0.0.1:1       a name that goes on",
            ])
    }

    @Test func theWidestColumnsAreCutUntilTheRowFits() {
        let lines = Self.table().lines(cells: 28)
        #expect(lines.allSatisfy { CellWidth.of($0) <= 28 })
        #expect(lines[2].hasPrefix("1234  10.0.0.1:1") && lines[2].hasSuffix("…"))
    }

    @Test func narrowTableOmitsTheLeastImportantColumns() {
        #expect(Self.table().lines(cells: 15) == ["  ID  NAME", "   7  blue", "1234  a name t…"])
        #expect(Self.table().lines(cells: 8) == ["  ID", "   7", "1234"])
    }

    @Test(arguments: 0...60)
    func noRowIsWiderThanTheTerminal(_ cells: Int) {
        // Except for cells that are never cut.
        #expect(Self.table().lines(cells: cells).allSatisfy { CellWidth.of($0) <= max(4, cells) })
    }

    @Test func wideCharactersTakeTwoCells() {
        var table = TextTable([TextTable.Column("A"), TextTable.Column("B")])
        table.add(["漢字", "x"])
        table.add(["e\u{301}", "y"])
        #expect(table.lines() == ["A     B", "漢字  x", "e\u{301}     y"])
    }

    @Test func controlCharactersFromPeersAreEscaped() {
        var table = TextTable([TextTable.Column("A"), TextTable.Column("B")])
        table.add([TextTable.Cell("\u{1B}[2J\nboo\u{202E}"), "x"])
        let lines = table.lines(colors: false)
        #expect(lines.count == 2)
        #expect(lines[1] == "\\u{1B}[2J boo\\u{202E}  x")
    }

    @Test func coloursAreWrittenOnlyWhenEnabled() {
        var table = TextTable([TextTable.Column("A"), TextTable.Column("B")])
        table.add([TextTable.Cell("ok", .green), "x"])
        #expect(table.lines(colors: true)[1] == "\u{1B}[32mok\u{1B}[0m  x")
        #expect(table.lines(colors: false)[1] == "ok  x")
    }

    @Test func missingCellDiffersFromAnEmptyOne() {
        var table = TextTable([TextTable.Column("A"), TextTable.Column("B"), TextTable.Column("C")])
        table.add([TextTable.Cell(nil), ""])
        #expect(table.lines()[1] == "-     -")
    }

    @Test func tablesOfOneLayoutAlign() {
        var first = TextTable([TextTable.Column("A"), TextTable.Column("B")])
        first.add(["long enough", "1"])
        var second = TextTable(first.columns)
        second.add(["short", "2"])
        #expect(second.lines(first.layout()) == ["short        2"])
    }
}
