/// Reads points in time (RFC 3339 §5.6): `2027-01-01T00:00:00Z`, `2027-01-01T01:00:00+01:00`.
enum TimestampText {
    /// - Returns: milliseconds since 1970-01-01T00:00:00Z; `nil` for anything else, and for days that do not exist.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes[4] == 0x2D, bytes[7] == 0x2D, [0x54, 0x74, 0x20].contains(bytes[10]),
            bytes[13] == 0x3A, bytes[16] == 0x3A
        else { return nil }
        let numbers = [bytes[0..<4], bytes[5..<7], bytes[8..<10], bytes[11..<13], bytes[14..<16], bytes[17..<19]]
            .compactMap { Decimal.integer($0) }
        guard numbers.count == 6, let days = self.days(numbers[0], numbers[1], numbers[2]), numbers[3] < 24,
            numbers[4] < 60, numbers[5] < 61, let (fraction, offset) = self.rest(bytes[19...])
        else { return nil }
        let seconds = days * 86_400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5] - offset
        return Int64(seconds * 1000 + fraction)
    }

    /// Milliseconds behind the point, and the zone's seconds east of Greenwich.
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

    /// Since 1970-01-01, counting years from March on, so that the leap day is a year's last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int? {
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year >= 1970, (1...12).contains(month), (1...lengths[month - 1]).contains(day) else { return nil }
        let marchYear = month > 2 ? year : year - 1
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
    }
}

extension ValueSyntax<Int64> {
    /// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
    package static var timestamp: ValueSyntax {
        ValueSyntax(.text("2027-01-01T00:00:00Z")) { text throws(TextFault) in
            guard let milliseconds = TimestampText.milliseconds(text) else {
                throw TextFault(expected: "a point in time", remedy: "write it like 2027-01-01T00:00:00Z")
            }
            return milliseconds
        }
    }
}

extension ValueSyntax<TokenHash> {
    /// `sha256:` and 64 hexadecimal digits.
    package static var tokenHash: ValueSyntax {
        ValueSyntax(.text("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")) {
            text throws(TextFault) in
            guard text.hasPrefix("sha256:"), let digest = Hexadecimal.bytes(String(text.dropFirst(7))),
                let hash = TokenHash(digest: digest)
            else {
                throw TextFault(
                    expected: "the hash of a token: sha256: and 64 hexadecimal digits",
                    remedy: "sluice token makes a token and prints its hash")
            }
            return hash
        }
    }
}
