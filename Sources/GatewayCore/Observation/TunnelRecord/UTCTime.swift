/// A point of the calendar in UTC, written as RFC 3339 has it.
package struct UTCTime: Hashable, Sendable, CustomStringConvertible {
    private let year: Int
    private let month: Int
    private let day: Int
    private let secondOfDay: Int
    private let milliseconds: Int

    /// - Parameters:
    ///   - seconds: since 1970-01-01T00:00:00Z without leap seconds, as the system counts; held to the years 0 to 9999.
    ///   - nanoseconds: of the second, 0 to 999 999 999.
    package init(secondsSince1970 seconds: Int64, nanoseconds: Int = 0) {
        let held = Int(min(max(seconds, -62_167_219_200), 253_402_300_799))
        let days = Int((Double(held) / 86_400).rounded(.down))
        self.secondOfDay = held - days * 86_400
        self.milliseconds = min(max(nanoseconds, 0), 999_999_999) / 1_000_000
        // Counted from March 1 of year 0, a leap day is the last of its year, and 400 years always have 146 097 days.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        self.month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
    }

    /// `2026-01-31T23:59:59.123Z`.
    package var description: String {
        let date = "\(Self.padded(self.year, 4))-\(Self.padded(self.month, 2))-\(Self.padded(self.day, 2))"
        let clock = [self.secondOfDay / 3600, self.secondOfDay / 60 % 60, self.secondOfDay % 60].map {
            Self.padded($0, 2)
        }
        return "\(date)T\(clock.joined(separator: ":")).\(Self.padded(self.milliseconds, 3))Z"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(width - digits.count, 0)) + digits
    }
}
