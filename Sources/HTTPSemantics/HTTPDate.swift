import WireText

/// An HTTP-date: whole seconds in UTC (RFC 9110 §5.6.7).
package struct HTTPDate: Hashable, Comparable, Sendable {
    /// The first and the last second that HTTP can represent, years 0001 to 9999.
    package static let earliest = HTTPDate(seconds: -62_135_596_800)
    package static let latest = HTTPDate(seconds: 253_402_300_799)

    /// Unix time: seconds since 1970-01-01 00:00:00 UTC without leap seconds.
    package let seconds: Int64

    /// - Parameter seconds: Unix time, clamped to `earliest` and `latest`.
    package init(seconds: Int64) {
        self.seconds = min(max(seconds, -62_135_596_800), 253_402_300_799)
    }

    package static func < (lhs: Self, rhs: Self) -> Bool { lhs.seconds < rhs.seconds }

    /// Seconds from `other` to this date; negative if this is earlier.
    package func seconds(since other: Self) -> Int64 { self.seconds - other.seconds }

    /// The date this many seconds later, clamped to the range.
    package func advanced(by seconds: Int64) -> Self {
        let (sum, overflow) = self.seconds.addingReportingOverflow(seconds)
        if overflow { return seconds < 0 ? .earliest : .latest }
        return Self(seconds: sum)
    }

    /// Parses any of the three formats that a recipient must accept: IMF-fixdate, RFC 850 and asctime.
    ///
    /// Case-insensitive, and the day name need not match the date; otherwise as in the grammar.
    /// - Parameters:
    ///   - now: determines the century of an RFC 850 date: more than 50 years ahead is in the past.
    ///   - isStrict: refuses `UTC` instead of `GMT`, and more blanks than the grammar has, as for expiration
    ///     (RFC 9111 §4.2).
    package init?(_ text: String, now: Self, isStrict: Bool = false) {
        guard var parser = HTTPDateParser(text, isStrict: isStrict), let date = parser.date(now: now) else {
            return nil
        }
        self = date
    }

    /// IMF-fixdate, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var formatted: String {
        let date = CivilDate(daysSinceEpoch: self.seconds.floorDivided(by: 86_400))
        let second = Int(self.seconds - date.daysSinceEpoch * 86_400)
        let time = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, to: 2) }
        let day = CivilDate.dayNames[date.weekday].prefix(3)
        let month = CivilDate.monthNames[date.month - 1]
        let year = Self.padded(date.year, to: 4)
        return "\(day), \(Self.padded(date.day, to: 2)) \(month) \(year) \(time.joined(separator: ":")) GMT"
    }

    /// The same time of day on the same date fifty years later.
    fileprivate var advancedByFiftyYears: Self {
        let today = CivilDate(daysSinceEpoch: self.seconds.floorDivided(by: 86_400))
        // February 29 may not exist fifty years later.
        let day =
            CivilDate(year: today.year + 50, month: today.month, day: today.day)
            ?? CivilDate(year: today.year + 50, month: 3, day: 1)
        guard let day else { return .latest }
        return Self(seconds: day.daysSinceEpoch * 86_400 + self.seconds - today.daysSinceEpoch * 86_400)
    }

    private static func padded(_ number: Int, to count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

/// The lenient date format of `Set-Cookie`: parts in any order with any delimiters (RFC 6265bis §5.1.1).
package enum CookieDate {
    /// Longest text in bytes.
    package static let limit = 1024

    /// - Returns: `nil` if a part is missing, or the date is invalid or before 1601.
    package static func parse(_ text: String) -> HTTPDate? {
        guard text.utf8.count <= self.limit else { return nil }
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?
        for word in Array(text.utf8).split(whereSeparator: self.isDelimiter) {
            if time == nil, let found = self.time(word) {
                time = found
            } else if day == nil, let found = self.number(word, digits: 1...2) {
                day = found
            } else if month == nil, let found = CivilDate.month(word) {
                month = found
            } else if year == nil, let found = self.number(word, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59,
            let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        let seconds = time.hour * 3600 + time.minute * 60 + time.second
        return HTTPDate(seconds: date.daysSinceEpoch * 86_400 + Int64(seconds))
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private static func time(_ word: ArraySlice<UInt8>) -> (hour: Int, minute: Int, second: Int)? {
        let parts = word.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isDigit), parts[1].allSatisfy(\.isDigit),
            let hour = self.number(parts[0], digits: 1...2), let minute = self.number(parts[1], digits: 1...2),
            let second = self.number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// The number at the start of `word`, if it has an allowed count of digits; the rest is ignored.
    private static func number(_ word: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let leading = word.prefix(while: \.isDigit)
        guard digits.contains(leading.count) else { return nil }
        return leading.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}

/// Parses the three formats of HTTP-date (RFC 9110 §5.6.7).
private struct HTTPDateParser {
    private let bytes: [UInt8]
    private let isStrict: Bool
    private var index = 0

    /// Longest text in bytes.
    private static let limit = 64

    init?(_ text: String, isStrict: Bool) {
        guard text.utf8.count <= Self.limit else { return nil }
        self.bytes = Array(text.utf8)
        self.isStrict = isStrict
    }

    mutating func date(now: HTTPDate) -> HTTPDate? {
        _ = self.skipBlanks()
        let name = self.letters()
        guard self.skip(UInt8(ascii: ",")) else {
            return name.count == 3 && CivilDate.isDayName(name) ? self.asctime() : nil
        }
        let isSeparated = self.skipBlanks()
        guard isSeparated || !self.isStrict, CivilDate.isDayName(name), let day = self.number(digits: 1...2) else {
            return nil
        }
        if self.skip(UInt8(ascii: "-")) { return name.count > 3 ? self.rfc850(day: day, now: now) : nil }
        return name.count == 3 ? self.fixdate(day: day) : nil
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, from the month on.
    private mutating func fixdate(day: Int) -> HTTPDate? {
        guard self.skipBlanks(), let month = self.month(), self.skipBlanks(), let year = self.number(digits: 4...4),
            let time = self.time(), self.zone(), self.isAtEnd
        else { return nil }
        return Self.date(year: year, month: month, day: day, time: time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`, from the month on.
    private mutating func rfc850(day: Int, now: HTTPDate) -> HTTPDate? {
        guard let month = self.month(), self.skip(UInt8(ascii: "-")), let twoDigits = self.number(digits: 2...2),
            let time = self.time(), self.zone(), self.isAtEnd
        else { return nil }
        let limit = now.advancedByFiftyYears
        let century = CivilDate(daysSinceEpoch: now.seconds.floorDivided(by: 86_400)).year / 100 * 100
        // The latest century in which the date is at most 50 years ahead.
        for year in [century + 100 + twoDigits, century + twoDigits, century - 100 + twoDigits] {
            if let date = Self.date(year: year, month: month, day: day, time: time), date <= limit {
                return date
            }
        }
        return nil
    }

    /// `Sun Nov  6 08:49:37 1994`, from the month on.
    private mutating func asctime() -> HTTPDate? {
        // A day of one digit has two blanks before it.
        guard self.skipBlanks(), let month = self.month(), self.skipBlanks(upTo: 2),
            let day = self.number(digits: 1...2), let time = self.time(), self.skipBlanks(),
            let year = self.number(digits: 4...4), self.isAtEnd
        else { return nil }
        return Self.date(year: year, month: month, day: day, time: time)
    }

    private static func date(year: Int, month: Int, day: Int, time: Int) -> HTTPDate? {
        CivilDate(year: year, month: month, day: day).map {
            HTTPDate(seconds: $0.daysSinceEpoch * 86_400 + Int64(time))
        }
    }

    /// Parses blanks and `08:49:37`.
    /// - Returns: seconds since midnight.
    private mutating func time() -> Int? {
        guard self.skipBlanks(), let hour = self.number(digits: 2...2), self.skip(UInt8(ascii: ":")),
            let minute = self.number(digits: 2...2), self.skip(UInt8(ascii: ":")),
            let second = self.number(digits: 2...2), hour <= 23, minute <= 59,
            // 60 is a leap second, which Unix time does not count.
            second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func zone() -> Bool {
        guard self.skipBlanks() else { return false }
        let name = self.letters().map(\.loweredASCII)
        return name.elementsEqual("gmt".utf8) || !self.isStrict && name.elementsEqual("utc".utf8)
    }

    private mutating func month() -> Int? {
        let name = self.letters()
        return name.count == 3 ? CivilDate.month(name) : nil
    }

    private mutating func letters() -> ArraySlice<UInt8> {
        let start = self.index
        while self.index < self.bytes.count, self.bytes[self.index].isLetter { self.index += 1 }
        return self.bytes[start..<self.index]
    }

    /// Parses a run of digits, if it has an allowed count.
    private mutating func number(digits: ClosedRange<Int>) -> Int? {
        let start = self.index
        var value = 0
        while self.index < self.bytes.count, self.bytes[self.index].isDigit, self.index - start < 5 {
            value = value * 10 + Int(self.bytes[self.index] - UInt8(ascii: "0"))
            self.index += 1
        }
        return digits.contains(self.index - start) ? value : nil
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard self.index < self.bytes.count, self.bytes[self.index] == byte else { return false }
        self.index += 1
        return true
    }

    /// - Parameter limit: the number of blanks of a strictly read date.
    /// - Returns: whether there were any, and not too many.
    private mutating func skipBlanks(upTo limit: Int = 1) -> Bool {
        let start = self.index
        while self.index < self.bytes.count, self.bytes[self.index].isBlank { self.index += 1 }
        return self.index > start && (!self.isStrict || self.index - start <= limit)
    }

    private var isAtEnd: Bool { self.bytes[self.index...].allSatisfy(\.isBlank) }
}
