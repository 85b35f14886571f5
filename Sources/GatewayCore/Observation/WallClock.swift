import StreamTransport

/// The time of day, for logs.
package enum WallClock {
    /// RFC 3339 in UTC with milliseconds, as `2026-01-31T23:59:59.123Z`.
    package static func now() -> String {
        Self.text(milliseconds: Machine.wallClockMilliseconds())
    }

    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z, leap seconds not counted; from 0 to the end of the year 9999.
    package static func text(milliseconds: Int64) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        Self.write(milliseconds: milliseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The same, behind what is in `bytes`: lists of thousands of connections show several times each.
    package static func write(milliseconds: Int64, to bytes: inout [UInt8]) {
        let milliseconds = min(max(0, milliseconds), Self.latest)
        let (year, month, day) = Self.date(daysSinceEpoch: milliseconds / 86_400_000)
        let second = milliseconds / 1000 % 86_400
        Self.write(year, 4, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        Self.write(month, 2, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        Self.write(day, 2, to: &bytes)
        bytes.append(UInt8(ascii: "T"))
        Self.write(second / 3600, 2, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        Self.write(second / 60 % 60, 2, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        Self.write(second % 60, 2, to: &bytes)
        bytes.append(UInt8(ascii: "."))
        Self.write(milliseconds % 1000, 3, to: &bytes)
        bytes.append(UInt8(ascii: "Z"))
    }

    /// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
    private static let latest: Int64 = 253_402_300_799_999

    /// The civil date in the proleptic Gregorian calendar, by counting years from March on, so that the leap day is a
    /// year's last.
    private static func date(daysSinceEpoch days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func write(_ number: Int64, _ width: Int, to bytes: inout [UInt8]) {
        var unit: Int64 = width == 4 ? 1000 : width == 3 ? 100 : 10
        while unit > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / unit % 10))
            unit /= 10
        }
    }
}
