/// A text table that fits the terminal's width. Cells are sanitized.
///
/// A column is as wide as its widest cell. If the table is too wide, the least important columns are dropped until the
/// minimum widths fit; then the widest columns are truncated.
package struct TextTable: Sendable {
    package struct Column: Sendable, Equatable {
        package let title: String
        /// Right-aligned, for numbers.
        package let isRightAligned: Bool
        /// Minimum width when truncated; `nil` if the column is never truncated.
        package let minimumWidth: Int?
        /// Order in which columns are dropped, highest first; 0 is never dropped.
        package let dropOrder: Int
        /// For addresses: truncation keeps the port after the last colon.
        package let keepsPort: Bool
        /// Whether a table without values for it has no such column.
        package let isOmittedIfEmpty: Bool

        package init(
            _ title: String, rightAligned: Bool = false, minimumWidth: Int? = nil, dropOrder: Int = 0,
            keepsPort: Bool = false, isOmittedIfEmpty: Bool = false
        ) {
            self.title = title
            self.keepsPort = keepsPort
            self.isOmittedIfEmpty = isOmittedIfEmpty
            self.isRightAligned = rightAligned
            self.minimumWidth = minimumWidth
            self.dropOrder = dropOrder
        }
    }

    package struct Cell: Sendable, Equatable, ExpressibleByStringLiteral {
        package let text: String
        package let style: TextStyle

        package init(_ text: String?, _ style: TextStyle = .plain) {
            // Distinguishes a missing value from an empty one.
            self.text = text.map { TerminalText.singleLine($0, limit: Self.limit) } ?? "-"
            self.style = text == nil ? .faint : style
        }

        package init(stringLiteral text: String) {
            self.init(text)
        }

        /// Maximum length of a cell in characters, independent of the terminal's width.
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

    /// - Parameter cells: one per column; missing ones are shown as missing, superfluous ones dropped.
    package mutating func add(_ cells: [Cell]) {
        let missing = Array(repeating: Cell(nil), count: max(0, self.columns.count - cells.count))
        self.rows.append(cells.prefix(self.columns.count) + missing)
    }

    // MARK: Drawing

    /// - Parameters:
    ///   - cells: width of the terminal; `nil` does not limit the width.
    ///   - colors: whether cells are coloured.
    package func lines(cells: Int? = nil, colors: Bool = false) -> [String] {
        let layout = self.layout(cells: cells)
        return [self.title(layout, colors: colors)] + self.lines(layout, colors: colors)
    }

    package func title(_ layout: Layout, colors: Bool = false) -> String {
        self.line(self.columns.map { Cell($0.title, .bold) }, layout, colors: colors)
    }

    /// Rows without the titles.
    package func lines(_ layout: Layout, colors: Bool = false) -> [String] {
        self.rows.map { self.line($0, layout, colors: colors) }
    }

    private func line(_ cells: [Cell], _ layout: Layout, colors: Bool) -> String {
        let shown = zip(self.columns, zip(cells, layout.widths)).filter { $1.1 > 0 }
        var line = ""
        for (index, (column, (cell, width))) in shown.enumerated() {
            if index > 0 { line += String(repeating: " ", count: Self.gap) }
            // The last column is not padded: copied text has no rightAligned spaces.
            let isLast = index == shown.count - 1 && !column.isRightAligned
            let content = column.keepsPort ? CellText.truncate(address: cell.text, cells: width) : cell.text
            let text =
                isLast
                ? CellText.truncate(content, cells: width)
                : CellText.fit(content, cells: width, rightAligned: column.isRightAligned)
            if text.isEmpty { continue }
            line += colors ? cell.style.applied(to: text) : text
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    // MARK: Widths

    package func layout(cells: Int? = nil) -> Layout {
        var widths = self.columns.indices.map { index in
            let isEmpty = self.rows.allSatisfy { $0[index] == Cell(nil) }
            if self.columns[index].isOmittedIfEmpty, isEmpty { return 0 }
            return self.rows.reduce(CellWidth.of(self.columns[index].title)) { max($0, CellWidth.of($1[index].text)) }
        }
        guard let cells else { return Layout(widths: widths) }
        self.dropColumns(&widths, cells: cells)
        self.truncate(&widths, cells: cells)
        return Layout(widths: widths)
    }

    private func minimumWidth(_ index: Int, _ width: Int) -> Int {
        guard let minimum = self.columns[index].minimumWidth else { return width }
        return min(width, max(minimum, CellWidth.of(self.columns[index].title)))
    }

    private static func total(_ widths: [Int]) -> Int {
        let shown = widths.filter { $0 > 0 }
        return shown.reduce(0, +) + max(0, shown.count - 1) * self.gap
    }

    private func dropColumns(_ widths: inout [Int], cells: Int) {
        let order = self.columns.indices.filter { self.columns[$0].dropOrder > 0 }
            .sorted { self.columns[$0].dropOrder > self.columns[$1].dropOrder }
        for index in order {
            let minimums = widths.indices.map { widths[$0] == 0 ? 0 : self.minimumWidth($0, widths[$0]) }
            guard Self.total(minimums) > cells else { return }
            widths[index] = 0
        }
    }

    private func truncate(_ widths: inout [Int], cells: Int) {
        while Self.total(widths) > cells {
            let slack = widths.indices.filter { widths[$0] > self.minimumWidth($0, widths[$0]) }
            guard let widest = slack.max(by: { widths[$0] < widths[$1] }) else { return }
            widths[widest] -= 1
        }
    }
}

/// Truncates and pads text to a number of terminal cells.
package enum CellText {
    /// Truncates text to `cells` cells, ending with `…`. A wide character is never split.
    package static func truncate(_ text: String, cells: Int) -> String {
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

    /// Truncates an address but keeps its port: `[2001:db8:0:1…:54321`. Other text is truncated at the end.
    package static func truncate(address text: String, cells: Int) -> String {
        guard CellWidth.of(text) > cells else { return text }
        guard let mark = text.lastIndex(of: ":") else { return self.truncate(text, cells: cells) }
        let port = text[mark...]
        guard port.count > 1, port.count <= 6, port.count < cells, port.dropFirst().allSatisfy(\.isNumber) else {
            return self.truncate(text, cells: cells)
        }
        return self.truncate(String(text[..<mark]), cells: cells - port.count) + port
    }

    /// Truncates or pads text to exactly `cells` cells.
    package static func fit(_ text: String, cells: Int, rightAligned: Bool = false) -> String {
        let cut = self.truncate(text, cells: cells)
        let spaces = String(repeating: " ", count: max(0, cells - CellWidth.of(cut)))
        return rightAligned ? spaces + cut : cut + spaces
    }
}

/// Text style on a terminal, as SGR parameter (ECMA-48 §8.3.117).
package enum TextStyle: String, Sendable {
    case plain = ""
    case bold = "1"
    case faint = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"

    package func applied(to text: String) -> String {
        self == .plain || text.isEmpty ? text : "\u{1B}[\(self.rawValue)m\(text)\u{1B}[0m"
    }
}
