import Foundation
import Testing
import URLLoading

@Suite("Text sequences over bytes")
struct TextSequenceTests {
    /// A text and its lines.
    private static let texts: [(text: [UInt8], lines: [String])] = [
        ([], []), (Array("\n".utf8), []), (Array("a".utf8), ["a"]), (Array("a\n".utf8), ["a"]),
        (Array("a\r\nb\rc\n\n\r\n\rd".utf8), ["a", "b", "c", "d"]),
        (Array("a\u{0B}b\u{0C}c\u{85}d\u{2028}e\u{2029}f".utf8), ["a", "b", "c", "d", "e", "f"]),
        (
            Array("ä\u{84}é\u{2027}€\u{202A}\u{9F}\n\u{A9}\u{20AC}".utf8),
            ["ä\u{84}é\u{2027}€\u{202A}\u{9F}", "\u{A9}\u{20AC}"]
        ),
        ([0x61, 0xC2], ["a\u{FFFD}"]), ([0x61, 0xE2, 0x80], ["a\u{FFFD}"]), ([0xE2, 0x0A, 0x62], ["\u{FFFD}", "b"]),
        ([0xE2, 0xC2, 0x85, 0x61], ["\u{FFFD}", "a"]), ([0xC2, 0xC2, 0x85], ["\u{FFFD}"]),
        ([0xE2, 0xE2, 0x80, 0xA8, 0x62], ["\u{FFFD}", "b"]), ([0xE2, 0x80, 0x80, 0xA8], ["\u{2000}\u{FFFD}"]),
        ([0xE2, 0x80, 0x85, 0x0A], ["\u{2005}"]), ([0xE2, 0x85, 0xA8], ["\u{2168}"]),
        (
            Array("\(String(repeating: "x", count: 100))\n\(String(repeating: "y", count: 17))\r\nz".utf8),
            [String(repeating: "x", count: 100), String(repeating: "y", count: 17), "z"]
        ),
    ]

    private func channel(_ bytes: [UInt8], size: Int) -> ChannelBytes {
        let channel = ByteChannel(wanted: {}, abandoned: {})
        let sequence = ChannelBytes(channel)
        Task {
            for start in stride(from: 0, to: bytes.count, by: size) {
                channel.offer(Data(bytes[start..<min(bytes.count, start + size)]))
                await Task.yield()
            }
            channel.finish(nil)
        }
        return sequence
    }

    @Test func textIsCutIntoLines() async throws {
        for (text, expected) in Self.texts {
            var lines: [String] = []
            for await line in PlainBytes(bytes: text).lines { lines.append(line) }
            #expect(lines == expected, "\(text)")
            for size in [1, 2, 3, 1000] {
                lines = []
                for try await line in self.channel(text, size: size).lines { lines.append(line) }
                #expect(lines == expected, "\(text) by \(size)")
            }
        }
    }

    @Test func linesAreTheSameHoweverTheTextComes() async throws {
        var text: [UInt8] = []
        var generator = SystemRandomNumberGenerator()
        let words: [[UInt8]] = [
            [0x0A], [0x0D], [0x0D, 0x0A], [0xC2, 0x85], [0xE2, 0x80, 0xA8], [0xE2, 0x80], [0xC2],
        ]
        for _ in 0..<3000 {
            text += (words.randomElement(using: &generator) ?? [])
            text += [UInt8](repeating: .random(in: 0x20...0xFF), count: .random(in: 0...40))
        }
        var plain: [String] = []
        for await line in PlainBytes(bytes: text).lines { plain.append(line) }
        for size in [1 + Int.random(in: 0..<50), 5000] {
            var lines: [String] = []
            for try await line in self.channel(text, size: size).lines { lines.append(line) }
            #expect(lines == plain)
        }
    }

    @Test func scalarsAreThoseOfTheStandardLibrary() async {
        var texts: [[UInt8]] = [Array("aäé€😀\u{10FFFF}\u{FFFF}".utf8), [0xF4, 0x90, 0x80, 0x80], [0xED, 0xA0, 0x80]]
        texts += [
            [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF0, 0x9F, 0x98], [0xF0, 0x9F, 0x41], [0xE2, 0x82, 0xE2, 0x82, 0xAC],
        ]
        for _ in 0..<300 {
            texts.append(
                (0..<12).map { _ in
                    [0x41, 0x80, 0xBF, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xA0, 0x9F].randomElement() ?? 0
                })
        }
        for text in texts {
            var scalars = String.UnicodeScalarView()
            for await scalar in PlainBytes(bytes: text).unicodeScalars { scalars.append(scalar) }
            #expect(Array(scalars) == Array(String(decoding: text, as: UTF8.self).unicodeScalars), "\(text)")
        }
    }

    @Test(arguments: ["", "abc", "a\r\nb", "e\u{301}\u{302}x", "👨‍👩‍👧‍👦🇩🇪🇫🇷!", "각가\u{11A8}", "\u{301}a"])
    func charactersAreThoseOfTheStandardLibrary(_ text: String) async throws {
        var characters: [Character] = []
        for await character in PlainBytes(bytes: Array(text.utf8)).characters { characters.append(character) }
        #expect(characters == Array(text))
        characters = []
        for try await character in self.channel(Array(text.utf8), size: 2).characters { characters.append(character) }
        #expect(characters == Array(text))
    }

    @Test func textSequenceRethrowsTheErrorOfItsBytes() async {
        let channel = ByteChannel(wanted: {}, abandoned: {})
        channel.offer(Data("a\nb".utf8))
        channel.finish(URLError(.timedOut))
        var lines: [String] = []
        await #expect(throws: URLError(.timedOut)) {
            for try await line in ChannelBytes(channel).lines { lines.append(line) }
        }
        #expect(lines == ["a"])
    }
}
