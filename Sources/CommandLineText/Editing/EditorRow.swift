/// The one row of a terminal that shows a line being written. A line that is longer is shown in part: the part with the
/// cursor.
package struct EditorRow: Sendable, Equatable {
    /// What stands behind the prompt, safe to print.
    package let text: String
    /// Cells between the end of the prompt and the cursor.
    package let cursorCells: Int

    /// - Parameter cells: room behind the prompt; at least 2 are taken.
    package init(_ characters: [Character], cursor: Int, cells: Int) {
        let room = max(2, cells)
        let shown = characters.map(TerminalText.shown)
        let widths = shown.map(CellWidth.of)
        var first = min(cursor, characters.count)
        var used = 0
        // The cursor itself needs a cell. Half of the room is kept for what stands behind it, while there is any.
        let behind = widths[first...].prefix(room).reduce(0, +)
        let before = max(room / 2, room - 1 - behind)
        while first > 0, used + widths[first - 1] <= before {
            first -= 1
            used += widths[first]
        }
        self.cursorCells = used
        var last = min(cursor, characters.count)
        while last < characters.count, used + widths[last] < room {
            used += widths[last]
            last += 1
        }
        self.text = shown[first..<last].joined()
    }

    /// Draws the row in place of what stands in the terminal's current one, and puts the cursor where it belongs.
    /// - Parameters:
    ///   - prompt: printed as it is.
    ///   - promptCells: the cells that it takes.
    package func drawn(prompt: String, promptCells: Int) -> String {
        let column = promptCells + self.cursorCells
        return "\r\u{1B}[K\(prompt)\(self.text)\r" + (column > 0 ? "\u{1B}[\(column)C" : "")
    }
}
