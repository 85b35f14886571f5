import HTTPSemantics
import Testing

@Suite("data: URLs, RFC 2397")
struct DataURLTests {
    @Test(
        arguments: [
            ("data:,123", "text/plain", nil, "123"), ("data:,A%20brief%20note", "text/plain", nil, "A brief note"),
            ("DATA:text/HTML,<p>", "text/html", nil, "<p>"), ("data:,", "text/plain", nil, ""),
            ("data:;charset=utf-8;base64,SGk=", "text/plain", "utf-8", "Hi"),
            ("data:;BASE64,SGk", "text/plain", nil, "Hi"),
            ("data:application/json;charset=iso-8859-1;key=value,,123", "application/json", "iso-8859-1", ",123"),
            ("data:;charset=utf-8;charset=utf-16;image/png,abc", "text/plain", "utf-8", "abc"),
            ("data:a/b;key=value;charset=macroman,blahblah", "a/b", "macroman", "blahblah"),
            ("data:,100%", "text/plain", nil, "100%"), ("data:,a%zzb%4", "text/plain", nil, "a%zzb%4"),
            ("data:text/plain;base64,S G%6B=#f", "text/plain", nil, "Hi"), ("data:,a#b", "text/plain", nil, "a"),
            ("data:text/html;%20charset=utf-8,X", "text/html", "utf-8", "X"),
            ("data:image/png;%20base64,SGk=", "image/png", nil, "Hi"),
            ("data:text/plain;base64%20,SGk=", "text/plain", nil, "Hi"),
            ("data:;charset=%22Utf-8%22,X", "text/plain", "utf-8", "X"),
            ("data:;charset=%C3,X", "text/plain", "%c3", "X"),
            ("data:base64,abc", nil, nil, nil),
        ] as [(String, String?, String?, String?)])
    func dataURLHoldsItsContent(_ text: String, _ mediaType: String?, _ charset: String?, _ content: String?) {
        let url = DataURL(text)
        #expect(url?.mediaType == mediaType)
        #expect(url?.charset == charset)
        #expect((url?.content).map { String(decoding: $0, as: UTF8.self) } == content)
    }

    @Test(arguments: [
        "data://blah", "data:%2c123", "data:application_json;charset=iso-8859-%31;key=value,123,", "http://a,b", "",
        "data:appli/cation/json%3bcharset=ISO-8859-1;key=value,,123,", "data:;base64,a", "data:;base64,SGk===",
        "data:;base64,SG*k", "data:a/,b", "data:/b,c",
    ])
    func malformedDataURLIsRefused(_ text: String) {
        #expect(DataURL(text) == nil)
    }

    @Test func sizeOfADataURLIsBounded() {
        #expect(DataURL("data:,12345", limit: 11) != nil)
        #expect(DataURL("data:,123456", limit: 11) == nil)
    }

    /// RFC 4648 §10
    @Test(arguments: [
        ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"),
        ("Zm9vYmFy", "foobar"),
    ])
    func base64ContentIsRead(_ text: String, _ content: String) {
        #expect(DataURL("data:;base64," + text)?.content == Array(content.utf8))
    }
}
