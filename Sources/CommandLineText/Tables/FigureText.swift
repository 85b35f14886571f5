/// Numbers as people read them: three figures or so, and a unit.
package enum FigureText {
    private static let sizes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// As `17 B`, `1.5 KiB`, `230 MiB`.
    package static func bytes(_ count: UInt64) -> String {
        guard count >= 1024 else { return "\(count) B" }
        var value = Double(count)
        var unit = 0
        // What would be rounded to 1024 of a unit is 1 of the next.
        while value >= 1023.5, unit < self.sizes.count - 1 {
            value /= 1024
            unit += 1
        }
        return "\(self.short(value)) \(self.sizes[unit])"
    }

    package static func bytes(_ count: Int) -> String {
        self.bytes(UInt64(max(0, count)))
    }

    /// As `0.4 ms`, `12 ms`, `3.4 s`, `2m05s`, `3h12m`, `5d04h`.
    /// - Parameter milliseconds: what is below zero, or no number, counts as none.
    package static func span(milliseconds: Double) -> String {
        let value = milliseconds.isFinite ? max(0, milliseconds) : 0
        if value < 999.5 { return "\(self.short(value)) ms" }
        if value < 59_950 { return "\(self.short(value / 1000)) s" }
        let seconds = UInt64(min(value / 1000, 1e15).rounded())
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
        if hours == 0 { return "\(minutes)m\(self.two(seconds % 60))s" }
        if days == 0 { return "\(hours)h\(self.two(minutes % 60))m" }
        return "\(days)d\(self.two(hours % 24))h"
    }

    /// Two figures below ten, whole ones above; without a fraction of nothing.
    private static func short(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        guard tenths < 100 else { return "\(Int(value.rounded()))" }
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    private static func two(_ number: UInt64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
