import GatewayConfiguration
import Testing

@Suite("Syntax of configuration values")
struct ValueSyntaxTests {
    @Test(arguments: [
        ("0", Duration.zero), ("0s", .zero), ("1ms", .milliseconds(1)), ("500ms", .milliseconds(500)),
        ("25s", .seconds(25)),
        ("1m30s", .seconds(90)), ("1h", .seconds(3600)), ("7d", .seconds(604_800)),
        ("1d2h3m4s5ms", .milliseconds(93_784_005)), ("10000d", .seconds(864_000_000)),
    ])
    func durationIsRead(text: String, duration: Duration) {
        #expect(DurationText(parsing: text)?.duration == duration)
    }

    @Test(arguments: [
        "", "25", "s", "1.5s", "-1s", "+1s", " 1s", "1s ", "1S", "1s1m", "1s1s", "1us", "1 s", "10001d", "1w", "٣s",
        "00000000000000000000s",
        "999999999999999999d", "999999999999999999ms",
    ])
    func invalidDurationIsRefused(text: String) {
        #expect(DurationText(parsing: text) == nil)
    }

    @Test(arguments: ["0s", "1ms", "25s", "1m30s", "7d", "1d2h3m4s5ms", "10000d"])
    func durationIsWrittenAsItIsRead(text: String) {
        #expect(DurationText(parsing: text)?.description == text)
    }

    @Test(arguments: [
        ("0", 0), ("65536", 65_536), ("12B", 12), ("64KiB", 65_536), ("1MiB", 1_048_576), ("16MB", 16_000_000),
        ("5kB", 5000), ("5KB", 5000), ("2GiB", 2_147_483_648), ("2GB", 2_000_000_000), ("1TiB", 1_099_511_627_776),
    ])
    func sizeIsRead(text: String, bytes: Int) {
        #expect(SizeText(parsing: text)?.bytes == bytes)
    }

    @Test(arguments: [
        "", "KiB", "1.5MiB", "-1", "1 KiB", "1kib", "1K", "1M", "0x10", "999999999999999999GiB", "9999999999999999999",
        "1MiB ",
    ])
    func invalidSizeIsRefused(text: String) {
        #expect(SizeText(parsing: text) == nil)
    }

    @Test func numberOutsideItsRangeIsRefusedWithTheRange() {
        #expect(throws: ValueSyntaxError(expected: "a whole number from 1 to 9")) {
            try ValueSyntax<Int>.integer(1...9).parse("10")
        }
        #expect(throws: ValueSyntaxError(expected: "a duration from 1s to 1m")) {
            try ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(60)).parse("61s")
        }
        #expect(throws: ValueSyntaxError(expected: "a size from 1KiB to 1MiB")) {
            try ValueSyntax<Int>.size(1024...1_048_576).parse("1023")
        }
    }

    @Test func bareNumberSuggestsItsUnit() {
        let expected = ValueSyntaxError(
            expected: "a duration from 1s to 1m, or none", remedy: "add a unit: 25s is seconds")
        #expect(throws: expected) {
            try ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(60)).orNone.parse("25")
        }
    }

    @Test func noneIsReadOnlyIfAllowed() throws {
        #expect(try ValueSyntax<Int>.integer(1...9).orNone.parse("none") == nil)
        #expect(try ValueSyntax<Int>.integer(1...9).orNone.parse("3") == 3)
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<Int>.integer(1...9).parse("none") }
    }

    @Test(arguments: [("0660", 0o660), ("660", 0o660), ("0o600", 0o600), ("0777", 0o777), ("000", 0)])
    func octalPermissionsAreRead(text: String, bits: UInt32) throws {
        #expect(try ValueSyntax<UInt32>.permissions.parse(text) == bits)
    }

    @Test(arguments: ["", "0o", "8", "0680", "1777", "07777", "rw-rw----", "-660"])
    func otherPermissionsAreRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<UInt32>.permissions.parse(text) }
    }

    @Test func rateIsRead() throws {
        #expect(try ValueSyntax<Int>.rate(1...1000).parse("500/s") == 500)
        for text in ["500", "500/m", "0/s", "1001/s", "/s", "5 /s"] {
            #expect(throws: ValueSyntaxError.self, "\(text)") { try ValueSyntax<Int>.rate(1...1000).parse(text) }
        }
    }

    @Test(arguments: ["yes", "on", "True", "1", ""])
    func onlyTrueAndFalseAreBooleans(text: String) {
        #expect(throws: ValueSyntaxError(expected: "true or false")) { try ValueSyntax<Bool>.boolean.parse(text) }
    }

    @Test(arguments: [
        ("cert", "certificate"), ("crll", "crl"), ("certificatt", "certificate"), ("ce", nil), ("xyz", nil),
    ])
    func beginningOfAWordSuggestsIt(_ word: String, _ expected: String?) {
        #expect(EditDistance.nearest(to: word, among: ["crl", "certificate-chain", "certificate"]) == expected)
    }

    @Test(arguments: ["/%zz", "/%", "/a%2", "/%4{room}"])
    func percentSignOfATargetBeginsTwoDigits(_ path: String) throws {
        let error = ValueSyntaxError(
            expected: "two hexadecimal digits after each %", remedy: "write a % itself as %25")
        #expect(throws: error) { try ResourceTemplate(parsing: path[...]) }
        #expect(try ResourceTemplate(parsing: "/%25{room}?a=%C3%A9").description == "/%25{room}?a=%C3%A9")
    }

    @Test func unknownWordSuggestsTheNearestChoice() {
        let fault = ValueSyntaxError(
            expected: "one of binary, text, lines, length-prefixed, base64", remedy: "did you mean length-prefixed?")
        #expect(throws: fault) { try ValueSyntax<Framing>.choice.parse("length-prefix") }
    }

    @Test(arguments: [
        "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ])
    func pinIsReadInBothForms(text: String) throws {
        // The SHA-256 of nothing (FIPS 180-4), in base64 and in hexadecimal.
        let pin = try ValueSyntax<PublicKeyPin>.publicKeyPin.parse(text)
        #expect(pin.digest.prefix(4) == [0xE3, 0xB0, 0xC4, 0x42])
        #expect(pin.digest.suffix(2) == [0xB8, 0x55])
    }

    @Test(arguments: [
        "", "sha256/", "sha256/AAAA", "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
        "sha256/47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", "e3b0", "sha1/AAAA", "sha256/====",
    ])
    func textThatIsNoPinIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<PublicKeyPin>.publicKeyPin.parse(text) }
    }
}
