import HTTPSemantics
import Testing

@Suite("Parsing Set-Cookie, RFC 6265bis §5.6")
struct SetCookieFieldTests {
    @Test(arguments: [
        ("SID=31d4d96e407aad42", "SID", "31d4d96e407aad42"), ("SID=31d4; Path=/; Secure", "SID", "31d4"),
        ("  a \t=  b c ; x", "a", "b c"), ("name=v=a=l=u=e;attr1=value1", "name", "v=a=l=u=e"), ("a=", "a", ""),
        ("=b", "", "b"), ("   =b", "", "b"), ("b", "", "b"), ("a=\"b c\"", "a", "\"b c\""), ("a=b;", "a", "b"),
        ("a=b;;;", "a", "b"), ("naïve=ä", "naïve", "ä"), ("fr=anjd&232; Max-Age=7776000", "fr", "anjd&232"),
    ])
    func nameAndValueAreSplit(_ text: String, _ name: String, _ value: String) {
        let field = SetCookieField(text)
        #expect(field?.name == name)
        #expect(field?.value == value)
    }

    @Test(arguments: ["", ";", "=", " = ; a=b", ";attr1=value1", "a=b\0c", "a=b\nc", "a=b; c=\r\nd", "a=\u{7F}"])
    func namelessOrControlCharacterCookiesAreIgnored(_ text: String) {
        #expect(SetCookieField(text) == nil)
    }

    @Test func tabInAValueIsKept() {
        #expect(SetCookieField("a=b\tc")?.value == "b\tc")
    }

    @Test func attributesAreKeptUnchanged() {
        let field = SetCookieField("a=b; Path = /x ;secure;=c;  =d; Max-Age=; HttpOnly=Yes")
        let expected: [(String, String?)] = [("Path", "/x"), ("secure", nil), ("Max-Age", ""), ("HttpOnly", "Yes")]
        #expect(field?.attributes.map(\.name) == expected.map(\.0))
        #expect(field?.attributes.map(\.value) == expected.map(\.1))
    }

    @Test func lastOfRepeatedAttributesIsUsed() {
        #expect(SetCookieField("a=b; path=/1; PATH=/2")?.attribute("Path")?.value == "/2")
    }

    @Test func nameAndValueHaveAtMostFourKibibytes() {
        #expect(SetCookieField("a=" + String(repeating: "b", count: 4095)) != nil)
        #expect(SetCookieField("a=" + String(repeating: "b", count: 4096)) == nil)
    }

    @Test func attributeThatIsTooLongIsLeftOut() {
        let fits = String(repeating: "b", count: 1024)
        #expect(SetCookieField("a=b; Path=/1; Path=\(fits)")?.attribute("path")?.value == fits)
        #expect(SetCookieField("a=b; Path=/1; Path=\(fits)b")?.attribute("path")?.value == "/1")
    }

    @Test func numberOfAttributesReadIsBounded() {
        let field = SetCookieField("a=b" + String(repeating: ";c", count: 1000))
        #expect(field?.attributes.count == SetCookieField.attributeCountLimit)
    }
}
