import CommandLineText
import Testing

@Suite("Progress in one line")
struct ProgressLineTests {
    @Test func barFillsTheSpaceNextToTheFigures() {
        let line = ProgressLine(done: 512, total: 1024, rate: 256).text(cells: 60)
        #expect(line == " 50% [#########.........]  512 B of 1 KiB  256 B/s  2 s left")
        #expect(CellWidth.of(line) == 60)
    }

    @Test(arguments: 20...120)
    func lineFitsTheTerminal(_ cells: Int) {
        for total in [nil, 0, 10_000_000_000] as [UInt64?] {
            let line = ProgressLine(done: 123_456_789, total: total, rate: 9_999_999).text(cells: cells)
            #expect(CellWidth.of(line) <= cells)
        }
    }

    @Test func incompleteTransferShowsLessThan100Percent() {
        #expect(ProgressLine(done: 999_999, total: 1_000_000).text(cells: 80).hasPrefix(" 99%"))
        #expect(ProgressLine(done: 1_000_000, total: 1_000_000).text(cells: 80).hasPrefix("100%"))
        #expect(ProgressLine(done: 0, total: 0).text(cells: 80).hasPrefix("100%"))
    }

    @Test func lineWithoutATotalHasFiguresOnly() {
        #expect(ProgressLine(done: 2048, rate: 1024).text(cells: 80) == "2 KiB  1 KiB/s")
    }
}
