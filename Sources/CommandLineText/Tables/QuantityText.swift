/// Formats sizes and durations with up to three digits and a unit.
package enum QuantityText {
    private static let sizes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// Like `17 B`, `1.5 KiB`, `230 MiB`.
    package static func bytes(_ count: UInt64) -> String {
        guard count >= 1024 else { return "\(count) B" }
        var value = Double(count)
        var unit = 0
        // A value that would round to 1024 of a unit is shown as 1 of the next.
        while value >= 1023.5, unit < self.sizes.count - 1 {
            value /= 1024
            unit += 1
        }
        return "\(self.rounded(value)) \(self.sizes[unit])"
    }

    package static func bytes(_ count: Int) -> String {
        self.bytes(UInt64(max(0, count)))
    }

    /// Like `0.4 ms`, `12 ms`, `3.4 s`, `2m05s`, `3h12m`, `5d04h`.
    /// - Parameter milliseconds: negative values and NaN count as 0.
    package static func duration(milliseconds: Double) -> String {
        let value = milliseconds.isFinite ? max(0, milliseconds) : 0
        if value < 999.5 { return "\(self.rounded(value)) ms" }
        if value < 59_950 { return "\(self.rounded(value / 1000)) s" }
        let seconds = UInt64(min(value / 1000, 1e15).rounded())
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
        if hours == 0 { return "\(minutes)m\(self.twoDigits(seconds % 60))s" }
        if days == 0 { return "\(hours)h\(self.twoDigits(minutes % 60))m" }
        return "\(days)d\(self.twoDigits(hours % 24))h"
    }

    /// Like `37 %`.
    /// - Parameter share: of 1; may be more. Negative values and NaN count as 0.
    package static func percent(_ share: Double) -> String {
        "\(UInt64(min(max(0, share.isFinite ? share * 100 : 0), 1e15).rounded())) %"
    }

    /// One decimal below ten unless it is zero; no decimals above.
    private static func rounded(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        guard tenths < 100 else { return "\(Int(value.rounded()))" }
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    private static func twoDigits(_ number: UInt64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}

/// Progress of a transfer in one terminal row.
package struct ProgressLine: Sendable, Equatable {
    package var done: UInt64
    /// `nil` if not known.
    package var total: UInt64?
    /// Bytes per second; `nil` if not known yet.
    package var rate: Double?

    package init(done: UInt64, total: UInt64? = nil, rate: Double? = nil) {
        self.done = done
        self.total = total
        self.rate = rate
    }

    /// 0 to 1; `nil` without a total.
    package var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(self.done) / Double(total))
    }

    /// Estimated remaining time at the current rate.
    package var remainingMilliseconds: Double? {
        guard let total, let rate, rate > 0, total > self.done else { return nil }
        return Double(total - self.done) / rate * 1000
    }

    /// - Parameter cells: width of the row. The bar fills the rest of the row, and is omitted below 10 cells.
    package func text(cells: Int) -> String {
        var figures = QuantityText.bytes(self.done)
        if let total { figures += " of \(QuantityText.bytes(total))" }
        if let rate { figures += "  \(QuantityText.bytes(UInt64(min(max(0, rate), 1e18))))/s" }
        if let rest = self.remainingMilliseconds { figures += "  \(QuantityText.duration(milliseconds: rest)) left" }
        guard let fraction else { return CellText.truncate(figures, cells: cells) }
        // Rounded down: an incomplete transfer never shows 100 %.
        let percent = CellText.fit("\(Int(fraction * 100))%", cells: 4, rightAligned: true)
        let width = cells - figures.count - percent.count - 5
        guard width >= 10 else { return CellText.truncate("\(percent)  \(figures)", cells: cells) }
        let filled = Int(fraction * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        return "\(percent) [\(bar)]  \(figures)"
    }
}
