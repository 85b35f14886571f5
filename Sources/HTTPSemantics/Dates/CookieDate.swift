/// The generous reading of dates in `Set-Cookie` (RFC 6265bis §5.1.1): parts in any order, between any delimiters.
package enum CookieDate {
    /// Longer text is no date.
    package static let limit = 1024

    /// - Returns: `nil` when a part is missing, or when there is no such moment from the year 1601 on.
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
            } else if month == nil, let found = self.month(word) {
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

    /// A number at the beginning of `word`, with as many digits as it may have; what is behind them does not matter.
    private static func number(_ word: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let leading = word.prefix(while: \.isDigit)
        guard digits.contains(leading.count) else { return nil }
        return leading.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func month(_ word: ArraySlice<UInt8>) -> Int? {
        CivilDate.month(word)
    }
}
