import HTTPSemantics
import Testing

@Suite("Dates of cookies, RFC 6265bis §5.1.1")
struct CookieDateTests {
    @Test(
        arguments: [
            ("Wed, 01 Jan 2020 12:30:00 GMT", 1_577_881_800), ("Wed Jan 1 12:30:00 2020", 1_577_881_800),
            ("Wed, 01-Jan-2020 12:30:00 GMT", 1_577_881_800), ("Wednesday, 01-Jan-20 12:30:00 GMT", 1_577_881_800),
            ("2020 jan 1 12:30:00", 1_577_881_800), ("12:30:00 1 January 2020", 1_577_881_800),
            ("01-JAN-2020;12:30:00", 1_577_881_800), ("1.Jan 20 12:30:0", 1_577_881_800),
            ("Saturday, 01-Jan-20 12:30:00 GMT)", 1_577_881_800), ("Tue, 29 Feb 2000 0:0:0", 951_782_400),
            ("01 Jan 70 00:00:00", 0), ("01 Jan 1601 00:00:00", -11_644_473_600), ("1 Jan 69 0:0:0", 3_124_224_000),
            ("Thu, 01 Jan 1970 00:00:00 GMT+0100", 0), ("1st Jan 1970 00:00:00xyz", 0),
        ] as [(String, Int64)])
    func partsOfADateAreReadInAnyOrder(_ text: String, _ seconds: Int64) {
        #expect(CookieDate.parse(text)?.seconds == seconds)
    }

    @Test(arguments: [
        "", "Wed", "01 Jan 2020", "12:30:00 2020 Jan", "01 Jan 1600 00:00:00", "32 Jan 2020 00:00:00",
        "30 Feb 2020 00:00:00", "29 Feb 2019 00:00:00", "01 Jan 2020 24:00:00", "01 Jan 2020 12:60:00",
        "01 Jan 2020 12:30:60", "01 Foo 2020 12:30:00", "0 Jan 2020 12:30:00", "01 Jan 20201 12:30:00",
        "01 Jan 2020 123:30:00", "01 Jan 2020 12:30", "01 Ja 2020 12:30:00",
    ])
    func incompleteOrImpossibleDateIsRefused(_ text: String) {
        #expect(CookieDate.parse(text) == nil)
    }

    @Test func tooLongDateIsRefused() {
        #expect(CookieDate.parse("1 Jan 2020 12:30:00" + String(repeating: " ", count: 1005)) != nil)
        #expect(CookieDate.parse("1 Jan 2020 12:30:00" + String(repeating: " ", count: 1006)) == nil)
    }
}
