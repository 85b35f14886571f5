import HTTPSemantics
import HTTPTypes
import TestSupport
import Testing

@Suite("Contents of several parts, RFC 2046 §5.1.1")
struct MultipartTests {
    private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func events(_ text: String, boundary: String = "b") -> [String] {
        let bytes = self.text(text)
        let whole = MultipartFeeding.events(bytes, boundary: boundary)
        #expect(MultipartFeeding.events(bytes, boundary: boundary, cuts: MultipartFeeding.byByte(bytes)) == whole)
        return whole.map { event in
            switch event {
            case .partBegan(let fields): "<" + fields.map { "\($0.name)=\($0.value)" }.joined(separator: "|") + ">"
            case .content(let bytes): String(decoding: bytes, as: UTF8.self)
            case .partEnded: "."
            case .finished: "end"
            case .violation(let violation): "\(violation)"
            }
        }
    }

    /// RFC 2046 §5.1.1
    @Test func partsAreSeparatedAsInTheRFC() {
        let text = """
            This is the preamble.  It is to be ignored, though it
            is a handy place for composition agents to include an
            explanatory note to non-MIME conformant readers.

            --simple boundary

            This is implicitly typed plain US-ASCII text.
            It does NOT end with a linebreak.
            --simple boundary
            Content-type: text/plain; charset=us-ascii

            This is explicitly typed plain US-ASCII text.
            It DOES end with a linebreak.

            --simple boundary--

            This is the epilogue.  It is also to be ignored.
            """.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n")
        #expect(
            self.events(text, boundary: "simple boundary") == [
                "<>", "This is implicitly typed plain US-ASCII text.\r\nIt does NOT end with a linebreak.", ".",
                "<Content-type=text/plain; charset=us-ascii>",
                "This is explicitly typed plain US-ASCII text.\r\nIt DOES end with a linebreak.\r\n", ".", "end",
            ])
    }

    @Test(arguments: [
        ("--b\r\nA: 1\r\n\r\nx\r\n--b--", ["<A=1>", "x", ".", "end"]),
        ("--b\nA: 1\n\nx\n--b--\n", ["<A=1>", "x", ".", "end"]),
        ("--b\r\n\r\n\r\n--b--", ["<>", ".", "end"]), ("--b\r\n\r\n--b--", ["<>", ".", "end"]),
        ("--b \t \r\nA:1\r\n\r\nx\r\n--b  \r\nB : 2\r\n\r\ny\r\n--b--", ["<A=1>", "x", ".", "<B=2>", "y", ".", "end"]),
        (
            "--b\r\n\r\nx--b\r\n--bc\r\n --b\r\n--b-\r\n--b x\r\n\r\n--b--",
            [
                "<>", "x--b\r\n--bc\r\n --b\r\n--b-\r\n--b x\r\n", ".", "end",
            ]
        ),
        ("--b\r\n\r\nx\r\r\n--b--", ["<>", "x\r", ".", "end"]), ("\r\n--b\r\n\r\nx\r\n--b--", ["<>", "x", ".", "end"]),
        ("x--b\r\n--b\r\n\r\ny\r\n--b--z", ["<>", "y", ".", "end"]),
        ("--b\r\nno field\r\n: x\r\nA: 1\r\n\r\nx\r\n--b--", ["<A=1>", "x", ".", "end"]),
        ("--b--", ["end"]), ("", ["noParts"]), ("nothing", ["noParts"]), ("--", ["noParts"]),
        ("--b\r\nA: 1", ["truncated"]), ("--b\r\n\r\nx", ["<>", "x", "truncated"]),
        ("--b\r\n\r\nx\r\n--", ["<>", "x\r\n--", "truncated"]),
        ("--b\r\n\r\nx\r\n--b", ["<>", "x\r\n--b", "truncated"]),
        ("--b\r\n\r\nx\r\n--b\r\n", ["<>", "x", ".", "truncated"]),
    ])
    func partsAreSeparated(_ text: String, _ expected: [String]) {
        #expect(self.events(text) == expected)
    }

    @Test func boundaryParameterMayIncludeTheDashes() {
        let quirk = "--cam\r\n\r\nx\r\n--cam\r\n\r\ny\r\n--cam--"
        #expect(self.events(quirk, boundary: "--cam") == ["<>", "x", ".", "<>", "y", ".", "end"])
        let right = "----cam\r\n\r\nx\r\n----cam\r\n\r\ny\r\n----cam--"
        #expect(self.events(right, boundary: "--cam") == ["<>", "x", ".", "<>", "y", ".", "end"])
    }

    @Test func contentOfAPartIsGivenAsItArrives() throws {
        var splitter = try #require(MultipartParser(boundary: "b"))
        splitter.bytesReceived(self.text("--b\r\n\r\nfirst"))
        #expect(splitter.nextEvent() == .partBegan([:]))
        #expect(splitter.nextEvent() == .content(self.text("first")))
        #expect(splitter.nextEvent() == nil)
        splitter.bytesReceived(self.text("\r\n--b\r\n"))
        #expect(splitter.nextEvent() == .partEnded)
        #expect(splitter.nextEvent() == nil)
    }

    @Test func headOfAPartIsBounded() {
        let wide = "--b\r\nA: " + String(repeating: "x", count: MultipartParser.headLimit)
        #expect(MultipartFeeding.events(self.text(wide), boundary: "b", ends: false) == [.violation(.headTooLarge)])
        let long = "--b\r\n" + String(repeating: "A:1\r\n", count: 200)
        #expect(MultipartFeeding.events(self.text(long), boundary: "b", ends: false) == [.violation(.headTooLarge)])
        let endless = "--b\r\n" + String(repeating: "xy\r\n", count: 10_000)
        #expect(MultipartFeeding.events(self.text(endless), boundary: "b", ends: false) == [.violation(.headTooLarge)])
    }

    @Test func parserNeedsABoundary() {
        #expect(MultipartParser(boundary: "") == nil)
        #expect(MultipartParser(boundary: String(repeating: "b", count: 257)) == nil)
    }

    @Test func partsAreTheSameInAnySplit() {
        let pieces = [
            "--b", "\r\n", "\n", "\r", "--", "-", "A: 1", "x", "", "b", " ", "\r\n--b\r\n\r\n", "\r\n--b--", "--bb",
        ]
        for seed in 0..<800 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            var bytes: [UInt8] = Bool.random(using: &generator) ? self.text("--b\r\n\r\n") : []
            for _ in 0..<Int.random(in: 0...25, using: &generator) {
                bytes += self.text(pieces.randomElement(using: &generator) ?? "")
            }
            let boundary = seed % 3 == 0 ? "--b" : "b"
            let whole = MultipartFeeding.events(bytes, boundary: boundary)
            let cuts = generator.cuts(of: bytes.count, longest: 4)
            #expect(MultipartFeeding.events(bytes, boundary: boundary, cuts: cuts) == whole, "seed \(seed)")
            let single = MultipartFeeding.byByte(bytes)
            #expect(MultipartFeeding.events(bytes, boundary: boundary, cuts: single) == whole, "seed \(seed)")
        }
    }

    @Test func writtenPartsReadBackEqual() {
        for seed in 0..<60 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            var bytes: [UInt8] = []
            var expected: [MultipartEvent] = []
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let content = generator.bytes(Int.random(in: 1...2000, using: &generator))
                bytes += self.text("--frontier\r\nA: 1\r\n\r\n") + content + self.text("\r\n")
                expected += [.partBegan([.init("A")!: "1"]), .content(content), .partEnded]
            }
            bytes += self.text("--frontier--")
            let cuts = generator.cuts(of: bytes.count, longest: 300)
            #expect(
                MultipartFeeding.events(bytes, boundary: "frontier", cuts: cuts) == expected + [.finished],
                "seed \(seed)")
        }
    }
}
