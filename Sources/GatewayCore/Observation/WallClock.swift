import StreamTransport

/// The time of day, for logs.
package enum WallClock {
    /// RFC 3339 in UTC with milliseconds, as `2026-01-31T23:59:59.123Z`.
    package static func now() -> String {
        Self.text(milliseconds: Machine.wallClockMilliseconds())
    }

    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z, leap seconds not counted.
    package static func text(milliseconds: Int64) -> String {
        let seconds = milliseconds / 1000
        let (year, month, day) = Self.date(daysSinceEpoch: seconds / 86_400)
        let second = seconds % 86_400
        let parts = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, 2) }
        return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))T"
            + parts.joined(separator: ":") + ".\(Self.padded(milliseconds % 1000, 3))Z"
    }

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

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
