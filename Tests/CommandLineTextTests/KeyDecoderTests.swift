import CommandLineText
import Testing

@Suite("Keys of a terminal")
struct KeyDecoderTests {
    struct Vector: CustomTestStringConvertible, Sendable {
        let bytes: String
        let keys: [Key]

        var testDescription: String { "\(Array(self.bytes.utf8))" }
    }

    // What xterm and the Linux console send (ECMA-48 control sequences; DEC's SS3 in application mode).
    static let vectors = [
        Vector(bytes: "a", keys: [.character("a")]), Vector(bytes: "é", keys: [.character("é")]),
        Vector(bytes: "漢🙂", keys: [.character("漢"), .character("🙂")]),
        Vector(bytes: "\r", keys: [.enter]), Vector(bytes: "\n", keys: [.enter]), Vector(bytes: "\t", keys: [.tab]),
        Vector(bytes: "\u{7F}", keys: [.backspace]), Vector(bytes: "\u{08}", keys: [.backspace]),
        Vector(bytes: "\u{01}", keys: [.control("a")]), Vector(bytes: "\u{03}", keys: [.control("c")]),
        Vector(bytes: "\u{1A}", keys: [.control("z")]), Vector(bytes: "\u{00}", keys: [.unknown]),
        Vector(bytes: "\u{1B}[A", keys: [.up]), Vector(bytes: "\u{1B}[B", keys: [.down]),
        Vector(bytes: "\u{1B}[C", keys: [.right]), Vector(bytes: "\u{1B}[D", keys: [.left]),
        Vector(bytes: "\u{1B}OA", keys: [.up]), Vector(bytes: "\u{1B}OH", keys: [.home]),
        Vector(bytes: "\u{1B}[H", keys: [.home]), Vector(bytes: "\u{1B}[F", keys: [.end]),
        Vector(bytes: "\u{1B}[1~", keys: [.home]), Vector(bytes: "\u{1B}[3~", keys: [.delete]),
        Vector(bytes: "\u{1B}[4~", keys: [.end]), Vector(bytes: "\u{1B}[5~", keys: [.unknown]),
        Vector(bytes: "\u{1B}[1;5C", keys: [.wordRight]), Vector(bytes: "\u{1B}[1;3D", keys: [.wordLeft]),
        Vector(bytes: "\u{1B}b", keys: [.wordLeft]), Vector(bytes: "\u{1B}f", keys: [.wordRight]),
        Vector(bytes: "\u{1B}\u{7F}", keys: [.control("w")]), Vector(bytes: "\u{1B}\r", keys: [.enter]),
        Vector(bytes: "\u{1B}\u{1B}[A", keys: [.up]), Vector(bytes: "\u{1B}[1;\rx", keys: [.enter, .character("x")]),
        Vector(bytes: "\u{85}", keys: [.unknown]),
    ]

    @Test(arguments: vectors)
    func keysAreDecodedWholeAndInPieces(_ vector: Vector) {
        var whole = KeyDecoder()
        #expect(whole.decode(Array((vector.bytes + "x").utf8)) == vector.keys + [.character("x")])
        var pieces = KeyDecoder()
        #expect(vector.bytes.utf8.flatMap { pieces.decode([$0]) } == vector.keys)
    }

    @Test(arguments: [[0xFF], [0xC3, 0x41], [0xE2, 0x82, 0x41], [0x80]] as [[UInt8]])
    func bytesThatAreNoTextBecomeTheReplacementCharacter(_ bytes: [UInt8]) {
        var decoder = KeyDecoder()
        #expect(decoder.decode(bytes).first == .character("\u{FFFD}"))
        #expect(decoder.decode(Array("ok".utf8)) == [.character("o"), .character("k")])
    }

    @Test func aSequenceWithoutEndIsDropped() {
        var decoder = KeyDecoder()
        _ = decoder.decode(Array("\u{1B}[".utf8) + Array(repeating: UInt8(ascii: "1"), count: 100))
        #expect(decoder.decode(Array("\rz".utf8)).suffix(2) == [.enter, .character("z")])
    }
}
