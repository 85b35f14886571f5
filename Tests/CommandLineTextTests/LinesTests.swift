import CommandLineText
import Testing

@Suite("Lines and untrusted text")
struct LinesTests {
    private func split(_ pieces: [String], limit: Int = 100) throws -> [String] {
        var splitter = LineSplitter(limit: limit)
        var lines: [[UInt8]] = []
        for piece in pieces { lines += try splitter.lines(Array(piece.utf8)) }
        if let rest = try splitter.finish() { lines.append(rest) }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("a\r\nb\r\n", ["a", "b"]), ("\n\n", ["", ""]),
        ("a\rb\n", ["a\rb"]), ("\r\n", [""]),
    ])
    func linesAreTheSameForEveryCut(_ text: String, _ lines: [String]) throws {
        #expect(try self.split([text]) == lines)
        #expect(try self.split(text.unicodeScalars.map { String($0) }) == lines)
    }

    @Test func aLineHasALimitWithoutItsEnd() throws {
        #expect(try self.split(["abc\r\n"], limit: 3) == ["abc"])
        #expect(try self.split(["abc", "\r", "\n"], limit: 3) == ["abc"])
        #expect(try self.split(["abc"], limit: 3) == ["abc"])
        for pieces in [["abcd\n"], ["ab", "cd\n"], ["abcd"], ["abcde"]] {
            #expect(throws: LineSplitter.Overflow.self) { try self.split(pieces, limit: 3) }
        }
    }

    @Test(arguments: [
        ("plain é 漢", "plain é 漢"), ("tab\tand\nline", "tab\tand\nline"),
        ("\u{1B}[2J\u{1B}]0;title\u{07}", "\\u{1B}[2J\\u{1B}]0;title\\u{7}"), ("a\rb", "a\\u{D}b"),
        ("\u{9B}31m", "\\u{9B}31m"), ("\u{202E}txt.exe", "\\u{202E}txt.exe"), ("\u{7F}", "\\u{7F}"),
        ("\r\n", "\\u{D}\n"),
    ])
    func textCannotSteerTheTerminal(_ text: String, _ shown: String) {
        #expect(TerminalText.sanitized(text) == shown)
    }

    @Test func singleLineOfALongTextIsTruncated() {
        #expect(TerminalText.singleLine("<html>\r\n  <body>\u{1B}[31m") == "<html> <body>\\u{1B}[31m")
        #expect(TerminalText.singleLine(String(repeating: "x", count: 300)).count == 201)
    }

    @Test(arguments: ["plain", "é漢🙂e\u{301}", "", "a🙂"])
    func charactersSurviveEveryCut(_ text: String) {
        for size in 1...4 {
            var streamed = UTF8StreamDecoder()
            let bytes = Array(text.utf8)
            let pieces = stride(from: 0, to: bytes.count, by: size).map {
                streamed.decode(Array(bytes[$0..<min($0 + size, bytes.count)]))
            }
            #expect(pieces.joined() == text)
        }
    }

    @Test func bytesThatAreNoTextAreNotWaitedFor() {
        var streamed = UTF8StreamDecoder()
        #expect(streamed.decode([0x80, 0x80, 0x80, 0x80, 0x80]).count == 5)
        #expect(streamed.decode([0xFF]) == "\u{FFFD}")
        #expect(streamed.decode([0xF0, 0x9F]).isEmpty)
        #expect(streamed.decode([0x41]) == "\u{FFFD}A")
    }
}
