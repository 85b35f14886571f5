/// A day of the proleptic Gregorian calendar.
struct CivilDate: Equatable {
    static let dayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    static let monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let dayKeys = Self.dayNames.map { Self.key($0.utf8) }
    private static let monthKeys = Self.monthNames.map { Self.key($0.utf8) }

    let year: Int
    /// 1 to 12.
    let month: Int
    /// 1 to 31.
    let day: Int

    /// - Returns: `nil` for a day that the calendar does not have, and for years outside of 1 to 9999.
    init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), (1...Self.days(in: month, of: year)).contains(day)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// - Parameter days: since 1970-01-01, within the years 1 to 9999.
    init(daysSinceEpoch days: Int64) {
        // Years are counted from March on, so that the leap day is the last of its year; 400 years are one round.
        let shifted = days + 719_468
        let round = shifted.floorDivided(by: 146_097)
        let dayOfRound = Int(shifted - round * 146_097)
        let yearOfRound = (dayOfRound - dayOfRound / 1460 + dayOfRound / 36_524 - dayOfRound / 146_096) / 365
        let dayOfYear = dayOfRound - (365 * yearOfRound + yearOfRound / 4 - yearOfRound / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        self.month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        self.year = yearOfRound + Int(round) * 400 + (self.month <= 2 ? 1 : 0)
    }

    var daysSinceEpoch: Int64 {
        let year = self.month <= 2 ? self.year - 1 : self.year
        let round = Int64(year).floorDivided(by: 400)
        let yearOfRound = year - Int(round) * 400
        let monthFromMarch = self.month > 2 ? self.month - 3 : self.month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + self.day - 1
        let dayOfRound = yearOfRound * 365 + yearOfRound / 4 - yearOfRound / 100 + dayOfYear
        return round * 146_097 + Int64(dayOfRound) - 719_468
    }

    /// 0 is Sunday.
    var weekday: Int {
        let days = self.daysSinceEpoch + 4
        return Int(days - days.floorDivided(by: 7) * 7)
    }

    /// 1 to 12, by its first three letters in either case.
    static func month(_ name: some Collection<UInt8>) -> Int? {
        self.key(name).flatMap { self.monthKeys.firstIndex(of: $0) }.map { $0 + 1 }
    }

    /// Whether `name` is that of a day, whole or by its first three letters, in either case.
    static func isDayName(_ name: some Collection<UInt8>) -> Bool {
        guard let day = self.key(name).flatMap({ self.dayKeys.firstIndex(of: $0) }) else { return false }
        guard name.count > 3 else { return true }
        return name.elementsEqual(self.dayNames[day].utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    /// Three letters in one number.
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
