/// A table for people: each column as wide as its widest cell, no row wider than the terminal.
///
/// If a table is too wide, columns are dropped by importance as long as even their minimum widths do not fit; then the
/// widest columns are cut. Cells are made safe to print.
package struct TextTable: Sendable {
    package struct Column: Sendable, Equatable {
        package let title: String
        /// Right-aligned, for numbers.
        package let isTrailing: Bool
        /// The column may be cut down to so many cells; `nil`: it is never cut.
        package let least: Int?
        /// 0 is never left out; the greatest number goes first.
        package let rank: Int
        /// For addresses: cutting removes the middle, not the port behind the last colon.
        package let keepsPort: Bool

        package init(
            _ title: String, trailing: Bool = false, least: Int? = nil, rank: Int = 0, keepsPort: Bool = false
        ) {
            self.title = title
            self.keepsPort = keepsPort
            self.isTrailing = trailing
            self.least = least
            self.rank = rank
        }
    }

    package struct Cell: Sendable, Equatable, ExpressibleByStringLiteral {
        package let text: String
        package let ink: Ink

        package init(_ text: String?, _ ink: Ink = .plain) {
            // Distinguishes a missing value from an empty one.
            self.text = text.map { TerminalText.line($0, limit: Self.limit) } ?? "-"
            self.ink = text == nil ? .faint : ink
        }

        package init(stringLiteral text: String) {
            self.init(text)
        }

        /// Characters of a cell at most, whatever the terminal's width.
        private static let limit = 400
    }

    /// Column widths, so that consecutive tables align; 0 for a dropped column.
    package struct Layout: Sendable, Equatable {
        fileprivate let widths: [Int]
    }

    private static let gap = 2

    package let columns: [Column]
    package private(set) var rows: [[Cell]] = []

    package init(_ columns: [Column]) {
        self.columns = columns
    }

    /// - Parameter cells: one for each column; missing ones are shown as missing, superfluous ones dropped.
    package mutating func add(_ cells: [Cell]) {
        let missing = Array(repeating: Cell(nil), count: max(0, self.columns.count - cells.count))
        self.rows.append(cells.prefix(self.columns.count) + missing)
    }

    // MARK: Drawing

    /// - Parameters:
    ///   - cells: of the terminal's row; `nil`: as wide as it is.
    ///   - colors: whether inks are drawn.
    package func lines(cells: Int? = nil, colors: Bool = false) -> [String] {
        let layout = self.layout(cells: cells)
        return [self.title(layout, colors: colors)] + self.lines(layout, colors: colors)
    }

    package func title(_ layout: Layout, colors: Bool = false) -> String {
        self.line(self.columns.map { Cell($0.title, .bold) }, layout, colors: colors)
    }

    /// Without the titles.
    package func lines(_ layout: Layout, colors: Bool = false) -> [String] {
        self.rows.map { self.line($0, layout, colors: colors) }
    }

    private func line(_ cells: [Cell], _ layout: Layout, colors: Bool) -> String {
        let shown = zip(self.columns, zip(cells, layout.widths)).filter { $1.1 > 0 }
        var line = ""
        for (index, (column, (cell, width))) in shown.enumerated() {
            if index > 0 { line += String(repeating: " ", count: Self.gap) }
            // The last column is not padded: copied text has no trailing spaces.
            let isLast = index == shown.count - 1 && !column.isTrailing
            let content = column.keepsPort ? CellText.cut(address: cell.text, cells: width) : cell.text
            let text =
                isLast
                ? CellText.cut(content, cells: width)
                : CellText.fit(content, cells: width, trailing: column.isTrailing)
            if text.isEmpty { continue }
            line += colors ? cell.ink.drawn(text) : text
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    // MARK: Widths

    package func layout(cells: Int? = nil) -> Layout {
        var widths = self.columns.indices.map { index in
            self.rows.reduce(CellWidth.of(self.columns[index].title)) { max($0, CellWidth.of($1[index].text)) }
        }
        guard let cells else { return Layout(widths: widths) }
        self.leaveOut(&widths, cells: cells)
        self.cut(&widths, cells: cells)
        return Layout(widths: widths)
    }

    private func least(_ index: Int, _ width: Int) -> Int {
        guard let least = self.columns[index].least else { return width }
        return min(width, max(least, CellWidth.of(self.columns[index].title)))
    }

    private static func total(_ widths: [Int]) -> Int {
        let shown = widths.filter { $0 > 0 }
        return shown.reduce(0, +) + max(0, shown.count - 1) * self.gap
    }

    private func leaveOut(_ widths: inout [Int], cells: Int) {
        let order = self.columns.indices.filter { self.columns[$0].rank > 0 }
            .sorted { self.columns[$0].rank > self.columns[$1].rank }
        for index in order {
            let leasts = widths.indices.map { widths[$0] == 0 ? 0 : self.least($0, widths[$0]) }
            guard Self.total(leasts) > cells else { return }
            widths[index] = 0
        }
    }

    private func cut(_ widths: inout [Int], cells: Int) {
        while Self.total(widths) > cells {
            let slack = widths.indices.filter { widths[$0] > self.least($0, widths[$0]) }
            guard let widest = slack.max(by: { widths[$0] < widths[$1] }) else { return }
            widths[widest] -= 1
        }
    }
}

/// Text in a given number of cells of a terminal.
package enum CellText {
    /// At most `cells` cells of `text`; where something is left out, `…` ends it. A wide character is never halved.
    package static func cut(_ text: String, cells: Int) -> String {
        guard CellWidth.of(text) > cells else { return text }
        guard cells > 0 else { return "" }
        var shown = ""
        var used = 0
        for character in text {
            let width = CellWidth.of(character)
            guard used + width <= cells - 1 else { break }
            shown.append(character)
            used += width
        }
        return shown + "…"
    }

    /// The same for an address, whose port stays: `[2001:db8:0:1…:54321`. Other text is cut at its end.
    package static func cut(address text: String, cells: Int) -> String {
        guard CellWidth.of(text) > cells else { return text }
        guard let mark = text.lastIndex(of: ":") else { return self.cut(text, cells: cells) }
        let port = text[mark...]
        guard port.count > 1, port.count <= 6, port.count < cells, port.dropFirst().allSatisfy(\.isNumber) else {
            return self.cut(text, cells: cells)
        }
        return self.cut(String(text[..<mark]), cells: cells - port.count) + port
    }

    /// Exactly `cells` cells: cut, or with spaces on the other side.
    package static func fit(_ text: String, cells: Int, trailing: Bool = false) -> String {
        let cut = self.cut(text, cells: cells)
        let spaces = String(repeating: " ", count: max(0, cells - CellWidth.of(cut)))
        return trailing ? spaces + cut : cut + spaces
    }
}

/// A colour of text on a terminal, as its SGR parameters (ECMA-48 §8.3.117).
package enum Ink: String, Sendable {
    case plain = ""
    case bold = "1"
    case faint = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"

    package func drawn(_ text: String) -> String {
        self == .plain || text.isEmpty ? text : "\u{1B}[\(self.rawValue)m\(text)\u{1B}[0m"
    }
}
