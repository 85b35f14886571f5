import HTTPSemantics
import Testing

@Suite("Names for downloads, RFC 6266 and RFC 8187")
struct FilenameTests {
    @Test(
        arguments: [
            ("attachment; filename=\"fname.ext\"", "fname.ext"), ("Attachment; FileName=fname.ext", "fname.ext"),
            ("attachment; filename=genome.jpeg; modification-date=\"Wed, 12 Feb 1997 16:29:51 -0500\";", "genome.jpeg"),
            ("attachment; filename=\";.ext\"", ";.ext"), ("inline", nil), ("attachment; filename", nil),
            ("attachment; aa=bb\\; filename=\"wrong.ext\"; filename=\"fname.ext\"; cc=dd", "fname.ext"),
            // RFC 6266 §5
            ("INLINE; FILENAME= \"an example.html\"", "an example.html"),
            ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "\u{20AC} rates"),
            ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "\u{20AC} rates"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates; filename=x", "\u{A3} rates"),
            ("attachment; filename*=UTF-8''%ff; filename=x", "x"),
            ("attachment; filename*=KOI8-R''%c1; filename=x", "x"),
            ("attachment; filename*=UTF-8''foo%; filename=x", "x"),
            ("attachment; filename*=UTF-8''f%oo; filename=x", "x"),
            ("attachment; filename=\"bar", "bar"), ("attachment; filename*=plain; filename=x", "x"),
            ("attachment; filename=\"a\\\"b\"", "a\"b"),
        ] as [(String, String?)])
    func filenameIsTakenFromContentDisposition(_ text: String, _ filename: String?) {
        #expect(ContentDisposition(text)?.filename == filename)
    }

    @Test(arguments: [
        ("attachment; filename=\"/a/b/name\"", "/x", "_a_b_name"),
        ("attachment; filename=\"a/../b/name\"", "/x", "a_.._b_name"), ("attachment; filename=\"..\"", "/x", "x"),
        ("attachment; filename=\"\"", "/y.txt", "y.txt"), ("inline", "", "Unknown"),
        ("", "/a/test/name.ext", "name.ext"),
        ("", "/", "Unknown"), ("", "", "Unknown"), ("", "/dir/", "dir"), ("", "/a%20b", "a b"),
        ("", "/a%2Fb", "a_b"), ("", "/%2E%2E", "Unknown"), ("", "/a%00%0Ab", "ab"), ("", "a/test/name", "name"),
        ("attachment; filename*=UTF-8''a%E2%80%AEgpj.exe", "/x", "agpj.exe"), ("", "/a%D8%9C%E2%80%8B%E2%80%A8b", "ab"),
        ("", "/a%EF%BB%BF%F3%A0%81%81b", "ab"), ("", "/a%E2%80%8Db", "a\u{200D}b"),
    ])
    func filenameIsFitForADisk(_ disposition: String, _ path: String, _ name: String) {
        #expect(SuggestedFilename.choose(disposition: disposition, path: path) == name)
    }

    @Test func longFilenameIsCutInTheMiddle() {
        let long = String(repeating: "\u{E4}", count: 200) + ".tar"
        let cut = SuggestedFilename.sanitized(long)
        #expect(cut?.utf8.count == 254)
        #expect(cut?.hasSuffix("\u{E4}.tar") == true)
        let endless = String(repeating: "a", count: 300) + "." + String(repeating: "b", count: 300)
        #expect(SuggestedFilename.sanitized(endless) == String(repeating: "a", count: 255))
    }

    /// One character may be longer than a name: a letter under hundreds of accents.
    @Test func filenameIsNeverCutToNothing() {
        let accents = "e" + String(repeating: "\u{301}", count: 300)
        #expect(SuggestedFilename.sanitized(accents)?.utf8.count == 255)
        let cut = SuggestedFilename.sanitized(accents + ".tar")
        #expect(cut?.hasSuffix(".tar") == true && cut?.utf8.count == 255)
        #expect(SuggestedFilename.sanitized("a" + accents)?.hasPrefix("a") == true)
    }

    @Test(arguments: ["\u{3000}", "\u{A0}", "\u{200B}\u{FEFF}", "\u{AD}", "\u{2028}", "\u{E0001}", "%E3%80%80", " "])
    func filenameIsNeverInvisible(_ name: String) {
        #expect(SuggestedFilename.choose(disposition: "attachment; filename=\"\(name)\"", path: "/a%E3%80%80") != "")
        #expect(SuggestedFilename.choose(disposition: nil, path: "/\(name)") == SuggestedFilename.unknown)
    }
}
