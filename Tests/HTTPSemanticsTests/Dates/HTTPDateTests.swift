import HTTPSemantics
import Testing

@Suite("Dates of HTTP, RFC 9110 §5.6.7")
struct HTTPDateTests {
    /// 2026-11-21 12:00:00 UTC
    private let now = HTTPDate(seconds: 1_795_262_400)

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt", " Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
    func threeFormsOfTheRFCAreRead(_ text: String) {
        #expect(HTTPDate(text, now: self.now)?.seconds == 784_111_777)
    }

    /// RFC 9111 §4.2.
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", true), ("Sunday, 06-Nov-94 08:49:37 GMT", true),
        ("Sun Nov  6 08:49:37 1994", true), ("Sun Nov 16 08:49:37 1994", true), ("sun, 06 nov 1994 08:49:37 gmt", true),
        ("Sun, 06 Nov 1994 08:49:37 UTC", false), ("Sunday, 06-Nov-94 08:49:37 UTC", false),
        ("Sun,  06 Nov 1994 08:49:37 GMT", false), ("Sun,06 Nov 1994 08:49:37 GMT", false),
        ("Sun, 06 Nov 1994  08:49:37 GMT", false), ("Sun, 06 Nov 1994 08:49:37  GMT", false),
        ("Sun Nov   6 08:49:37 1994", false), ("Sun  Nov  6 08:49:37 1994", false),
    ])
    func strictDateIsThatOfTheGrammar(_ text: String, _ isValid: Bool) {
        #expect((HTTPDate(text, now: self.now, isStrict: true) != nil) == isValid)
        #expect(HTTPDate(text, now: self.now) != nil)
    }

    @Test(
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400), ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
            ("Thu, 29 Feb 2024 12:34:56 GMT", 1_709_210_096), ("Mon, 28 Feb 1900 00:00:00 GMT", -2_203_977_600),
        ] as [(String, Int64)])
    func datesAgreeWithTheCalendar(_ text: String, _ seconds: Int64) {
        #expect(HTTPDate(text, now: self.now)?.seconds == seconds)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
        "Mon, 01 Jan 0001 00:00:00 GMT", "Tue, 29 Feb 2000 00:00:00 GMT", "Wed, 31 Dec 1969 23:59:59 GMT",
    ])
    func dateIsWrittenInTheFormOfSenders(_ text: String) {
        #expect(HTTPDate(text, now: self.now)?.formatted == text)
    }

    @Test(arguments: [
        "", "0", "-1", "Sun, 06 Nov 1994", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 PST",
        "Xxx, 06 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37:00 GMT", "Sun, 06 Nov 1994 08-49-37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z",
    ])
    func invalidDateIsRefused(_ text: String) {
        #expect(HTTPDate(text, now: self.now) == nil)
    }

    @Test func leapSecondIsTheNextMinute() {
        #expect(HTTPDate("Sat, 31 Dec 2016 23:59:60 GMT", now: self.now)?.formatted == "Sun, 01 Jan 2017 00:00:00 GMT")
    }

    @Test(arguments: [
        ("Saturday, 21-Nov-76 12:00:00 GMT", "Sat, 21 Nov 2076 12:00:00 GMT"),
        ("Sunday, 21-Nov-76 12:00:01 GMT", "Sun, 21 Nov 1976 12:00:01 GMT"),
        ("Saturday, 21-Nov-26 12:00:00 GMT", "Sat, 21 Nov 2026 12:00:00 GMT"),
        ("Monday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("Monday, 01-Jan-99 00:00:00 GMT", "Fri, 01 Jan 1999 00:00:00 GMT"),
    ])
    func twoDigitYearIsAtMostFiftyYearsAhead(_ text: String, _ meant: String) {
        #expect(HTTPDate(text, now: self.now)?.formatted == meant)
    }

    @Test func twoDigitYearMayBeInTheNextCentury() {
        let late = HTTPDate("Tue, 01 Dec 2099 00:00:00 GMT", now: self.now)
        #expect(
            late.flatMap { HTTPDate("Friday, 01-Jan-10 00:00:00 GMT", now: $0) }?.formatted
                == "Wed, 01 Jan 2110 00:00:00 GMT")
    }

    @Test func dateStaysInTheRangeThatCanBeWritten() {
        #expect(HTTPDate(seconds: .max) == .latest)
        #expect(HTTPDate(seconds: .min) == .earliest)
        #expect(HTTPDate.latest.advanced(by: .max) == .latest)
        #expect(HTTPDate.earliest.advanced(by: .min) == .earliest)
        #expect(HTTPDate(seconds: 5).advanced(by: -10).seconds == -5)
        #expect(HTTPDate(seconds: 5).seconds(since: HTTPDate(seconds: 8)) == -3)
    }

    @Test func datesOfEightCenturiesAreReadBackEqual() {
        for day in stride(from: Int64(-146_097), to: 146_097, by: 13) {
            let date = HTTPDate(seconds: day * 86_400 + 3_723)
            #expect(HTTPDate(date.formatted, now: self.now) == date, "day \(day)")
        }
    }
}
