import Testing
import WireText

@Suite("Characters and encodings of wire text")
struct TextTests {
    @Test func tokenCharactersAreThoseOfTheRFC() {
        // RFC 9110 §5.6.2, written out.
        let characters = Set(
            "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max { #expect(byte.isTokenCharacter == characters.contains(byte), "\(byte)") }
    }

    @Test func unreservedCharactersAreThoseOfTheRFC() {
        // RFC 3986 §2.3, written out.
        let characters = Set("-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max { #expect(byte.isUnreserved == characters.contains(byte), "\(byte)") }
    }

    @Test func onlyASCIILettersAreCaseInsensitive() {
        #expect("Upgrade".matchesIgnoringCase("uPGRADE"))
        #expect(!"Upgrade".matchesIgnoringCase("Upgrades"))
        // `[` and `{` differ in the bit that distinguishes cases.
        #expect(!"[".matchesIgnoringCase("{"))
        #expect(!"É".matchesIgnoringCase("é"))
    }

    @Test(arguments: [("a%20b", "a b"), ("%C3%A9", "é"), ("a+b", "a+b"), ("", "")])
    func percentEncodedTextIsDecoded(_ text: String, _ plain: String) {
        #expect(PercentCoding.decodedText(text) == plain)
        #expect(PercentCoding.decoded(text.utf8) == Array(plain.utf8))
    }

    @Test func plusIsASpaceInForms() {
        #expect(PercentCoding.decodedText("a+b%2B", plusIsSpace: true) == "a b+")
    }

    @Test(arguments: ["%", "%4", "%zz", "a%4g"])
    func incompleteEscapeIsRejectedOrKept(_ text: String) {
        #expect(PercentCoding.decodedText(text) == nil)
        #expect(PercentCoding.decoded(text.utf8) == Array(text.utf8))
    }

    @Test func bytesThatAreNotUTF8AreRejected() {
        #expect(PercentCoding.decodedText("%FF") == nil)
        #expect(PercentCoding.decoded("%FF".utf8) == [0xFF])
    }

    @Test func reservedCharactersAreEncoded() {
        #expect(PercentCoding.encoded("a b/é~") == "a%20b%2F%C3%A9~")
        #expect(PercentCoding.encoded("a b", allowing: { $0 == 0x20 || $0.isLetter }) == "a b")
    }

    @Test func hexadecimalDigitsAreReadInEitherCase() {
        #expect(Hexadecimal.bytes("00fFa9") == [0x00, 0xFF, 0xA9])
        #expect(Hexadecimal.text([0x00, 0xFF, 0xA9]) == "00ffa9")
        for text in ["0", "0g", "0x00"] { #expect(Hexadecimal.bytes(text) == nil) }
    }

    @Test(
        arguments: [
            (1970, 1, 1, 0, 4), (1969, 12, 31, -1, 3), (2000, 2, 29, 11016, 2), (2026, 11, 23, 20_780, 1),
            (9999, 12, 31, 2_932_896, 5), (1, 1, 1, -719_162, 1),
        ] as [(Int, Int, Int, Int64, Int)])
    func datesAndDaysSinceTheEpochCorrespond(_ year: Int, _ month: Int, _ day: Int, _ days: Int64, _ weekday: Int) {
        let date = CivilDate(daysSinceEpoch: days)
        #expect((date.year, date.month, date.day) == (year, month, day))
        #expect(date.weekday == weekday)
        #expect(CivilDate(year: year, month: month, day: day)?.daysSinceEpoch == days)
    }

    @Test(arguments: [
        (2025, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 13, 1), (2026, 0, 1), (0, 1, 1), (10_000, 1, 1),
    ])
    func datesThatDoNotExistAreRejected(_ year: Int, _ month: Int, _ day: Int) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }
}
