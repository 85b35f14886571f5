/// How far a transfer is, in one line that fits a terminal.
package struct ProgressLine: Sendable, Equatable {
    package var done: UInt64
    /// `nil`: not known.
    package var total: UInt64?
    /// Bytes in a second; `nil`: not known yet.
    package var rate: Double?

    package init(done: UInt64, total: UInt64? = nil, rate: Double? = nil) {
        self.done = done
        self.total = total
        self.rate = rate
    }

    /// 0 to 1; `nil` without a total.
    package var part: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(self.done) / Double(total))
    }

    /// How long it still takes at this rate.
    package var restMilliseconds: Double? {
        guard let total, let rate, rate > 0, total > self.done else { return nil }
        return Double(total - self.done) / rate * 1000
    }

    /// - Parameter cells: of the terminal's row; the bar takes what the figures leave, and is left out below 10 cells.
    package func text(cells: Int) -> String {
        var figures = FigureText.bytes(self.done)
        if let total { figures += " of \(FigureText.bytes(total))" }
        if let rate { figures += "  \(FigureText.bytes(UInt64(min(max(0, rate), 1e18))))/s" }
        if let rest = self.restMilliseconds { figures += "  \(FigureText.span(milliseconds: rest)) left" }
        guard let part else { return CellText.cut(figures, cells: cells) }
        // Rounded down: what is not all there is not 100 %.
        let percent = CellText.fit("\(Int(part * 100))%", cells: 4, trailing: true)
        let room = cells - figures.count - percent.count - 5
        guard room >= 10 else { return CellText.cut("\(percent)  \(figures)", cells: cells) }
        let filled = Int(part * Double(room))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: room - filled)
        return "\(percent) [\(bar)]  \(figures)"
    }
}
