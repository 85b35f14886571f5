extension HTTPDate {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    static func fixdate(_ words: [String]) -> Self? {
        guard words[0].hasSuffix(","), CivilDate.isDayName(words[0].dropLast(), short: true),
            self.isZone(words[5]), words[1].utf8.count <= 2, words[3].utf8.count == 4
        else { return nil }
        return self.moment(year: words[3], month: words[2], day: words[1], time: words[4])
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    static func rfc850(_ words: [String], now: Self) -> Self? {
        let parts = words[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard words[0].hasSuffix(","), CivilDate.isDayName(words[0].dropLast(), short: false), self.isZone(words[3]),
            parts.count == 3, parts[2].utf8.count == 2, let twoDigits = self.number(parts[2], upTo: 99)
        else { return nil }
        let century = CivilDate(daysSinceEpoch: now.seconds.floorDivided(by: 86_400)).year / 100 * 100
        // From the century after this one backwards: the first that is not more than 50 years ahead.
        for year in [century + 100 + twoDigits, century + twoDigits, century - 100 + twoDigits] {
            guard let moment = self.moment(year: String(year), month: parts[1], day: parts[0], time: words[2])
            else { continue }
            if self.isWithinFiftyYears(moment, of: now) { return moment }
        }
        return nil
    }

    /// `Sun Nov  6 08:49:37 1994`
    static func asctime(_ words: [String]) -> Self? {
        guard CivilDate.isDayName(words[0], short: true), words[2].utf8.count <= 2, words[4].utf8.count == 4
        else { return nil }
        return self.moment(year: words[4], month: words[1], day: words[2], time: words[3])
    }

    private static func isWithinFiftyYears(_ moment: Self, of now: Self) -> Bool {
        let today = CivilDate(daysSinceEpoch: now.seconds.floorDivided(by: 86_400))
        // Of a leap day, fifty years on may only have the morrow.
        guard
            let limit = CivilDate(year: today.year + 50, month: today.month, day: today.day)
                ?? CivilDate(year: today.year + 50, month: 3, day: 1)
        else { return true }
        let timeOfDay = now.seconds - today.daysSinceEpoch * 86_400
        return moment.seconds <= limit.daysSinceEpoch * 86_400 + timeOfDay
    }

    private static func isZone(_ word: String) -> Bool {
        word.matchesIgnoringCase("GMT") || word.matchesIgnoringCase("UTC")
    }

    private static func moment(year: String, month: String, day: String, time: String) -> Self? {
        guard let year = self.number(year, upTo: 9999), let month = CivilDate.month(named: month),
            let day = self.number(day, upTo: 31), let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        let parts = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }), let hour = self.number(parts[0], upTo: 23),
            let minute = self.number(parts[1], upTo: 59),
            // 60 is a leap second, which the count of seconds does not know.
            let second = self.number(parts[2], upTo: 60)
        else { return nil }
        return Self(seconds: date.daysSinceEpoch * 86_400 + Int64(hour * 3600 + minute * 60 + second))
    }

    private static func number(_ digits: String, upTo limit: Int) -> Int? {
        guard digits.utf8.count <= 4, let value = digits.clampedDecimal(limit: 10_000), value <= limit else {
            return nil
        }
        return Int(value)
    }
}
