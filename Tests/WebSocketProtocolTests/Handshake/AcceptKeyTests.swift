import ByteKernels
import Testing
import WebSocketProtocol

@Suite("Accept key, RFC 6455 §1.3, FIPS 180-4, RFC 4648 §10")
struct AcceptKeyTests {
    @Test func answersTheKeyOfTheRFC() {
        #expect(AcceptKey.value(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    /// The examples of FIPS 180 and of NIST's set of short and long messages.
    static let digests: [(message: String, repeated: Int, digest: String)] = [
        ("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
        ("a", 1_000_000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        (
            "0123456701234567012345670123456701234567012345670123456701234567", 10,
            "dea356a2cddd90c7a7ecedc5ebb563934f460452"
        ),
    ]

    @Test(arguments: digests)
    func digestsTheStandardMessages(message: String, repeated: Int, digest: String) {
        let bytes = Array(repeatElement(Array(message.utf8), count: repeated).joined())
        let hex = self.digest(bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(hex == digest)
    }

    @Test func padsEveryLengthAroundABlock() {
        // The digests differ, so none of the lengths is padded like another.
        let digests = (50...130).map { self.digest([UInt8](repeating: 0x61, count: $0)) }
        #expect(Set(digests).count == digests.count)
    }

    @Test func digestsTheSameInWhateverPieces() {
        let message = Array("0123456701234567012345670123456701234567012345670123456701234567".utf8)
        for cut in message.indices {
            var hash = SHA1()
            Array(message[..<cut]).withRawSpan { hash.update($0) }
            Array(message[cut...]).withRawSpan { hash.update($0) }
            let digest = hash.digest()
            #expect(digest.indices.map { digest[$0] } == self.digest(message))
        }
    }

    private func digest(_ message: [UInt8]) -> [UInt8] {
        var hash = SHA1()
        hash.update(message.span.bytes)
        let digest = hash.digest()
        return digest.indices.map { digest[$0] }
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func encodesTheExamplesOfTheRFC(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decodedByteCount(encoded) == plain.utf8.count)
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v=", "Zm-v", "Zm9v ", "Zm9\u{E9}"])
    func countsNothingInBrokenBase64(_ text: String) {
        #expect(Base64.decodedByteCount(text) == nil)
    }
}
