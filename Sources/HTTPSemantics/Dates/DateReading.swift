/// Reads one of the three forms of a date from its beginning to its end (RFC 9110 §5.6.7).
struct DateReading {
    private let bytes: [UInt8]
    private var index = 0

    /// Longer text is no date.
    private static let limit = 64

    init?(_ text: String) {
        guard text.utf8.count <= Self.limit else { return nil }
        self.bytes = Array(text.utf8)
    }

    mutating func moment(now: HTTPDate) -> HTTPDate? {
        self.skipBlanks()
        let name = self.letters()
        guard self.skip(UInt8(ascii: ",")) else {
            return name.count == 3 && CivilDate.isDayName(name) ? self.asctime() : nil
        }
        self.skipBlanks()
        guard CivilDate.isDayName(name), let day = self.number(digits: 1...2) else { return nil }
        if self.skip(UInt8(ascii: "-")) { return name.count > 3 ? self.rfc850(day: day, now: now) : nil }
        return name.count == 3 ? self.fixdate(day: day) : nil
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, from the month on.
    private mutating func fixdate(day: Int) -> HTTPDate? {
        guard self.skipBlanks(), let month = self.month(), self.skipBlanks(), let year = self.number(digits: 4...4),
            let time = self.time(), self.zone(), self.isAtEnd
        else { return nil }
        return Self.moment(year: year, month: month, day: day, time: time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`, from the month on.
    private mutating func rfc850(day: Int, now: HTTPDate) -> HTTPDate? {
        guard let month = self.month(), self.skip(UInt8(ascii: "-")), let twoDigits = self.number(digits: 2...2),
            let time = self.time(), self.zone(), self.isAtEnd
        else { return nil }
        let limit = now.advancedByFiftyYears
        let century = CivilDate(daysSinceEpoch: now.seconds.floorDivided(by: 86_400)).year / 100 * 100
        // From the century after this one backwards: the first that is not more than 50 years ahead.
        for year in [century + 100 + twoDigits, century + twoDigits, century - 100 + twoDigits] {
            if let moment = Self.moment(year: year, month: month, day: day, time: time), moment <= limit {
                return moment
            }
        }
        return nil
    }

    /// `Sun Nov  6 08:49:37 1994`, from the month on.
    private mutating func asctime() -> HTTPDate? {
        guard self.skipBlanks(), let month = self.month(), self.skipBlanks(), let day = self.number(digits: 1...2),
            let time = self.time(), self.skipBlanks(), let year = self.number(digits: 4...4), self.isAtEnd
        else { return nil }
        return Self.moment(year: year, month: month, day: day, time: time)
    }

    private static func moment(year: Int, month: Int, day: Int, time: Int) -> HTTPDate? {
        CivilDate(year: year, month: month, day: day).map {
            HTTPDate(seconds: $0.daysSinceEpoch * 86_400 + Int64(time))
        }
    }

    /// Blanks and `08:49:37`, in seconds of the day.
    private mutating func time() -> Int? {
        guard self.skipBlanks(), let hour = self.number(digits: 2...2), self.skip(UInt8(ascii: ":")),
            let minute = self.number(digits: 2...2), self.skip(UInt8(ascii: ":")),
            let second = self.number(digits: 2...2), hour <= 23, minute <= 59,
            // 60 is a leap second, which the count of seconds does not know.
            second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func zone() -> Bool {
        guard self.skipBlanks() else { return false }
        let name = self.letters().map(\.loweredASCII)
        return name.elementsEqual("gmt".utf8) || name.elementsEqual("utc".utf8)
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

    /// A whole run of digits, of as many as it may have.
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

    /// - Returns: whether there was any.
    @discardableResult
    private mutating func skipBlanks() -> Bool {
        let start = self.index
        while self.index < self.bytes.count, self.bytes[self.index].isBlank { self.index += 1 }
        return self.index > start
    }

    private var isAtEnd: Bool { self.bytes[self.index...].allSatisfy(\.isBlank) }
}

extension HTTPDate {
    /// The same time of the same day fifty years on.
    fileprivate var advancedByFiftyYears: Self {
        let today = CivilDate(daysSinceEpoch: self.seconds.floorDivided(by: 86_400))
        // Of a leap day, fifty years on may only have the morrow.
        let day =
            CivilDate(year: today.year + 50, month: today.month, day: today.day)
            ?? CivilDate(year: today.year + 50, month: 3, day: 1)
        guard let day else { return .latest }
        return Self(seconds: day.daysSinceEpoch * 86_400 + self.seconds - today.daysSinceEpoch * 86_400)
    }
}
