import TestSupport
import Testing
import WebSocketProtocol

@Suite("Extension lists, RFC 6455 §9.1")
struct ExtensionGrammarTests {
    static let lists: [(values: [String], extensions: [WebSocketExtension])] = [
        ([], []), (["foo"], [WebSocketExtension("foo")]),
        // The examples of §9.1.
        (
            ["foo", "bar; baz=2"],
            [WebSocketExtension("foo"), WebSocketExtension("bar", [ExtensionParameter("baz", "2")])]
        ),
        (
            ["foo, bar; baz=2"],
            [WebSocketExtension("foo"), WebSocketExtension("bar", [ExtensionParameter("baz", "2")])]
        ),
        (
            ["mux; max-channels=4; flow-control, deflate-stream"],
            [
                WebSocketExtension(
                    "mux", [ExtensionParameter("max-channels", "4"), ExtensionParameter("flow-control")]),
                WebSocketExtension("deflate-stream"),
            ]
        ),
        (["private-extension"], [WebSocketExtension("private-extension")]),
        (
            [" a ;\tb = \"c\" ; d ,, e "],
            [
                WebSocketExtension("a", [ExtensionParameter("b", "c"), ExtensionParameter("d")]),
                WebSocketExtension("e"),
            ]
        ),
        (["a; b=\"\\c\\d\""], [WebSocketExtension("a", [ExtensionParameter("b", "cd")])]),
        (["a;b;b=1"], [WebSocketExtension("a", [ExtensionParameter("b"), ExtensionParameter("b", "1")])]),
    ]

    @Test(arguments: lists)
    func extensionListIsRead(values: [String], extensions: [WebSocketExtension]) throws {
        #expect(try ExtensionGrammar.parse(values) == extensions)
    }

    @Test(arguments: lists)
    func writtenExtensionsReadBackEqual(values: [String], extensions: [WebSocketExtension]) throws {
        #expect(try ExtensionGrammar.parse(extensions.map(\.rendered)) == extensions)
    }

    @Test(arguments: [
        ("", 0), (" ", 1), (",", 1), ("a b", 2), ("a;", 2), ("a;;b", 2), ("a; b=", 5), ("a; =b", 3), ("a; b=\"", 6),
        ("a; b=\"c", 7), ("a; b=\"c d\"", 7), ("a; b=\"c,d\"", 7), ("a; b=\"\"", 7), ("a=b", 1), ("a; b=c d", 7),
        ("(a)", 0), ("a; b=\"c\"d", 8), ("a; b=\"\\", 7), ("é", 0),
    ])
    func grammarErrorHasItsOffset(value: String, offset: Int) {
        #expect(throws: ExtensionSyntaxViolation(value: value, offset: offset)) {
            try ExtensionGrammar.parse(["good", value])
        }
    }

    @Test(arguments: UInt64(0)..<300)
    func anyTextIsParsedOrRejected(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pieces = [
            "a", "permessage-deflate", ";", ",", "=", "\"", "\\", " ", "\t", "8", "é", "server_max_window_bits",
        ]
        let text = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
            pieces.randomElement(using: &generator) ?? ""
        }
        // A parsed list can be written, and parses again with the same meaning.
        guard let read = try? ExtensionGrammar.parse([text.joined()]) else { return }
        #expect(try ExtensionGrammar.parse(read.map(\.rendered)) == read, "seed \(seed)")
        #expect(DeflatePolicy().choose(among: read) == nil || text.contains("permessage-deflate"), "seed \(seed)")
    }
}
