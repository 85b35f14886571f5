/// A moment as HTTP tells it: whole seconds, in UTC (RFC 9110 §5.6.7).
package struct HTTPDate: Hashable, Comparable, Sendable {
    /// The first and the last second of the years that HTTP can write, 0001 to 9999.
    package static let earliest = HTTPDate(seconds: -62_135_596_800)
    package static let latest = HTTPDate(seconds: 253_402_300_799)

    /// Since 1970-01-01 00:00:00 UTC, leap seconds not counted.
    package let seconds: Int64

    /// - Parameter seconds: since 1970; brought into the range that HTTP can write.
    package init(seconds: Int64) {
        self.seconds = min(max(seconds, -62_135_596_800), 253_402_300_799)
    }

    package static func < (lhs: Self, rhs: Self) -> Bool { lhs.seconds < rhs.seconds }

    /// How many seconds lie between `other` and this, negative when this is the earlier one.
    package func seconds(since other: Self) -> Int64 { self.seconds - other.seconds }

    /// This much later, or earlier when negative; never out of range.
    package func advanced(by seconds: Int64) -> Self {
        let (sum, overflow) = self.seconds.addingReportingOverflow(seconds)
        if overflow { return seconds < 0 ? .earliest : .latest }
        return Self(seconds: sum)
    }

    /// Reads any of the three forms that a recipient must accept: IMF-fixdate, RFC 850 and asctime.
    ///
    /// Letters may be in either case and the day's name need not fit the date; all else is as the grammar wants it.
    /// - Parameter now: settles the century of an RFC 850 date: more than 50 years ahead means the past.
    package init?(_ text: String, now: Self) {
        guard var reading = DateReading(text), let moment = reading.moment(now: now) else { return nil }
        self = moment
    }

    /// The form that a sender must use, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var formatted: String {
        let date = CivilDate(daysSinceEpoch: self.seconds.floorDivided(by: 86_400))
        let second = Int(self.seconds - date.daysSinceEpoch * 86_400)
        let time = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, to: 2) }
        let day = CivilDate.dayNames[date.weekday].prefix(3)
        let month = CivilDate.monthNames[date.month - 1]
        let year = Self.padded(date.year, to: 4)
        return "\(day), \(Self.padded(date.day, to: 2)) \(month) \(year) \(time.joined(separator: ":")) GMT"
    }

    private static func padded(_ number: Int, to count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

extension Int64 {
    /// Divided and rounded down, below zero too.
    func floorDivided(by divisor: Self) -> Self {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
