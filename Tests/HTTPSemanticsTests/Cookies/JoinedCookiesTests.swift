import HTTPSemantics
import Testing

@Suite("Several cookies in one text")
struct JoinedCookiesTests {
    private func pairs(_ text: String) -> [String] {
        SetCookieField.parseJoined(text).map { "\($0.name)=\($0.value)" }
    }

    @Test(arguments: [
        ("", []), ("a=b", ["a=b"]), ("a=b, c=d", ["a=b", "c=d"]), ("a=b,c=d,e=f", ["a=b", "c=d", "e=f"]),
        ("fr=a&2@#; path=/; secure, xd=plm!@#;path=/;domain=.example2.com", ["fr=a&2@#", "xd=plm!@#"]),
        ("A=1; expires=Sun, 16-Aug-2025 22:39:54 GMT, B=2; expires=Sat, 15-Feb-2014 22:39:54 GMT", ["A=1", "B=2"]),
        ("A=1; expires=Sun, 16 Aug 2025 22:39:54 GMT; path=/", ["A=1"]),
        ("n=v; Comment=real value, tok@en=second; x=y", ["n=v"]), ("a=b,", ["a=b,"]), ("a=1,2,3", ["a=1,2,3"]),
        ("a=b;secure,\n c=d;path=/,\r\n e=f", ["a=b", "c=d", "e=f"]), ("AAA =1, BBB =2", ["AAA=1", "BBB=2"]),
    ])
    func joinedCookiesArePartedAtACommaAndAName(_ text: String, _ expected: [String]) {
        #expect(self.pairs(text) == expected)
    }

    @Test func joinedCookiesKeepTheirOwnAttributes() {
        let cookies = SetCookieField.parseJoined("a=b; secure, c=d; expires=Wed, 01 Jan 2020 12:30:00 GMT; httponly")
        #expect(cookies.map { $0.attribute("secure") != nil } == [true, false])
        #expect(cookies.last?.attribute("Expires")?.value == "Wed, 01 Jan 2020 12:30:00 GMT")
        #expect(cookies.last?.attribute("HttpOnly") != nil)
    }

    @Test func sentenceWithACommaStaysWhole() {
        let cookie = SetCookieField.parseJoined("n=v; Comment=real value, tok@en=second; CommentURL=https://a/b").first
        #expect(cookie?.attribute("comment")?.value == "real value, tok@en=second")
        #expect(cookie?.attribute("commenturl")?.value == "https://a/b")
    }

    @Test func parsingEndsAtTheLimit() {
        let text = (0..<1000).map { "a\($0)=b" }.joined(separator: ",")
        #expect(SetCookieField.parseJoined(text).count == SetCookieField.joinedLimit)
    }
}
