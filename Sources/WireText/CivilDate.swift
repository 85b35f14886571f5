/// A day of the proleptic Gregorian calendar.
package struct CivilDate: Equatable {
    package static let dayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    package static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let dayKeys = Self.dayNames.map { Self.key($0.utf8) }
    private static let monthKeys = Self.monthNames.map { Self.key($0.utf8) }

    package let year: Int
    /// 1 to 12.
    package let month: Int
    /// 1 to 31.
    package let day: Int

    /// - Returns: `nil` for an invalid date, and for years outside 1 to 9999.
    package init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), (1...Self.days(in: month, of: year)).contains(day)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// - Parameter days: since 1970-01-01, within the years 1 to 9999.
    package init(daysSinceEpoch days: Int64) {
        // Years start in March, so that the leap day is the last of its year; the calendar repeats every 400 years.
        let shifted = days + 719_468
        let era = shifted.floorDivided(by: 146_097)
        let dayOfEra = Int(shifted - era * 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        self.month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        self.year = yearOfEra + Int(era) * 400 + (self.month <= 2 ? 1 : 0)
    }

    package var daysSinceEpoch: Int64 {
        let year = self.month <= 2 ? self.year - 1 : self.year
        let era = Int64(year).floorDivided(by: 400)
        let yearOfEra = year - Int(era) * 400
        let monthFromMarch = self.month > 2 ? self.month - 3 : self.month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + self.day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + Int64(dayOfEra) - 719_468
    }

    /// 0 is Sunday.
    package var weekday: Int {
        let days = self.daysSinceEpoch + 4
        return Int(days - days.floorDivided(by: 7) * 7)
    }

    /// The month 1 to 12 with these first three letters, case-insensitive.
    package static func month(_ name: some Collection<UInt8>) -> Int? {
        self.key(name).flatMap { self.monthKeys.firstIndex(of: $0) }.map { $0 + 1 }
    }

    /// Whether `name` is the name of a day or its first three letters, case-insensitive.
    package static func isDayName(_ name: some Collection<UInt8>) -> Bool {
        guard let day = self.key(name).flatMap({ self.dayKeys.firstIndex(of: $0) }) else { return false }
        guard name.count > 3 else { return true }
        return name.elementsEqual(self.dayNames[day].utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    /// The first three letters in lower case, packed into an integer.
    private static func key(_ name: some Collection<UInt8>) -> UInt32? {
        guard name.count >= 3 else { return nil }
        return name.prefix(3).reduce(0) { $0 &<< 8 | UInt32($1.loweredASCII) }
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

extension Int64 {
    /// The quotient rounded towards negative infinity.
    package func floorDivided(by divisor: Self) -> Self {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
