/// A number of bytes as people write it: `65536`, `64KiB`, `1MiB`, `16MB`.
package struct SizeText: Sendable, Equatable {
    package let bytes: Int

    package init(_ bytes: Int) {
        self.bytes = bytes
    }

    /// - Returns: `nil` for anything but digits with one of the units, and for more than an `Int` holds.
    package init?(parsing text: String) {
        let digits = text.utf8.prefix { (0x30...0x39).contains($0) }
        let letters = text.utf8[digits.endIndex...]
        guard let number = Decimal.integer(digits),
            let unit = Self.units.first(where: { $0.letters.utf8.elementsEqual(letters) })
        else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit.bytes)
        guard !overflow else { return nil }
        self.bytes = product
    }

    private static let units: [(letters: String, bytes: Int)] = [
        ("", 1), ("B", 1), ("kB", 1000), ("KB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000),
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
    ]
}

extension SizeText: CustomStringConvertible {
    /// In the greatest binary unit that divides it.
    package var description: String {
        for (letters, unit) in [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where self.bytes >= unit && self.bytes % unit == 0 {
            return "\(self.bytes / unit)\(letters)"
        }
        return "\(self.bytes)B"
    }
}
