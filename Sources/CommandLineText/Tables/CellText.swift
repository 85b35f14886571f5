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
