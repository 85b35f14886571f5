/// A duration as people write it: `25s`, `1m30s`, `500ms`, `1h`, `7d`.
package struct DurationText: Sendable, Equatable {
    package let duration: Duration

    package init(_ duration: Duration) {
        self.duration = duration
    }

    /// Whole numbers, each followed by its unit `d`, `h`, `m`, `s` or `ms`, the greater units first, each at most
    /// once. `0` alone is no time.
    ///
    /// - Returns: `nil` for anything else, and for more than 10 000 days.
    package init?(parsing text: String) {
        if text == "0" {
            self.duration = .zero
            return
        }
        var rest = text.utf8[...]
        var units = Self.units[...]
        var milliseconds = 0
        while !rest.isEmpty {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            let letters = rest[digits.endIndex...].prefix { (0x61...0x7A).contains($0) }
            guard let number = Decimal.integer(digits),
                let unit = units.firstIndex(where: { $0.letters.utf8.elementsEqual(letters) })
            else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: units[unit].milliseconds)
            guard !overflow, product <= Self.maximumMilliseconds - milliseconds else { return nil }
            milliseconds += product
            units = units[(unit + 1)...]
            rest = rest[letters.endIndex...]
        }
        guard !text.isEmpty else { return nil }
        self.duration = .milliseconds(milliseconds)
    }

    private static let maximumMilliseconds = 10_000 * 86_400_000
    fileprivate static let units: [(letters: String, milliseconds: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
}

extension DurationText: CustomStringConvertible {
    /// The shortest text that is read as the same duration; parts below a millisecond are left out.
    package var description: String {
        let (seconds, attoseconds) = self.duration.components
        guard seconds >= 0, seconds < 1 << 40 else { return "\(self.duration)" }
        var milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        guard milliseconds > 0 else { return "0s" }
        var text = ""
        for unit in Self.units where milliseconds >= unit.milliseconds {
            text += "\(milliseconds / unit.milliseconds)\(unit.letters)"
            milliseconds %= unit.milliseconds
        }
        return text
    }
}
