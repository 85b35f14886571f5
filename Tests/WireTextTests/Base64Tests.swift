import Testing
import WireText

@Suite("Base64, RFC 4648")
struct Base64Tests {
    /// §10.
    static let examples = [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test(arguments: examples)
    func examplesOfTheRFCAreEncodedAndDecoded(plain: String, encoded: String) {
        let bytes = Array(plain.utf8)
        #expect(Base64.encoded(bytes) == encoded)
        #expect(Base64.decoded(encoded.utf8) == bytes)
        #expect(Base64.decodedForgivingly(Array(encoded.utf8)) == bytes)
        #expect(Base64.decodedByteCount(encoded) == bytes.count)
    }

    @Test(arguments: examples)
    func textInPiecesIsDecodedAsAWhole(plain: String, encoded: String) {
        for cut in 0...encoded.utf8.count {
            var decoder = Base64Decoder()
            var bytes: [UInt8] = []
            for piece in [encoded.utf8.prefix(cut), encoded.utf8.dropFirst(cut)] {
                let isValid = decoder.decode(Array(piece).span.bytes, into: &bytes)
                #expect(isValid)
            }
            let isComplete = decoder.finish()
            #expect(isComplete)
            #expect(bytes == Array(plain.utf8))
        }
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v=", "Zm-v", "Zm9v ", "Zm9\u{E9}"])
    func invalidTextIsRejected(_ text: String) {
        #expect(Base64.decoded(text.utf8) == nil)
        #expect(Base64.decodedByteCount(text) == nil)
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("\u{3FB}\u{3FF}", "z7vPvw"), ("~\u{7F}?", "fn8_"),
    ])
    func urlSafeTextIsDecodedWithoutPadding(plain: String, encoded: String) {
        #expect(Base64.decodedURLSafe(encoded.utf8) == Array(plain.utf8))
    }

    /// §5: `-` and `_` take the places of `+` and `/`.
    @Test(arguments: ["Z", "Zg=", "Zg==", "Zm9v=", "Zm+v", "Zm/v", "Zh", "Zm9", "Zm9v ", "Zm9\u{E9}", "Zm9vZ"])
    func invalidURLSafeTextIsRejected(_ text: String) {
        #expect(Base64.decodedURLSafe(text.utf8) == nil)
    }

    @Test func urlSafeAlphabetReplacesTwoCharacters() {
        #expect(Base64.decodedURLSafe("-_-_".utf8) == Base64.decoded("+/+/".utf8))
    }

    /// §3.5: `Zh==` and `Zm9=` have bits beyond the last byte.
    @Test(arguments: ["Zh==", "Zm9="])
    func unusedBitsThatAreSetAreRejected(_ text: String) {
        #expect(Base64.decoded(text.utf8) == nil)
        #expect(Base64.decodedForgivingly(Array(text.utf8)) != nil)
    }

    @Test(arguments: [("Zm 9v\r\n", "foo"), ("Zg", "f"), ("Zm8", "fo")])
    func forgivingDecodingIgnoresBlanksAndMissingPadding(_ text: String, _ plain: String) {
        #expect(Base64.decodedForgivingly(Array(text.utf8)) == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zm9v=", "Zm-v"])
    func forgivingDecodingRejectsInvalidText(_ text: String) {
        #expect(Base64.decodedForgivingly(Array(text.utf8)) == nil)
    }
}
