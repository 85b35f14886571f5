import GatewayCore
import HTTPSemantics
import Testing
import WireText

@Suite("Names of files in requests")
struct FileNameTests {
    @Test(arguments: [
        ("", "", true), ("a.html", "a.html", false), ("a/b/c.js", "a/b/c.js", false), ("a/", "a", true),
        ("a/b/", "a/b", true), ("%61%2Ehtml", "a.html", false), ("gr%C3%BC%C3%9Fe", "grüße", false),
        (".well-known/security.txt", ".well-known/security.txt", false), ("a b", "a b", false), ("a%25", "a%", false),
        ("a..b", "a..b", false), ("~a", "~a", false),
    ])
    func namesAreDecodedSegmentBySegment(_ rest: String, _ path: String, _ isFolder: Bool) throws {
        let name = try #require(FileName(encoded: rest))
        #expect(name.path == path && name.isFolder == isFolder)
    }

    @Test(arguments: [
        "..", "../a", "a/../b", "%2e%2e/a", "%2E./a", "a/%2e%2e%2fb", "a%2Fb", "a%5Cb", "a\\b", "..\\a", "a%00",
        "a%0Ab",
        "a%7F", ".git/config", "a/.hidden", "a/.well-known/x", ".well-known2", "%2egit", "a//b", "/a", "//", "/", "%",
        "a%zz",
        "%C0%AE%C0%AE/a", "%FF",
    ])
    func namesThatAreNeverServedAreRefused(_ rest: String) {
        #expect(FileName(encoded: rest) == nil)
    }

    @Test func longNamesAreRefused() {
        #expect(FileName(encoded: String(repeating: "a", count: 255)) != nil)
        #expect(FileName(encoded: String(repeating: "a", count: 256)) == nil)
        #expect(FileName(encoded: Array(repeating: "abcdefg", count: 600).joined(separator: "/")) == nil)
    }

    /// No redirect can lead to another host: a browser takes `//host` and `/\host` for one.
    @Test(arguments: [
        ("/docs", "./docs/"), ("/a/docs?x=/&y", "./docs/?x=/&y"), ("/docs/", nil), ("/", nil), ("//evil.example", nil),
        ("/a//b", nil), ("http://host/docs", "./docs/"), ("http://host", nil), ("/javascript:x", "./javascript:x/"),
    ])
    func redirectsAreRelative(_ target: String, _ location: String?) {
        #expect(FileName.redirect(target) == location)
    }
}

@Suite("Types of files")
struct MediaTypeTests {
    @Test(arguments: [
        ("index.html", "text/html; charset=utf-8"), ("A.HTML", "text/html; charset=utf-8"),
        ("app.mjs", "text/javascript; charset=utf-8"), ("a/b.css", "text/css; charset=utf-8"),
        ("x.svg", "image/svg+xml"), ("m.wasm", "application/wasm"), ("f.woff2", "font/woff2"),
        ("site.webmanifest", "application/manifest+json"), ("a.tar.gz", "application/gzip"),
        ("README", "application/octet-stream"), ("a.exe", "application/octet-stream"),
        ("x.html/y", "application/octet-stream"),
        ("", "application/octet-stream"), ("a.", "application/octet-stream"),
    ])
    func typeIsThatOfTheEnding(_ path: String, _ type: String) {
        #expect(MediaType(ofFile: path).value == type)
    }

    @Test func onlyTypesThatShrinkHaveCompressedCopies() {
        #expect(["a.html", "a.js", "a.svg", "a.wasm", "a.json"].allSatisfy { MediaType(ofFile: $0).isCompressible })
        #expect(["a.png", "a.woff2", "a.zip", "a.mp4", "a"].allSatisfy { !MediaType(ofFile: $0).isCompressible })
    }
}

@Suite("Ranges, RFC 9110 §14")
struct ByteRangesTests {
    @Test(
        arguments: [
            ("bytes=0-0", [0..<1]), ("bytes=0-", [0..<100]), ("bytes=99-", [99..<100]), ("bytes=50-1000", [50..<100]),
            ("bytes=-10", [90..<100]), ("bytes=-1000", [0..<100]), ("BYTES=0-9", [0..<10]),
            ("bytes= 0-9 , 20-29", [0..<10, 20..<30]),
            ("bytes=90-,0-9", [90..<100, 0..<10]), ("bytes=0-9,200-300", [0..<10]),
            ("bytes=0-9,,20-29", [0..<10, 20..<30]), ("bytes=5-99999999999999999999", [5..<100]),
            ("bytes=-99999999999999999999", [0..<100]), ("bytes=0-9223372036854775807", [0..<100]),
        ] as [(String, [Range<Int64>])])
    func partsLieWithinTheFile(_ field: String, _ parts: [Range<Int64>]) {
        #expect(ByteRanges([field], size: 100) == .parts(parts))
    }

    @Test(arguments: [
        "bytes=100-", "bytes=200-300", "bytes=-0", "bytes=99999999999999999999999999-",
        "bytes=99999999999999999999-99999999999999999999",
    ])
    func partsBeyondTheEndAreUnsatisfiable(_ field: String) {
        #expect(ByteRanges([field], size: 100) == .unsatisfiable)
        #expect(ByteRanges(["bytes=0-"], size: 0) == .unsatisfiable)
    }

    @Test(arguments: [
        "bytes=5-4", "bytes=a-b", "bytes=-", "bytes", "bytes=1", "items=0-9", "bytes=0-9-5", "bytes=+0-9",
        "bytes=0x0-9",
        "bytes=", "bytes= , ", "bytes=99999999999999999999-5", "bytes=0-9,5-6", "bytes=0-,0-,0-", "bytes=0-9,20-a",
    ])
    func otherFieldsMeanTheWholeFile(_ field: String) {
        #expect(ByteRanges([field], size: 100) == .whole)
    }

    @Test func lastBytesOfAnEmptyFileAreTheWholeFile() {
        #expect(ByteRanges(["bytes=-5"], size: 0) == .whole)
        #expect(ByteRanges(["bytes=0-,-5"], size: 0) == .whole)
        #expect(ByteRanges(["bytes=-0"], size: 0) == .unsatisfiable)
    }

    @Test func manyPartsMeanTheWholeFile() {
        func field(_ count: Int) -> String {
            "bytes=" + (0..<count).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        }
        #expect(ByteRanges([field(17)], size: 1000) == .whole)
        guard case .parts(let parts) = ByteRanges([field(16)], size: 1000) else { return #expect(Bool(false)) }
        #expect(parts.count == 16)
        #expect(ByteRanges(["bytes=0-1", "bytes=0-1"], size: 100) == .whole)
        #expect(ByteRanges([], size: 100) == .whole)
    }
}

@Suite("Conditions on files, RFC 9110 §13")
struct FileConditionsTests {
    /// Sun, 06 Nov 1994 08:49:37.5 GMT.
    private static let validators = FileValidators(inode: 0x2A, size: 255, modified: 784_111_777_500_000_000)
    private static let now = HTTPDate(seconds: 1_800_000_000)
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let earlier = "Sun, 06 Nov 1994 08:49:36 GMT"

    @Test func entityTagIsStrongAndChangesWithEachProperty() {
        let tag = Self.validators.entityTag
        #expect(tag.hasPrefix("\"2a-ff-") && tag.hasSuffix("\""))
        let others = [
            FileValidators(inode: 1, size: 255, modified: 784_111_777_500_000_000),
            FileValidators(inode: 0x2A, size: 256, modified: 784_111_777_500_000_000),
            FileValidators(inode: 0x2A, size: 255, modified: 784_111_777_500_000_001),
        ]
        #expect(Set(others.map(\.entityTag) + [tag]).count == 4)
        #expect(Self.validators.lastModified.formatted == Self.date)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        let fields: [(String, String)]
        let outcome: FileValidators.Outcome
        var testDescription: String { "\(self.fields)" }

        init(_ fields: (String, String)..., outcome: FileValidators.Outcome) {
            self.fields = fields.map { ($0.0, $0.1.replacing("TAG", with: FileConditionsTests.validators.entityTag)) }
            self.outcome = outcome
        }
    }

    static let vectors: [Vector] = [
        Vector(outcome: .proceed),
        Vector(("If-None-Match", "TAG"), outcome: .notModified),
        Vector(("If-None-Match", "W/TAG"), outcome: .notModified),
        Vector(("If-None-Match", "\"x\", TAG"), outcome: .notModified),
        Vector(("If-None-Match", "*"), outcome: .notModified),
        Vector(("If-None-Match", "\"x\""), outcome: .proceed),
        // RFC 9110 §13.1.3: beside If-None-Match, the date is ignored.
        Vector(("If-None-Match", "\"x\""), ("If-Modified-Since", date), outcome: .proceed),
        Vector(("If-Modified-Since", date), outcome: .notModified),
        Vector(("If-Modified-Since", later), outcome: .notModified),
        Vector(("If-Modified-Since", earlier), outcome: .proceed),
        Vector(("If-Modified-Since", "yesterday"), outcome: .proceed),
        Vector(("If-Match", "TAG"), outcome: .proceed),
        Vector(("If-Match", "*"), outcome: .proceed),
        Vector(("If-Match", "W/TAG"), outcome: .preconditionFailed),
        Vector(("If-Match", "\"x\""), outcome: .preconditionFailed),
        Vector(("If-Match", "TAG"), ("If-Unmodified-Since", earlier), outcome: .proceed),
        Vector(("If-Unmodified-Since", earlier), outcome: .preconditionFailed),
        Vector(("If-Unmodified-Since", date), outcome: .proceed),
        Vector(("If-Match", "TAG"), ("If-None-Match", "TAG"), outcome: .notModified),
    ]

    @Test(arguments: vectors)
    func conditionsAreEvaluatedInOrder(_ vector: Vector) {
        let fields = FieldLines(vector.fields.map { FieldLine($0.0, $0.1) })
        #expect(Self.validators.evaluate(fields, now: Self.now) == vector.outcome)
    }

    @Test(
        arguments: [
            (nil, true), ("TAG", true), ("W/TAG", false), ("\"x\"", false), (date, true), (later, false),
            (earlier, false),
            ("nonsense", false),
        ] as [(String?, Bool)])
    func rangesApplyToTheVersionThatTheyAreFor(_ value: String?, _ applies: Bool) {
        let value = value?.replacing("TAG", with: Self.validators.entityTag)
        let fields = FieldLines(value.map { [FieldLine("If-Range", $0)] } ?? [])
        #expect(Self.validators.allowRange(fields, now: Self.now) == applies)
    }

    /// RFC 9110 §8.8.2.2: in its second the file may change again.
    @Test(arguments: [(-1, false), (0, false), (1, true)])
    func dateNamesAVersionOnceItsSecondIsOver(_ seconds: Int64, _ applies: Bool) {
        let now = HTTPDate(seconds: 784_111_777 + seconds)
        let dated = FieldLines([FieldLine("If-Range", Self.date)])
        #expect(Self.validators.allowRange(dated, now: now) == applies)
        let tagged = FieldLines([FieldLine("If-Range", Self.validators.entityTag)])
        #expect(Self.validators.allowRange(tagged, now: now))
    }
}

@Suite("Accepted codings of files, RFC 9110 §12.5.3")
struct FileCodingTests {
    @Test(
        arguments: [
            (nil, []), ("", []), ("gzip", [.gzip]), ("gzip, deflate, br, zstd", [.brotli, .gzip]), ("x-gzip", [.gzip]),
            ("GZIP", [.gzip]), ("br;q=0.5, gzip;q=1.0", [.gzip, .brotli]), ("br;q=0, gzip", [.gzip]),
            ("*", [.brotli, .gzip]),
            ("*;q=0", []), ("gzip;q=0.5, identity;q=1", []), ("gzip;q=0.5, identity;q=0.5", [.gzip]), ("br;q=1.5", []),
            ("br;q=x", []), ("br; q=0.001", [.brotli]), ("identity", []), ("gzip;q=0.9, *;q=0.1", [.gzip, .brotli]),
        ] as [(String?, [FileCoding])])
    func preferredCodingsComeFirst(_ value: String?, _ codings: [FileCoding]) {
        let fields = FieldLines(value.map { [FieldLine("Accept-Encoding", $0)] } ?? [])
        #expect(FileCoding.accepted(fields) == codings)
    }
}

@Suite("Fields of requests for files that Unicode compares slowly")
struct FileFieldCostTests {
    /// Sorting the marks, as Unicode's normal forms need it, would take hours.
    @Test(.timeLimit(.minutes(1)), arguments: ["", "W/\"", "gzip;q=", "bytes=", "bytes=1-"])
    func fieldOfManyMarksIsReadInTimeThatGrowsWithIt(_ start: String) {
        let value = start + String(repeating: "\u{301}\u{323}", count: 500_000)
        let names = ["If-Match", "If-None-Match", "If-Range", "Accept-Encoding"]
        let fields = FieldLines(names.map { FieldLine($0, value) })
        let validators = FileValidators(inode: 1, size: 1, modified: 0)
        #expect(validators.evaluate(fields, now: HTTPDate(seconds: 0)) == .preconditionFailed)
        let noneMatches = FieldLines([FieldLine("If-None-Match", value)])
        #expect(validators.evaluate(noneMatches, now: HTTPDate(seconds: 0)) == .proceed)
        #expect(!validators.allowRange(fields, now: HTTPDate(seconds: 0)))
        #expect(FileCoding.accepted(fields).isEmpty)
        #expect(ByteRanges([value], size: 1) == .whole)
    }
}
