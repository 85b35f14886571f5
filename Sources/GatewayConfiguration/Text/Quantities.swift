import WireText

/// A duration as people write it: `25s`, `1m30s`, `500ms`, `1h`, `7d`.
package struct DurationText: Sendable, Equatable, CustomStringConvertible {
    package let duration: Duration

    package init(_ duration: Duration) {
        self.duration = duration
    }

    /// Parses whole numbers, each followed by a unit `d`, `h`, `m`, `s` or `ms`, in this order and each at most once.
    /// `0` needs no unit.
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
    private static let units: [(letters: String, milliseconds: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// The shortest text for the duration; parts below a millisecond are dropped.
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

/// A number of bytes as people write it: `65536`, `64KiB`, `1MiB`, `16MB`.
package struct SizeText: Sendable, Equatable, CustomStringConvertible {
    package let bytes: Int

    package init(_ bytes: Int) {
        self.bytes = bytes
    }

    /// - Returns: `nil` for anything but digits with an optional unit, and for values that overflow `Int`.
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

    /// The number in the largest binary unit that divides it.
    package var description: String {
        for (letters, unit) in [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where self.bytes >= unit && self.bytes % unit == 0 {
            return "\(self.bytes / unit)\(letters)"
        }
        return "\(self.bytes)B"
    }
}

/// Parses timestamps (RFC 3339 §5.6): `2027-01-01T00:00:00Z`, `2027-01-01T01:00:00+01:00`.
private enum TimestampText {
    /// - Returns: milliseconds since 1970-01-01T00:00:00Z; `nil` for anything else, and for days that do not exist.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes[4] == 0x2D, bytes[7] == 0x2D, [0x54, 0x74, 0x20].contains(bytes[10]),
            bytes[13] == 0x3A, bytes[16] == 0x3A
        else { return nil }
        let numbers = [bytes[0..<4], bytes[5..<7], bytes[8..<10], bytes[11..<13], bytes[14..<16], bytes[17..<19]]
            .compactMap { Decimal.integer($0) }
        guard numbers.count == 6, numbers[0] >= 1970,
            let date = CivilDate(year: numbers[0], month: numbers[1], day: numbers[2]), numbers[3] < 24,
            numbers[4] < 60, numbers[5] < 61, let (fraction, offset) = self.rest(bytes[19...])
        else { return nil }
        let seconds = Int(date.daysSinceEpoch) * 86_400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5] - offset
        return Int64(seconds * 1000 + fraction)
    }

    /// Milliseconds of the fraction, and the zone's offset from UTC in seconds.
    private static func rest(_ bytes: ArraySlice<UInt8>) -> (Int, Int)? {
        var rest = bytes
        var fraction = 0
        if rest.first == 0x2E {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard (1...9).contains(digits.count) else { return nil }
            fraction = digits.prefix(3).enumerated().reduce(0) {
                $0 + Int($1.element - 0x30) * [100, 10, 1][$1.offset]
            }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let mark = rest.popFirst() else { return nil }
        if mark == 0x5A || mark == 0x7A { return rest.isEmpty ? (fraction, 0) : nil }
        let zone = Array(rest)
        guard mark == 0x2B || mark == 0x2D, zone.count == 5, zone[2] == 0x3A, let hours = Decimal.integer(zone[..<2]),
            let minutes = Decimal.integer(zone[3...]), hours < 24, minutes < 60
        else { return nil }
        return (fraction, (hours * 3600 + minutes * 60) * (mark == 0x2B ? 1 : -1))
    }
}

extension ValueSyntax<Int64> {
    /// A timestamp, as milliseconds since 1970-01-01T00:00:00Z.
    package static var timestamp: ValueSyntax {
        ValueSyntax(
            .text("2027-01-01T00:00:00Z", "a timestamp (RFC 3339)")
        ) { text throws(ValueSyntaxError) in
            guard let milliseconds = TimestampText.milliseconds(text) else {
                throw ValueSyntaxError(expected: "a timestamp", remedy: "write it like 2027-01-01T00:00:00Z")
            }
            return milliseconds
        }
    }
}

extension ValueSyntax<TokenHash> {
    /// `sha256:` and 64 hexadecimal digits.
    package static var tokenHash: ValueSyntax {
        ValueSyntax(
            .text(
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "`sha256:` and 64 hexadecimal digits")
        ) {
            text throws(ValueSyntaxError) in
            guard text.hasPrefix("sha256:"), let digest = Hexadecimal.bytes(String(text.dropFirst(7))),
                let hash = TokenHash(digest: digest)
            else {
                throw ValueSyntaxError(
                    expected: "the hash of a token: sha256: and 64 hexadecimal digits",
                    remedy: "sluice token makes a token and prints its hash")
            }
            return hash
        }
    }
}

/// Parses whole numbers of decimal digits, without sign, spaces or separators.
package enum Decimal {
    /// - Returns: `nil` for anything but 1 to 18 digits.
    package static func integer(_ bytes: some Collection<UInt8>) -> Int? {
        guard (1...18).contains(bytes.count) else { return nil }
        var number = 0
        for byte in bytes {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + Int(byte - 0x30)
        }
        return number
    }

    /// - Returns: `nil` for anything but 0 to 65535 in 1 to 5 digits.
    package static func port(_ bytes: some Collection<UInt8>) -> UInt16? {
        guard bytes.count <= 5, let number = Self.integer(bytes) else { return nil }
        return UInt16(exactly: number)
    }
}
