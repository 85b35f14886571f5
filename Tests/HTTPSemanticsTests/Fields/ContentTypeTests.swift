import HTTPSemantics
import Testing

@Suite("Content-Type, RFC 9110 §8.3")
struct ContentTypeTests {
    @Test(
        arguments: [
            ("text/html", "text/html", nil), ("text/HTML; charset=ISO-8859-4", "text/html", "iso-8859-4"),
            ("text/html;charset=utf-8", "text/html", "utf-8"), ("Text/HTML;Charset=\"utf-8\"", "text/html", "utf-8"),
            ("text/html; charset=\"utf-8\"", "text/html", "utf-8"), (" a/b ; x=y ; charset = \"u\\tf\"", "a/b", "utf"),
            ("a/b;;charset=x", "a/b", "x"), ("a/b; charset", "a/b", nil), ("a/b; charset=", "a/b", nil),
            ("a/b; x=\"; charset=no\"; charset=yes", "a/b", "yes"), ("a/b; charset=one; charset=two", "a/b", "one"),
            ("a/b garbage; charset=x", "a/b", "x"), ("application/x.y+z; q", "application/x.y+z", nil),
            ("a/b; charset=\"gbk", "a/b", "gbk"), (", a/b;charset=x", "a/b", "x"), ("a/b, c/d", "a/b", nil),
        ] as [(String, String, String?)])
    func mediaTypeIsReadWithItsCharset(_ text: String, _ mediaType: String, _ charset: String?) {
        #expect(ContentType(text)?.mediaType == mediaType)
        #expect(ContentType(text)?.charset == charset)
    }

    @Test(arguments: ["", "text", "text/", "/html", "text html", "\u{E4}/b", "; charset=x"])
    func textWithoutATypeIsRefused(_ text: String) {
        #expect(ContentType(text) == nil)
    }

    @Test func boundaryIsRead() {
        #expect(ContentType("multipart/x-mixed-replace; boundary=\"a;b\"")?.boundary == "a;b")
        #expect(ContentType("multipart/x-mixed-replace;boundary=--x")?.boundary == "--x")
        #expect(ContentType("multipart/x-mixed-replace; boundary=")?.boundary == nil)
    }
}
