import Foundation
import TestSupport
import Testing
import WireText

@Suite("Message digests")
struct MessageDigestTests {
    private func digest(_ text: String, _ algorithm: MessageDigest.Algorithm) -> String {
        Hexadecimal.text(MessageDigest.of(Array(text.utf8), by: algorithm))
    }

    /// Handlers of `atexit` run in reverse order: this one after one that libcrypto would add with its first use. Other
    /// threads of a process that exits are in the same situation.
    @Test func digestIsMadeWhileTheProcessExits() async {
        await #expect(processExitsWith: .exitCode(7)) {
            atexit {
                if MessageDigest.of([], by: .sha256).prefix(4) == [0xe3, 0xb0, 0xc4, 0x42] { _exit(7) }
            }
            _ = MessageDigest.of([], by: .md5)
            exit(0)
        }
    }

    /// RFC 1321 §A.5.
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"), ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
    ])
    func md5HasTheValuesOfTheRFC(_ text: String, _ digest: String) {
        #expect(self.digest(text, .md5) == digest)
    }

    /// FIPS 180-4 and NIST's examples of it.
    @Test(arguments: [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
        (String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ])
    func sha1HasTheValuesOfTheStandard(_ text: String, _ digest: String) {
        #expect(self.digest(text, .sha1) == digest)
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ])
    func sha256HasTheValuesOfTheStandard(_ text: String, _ digest: String) {
        #expect(self.digest(text, .sha256) == digest)
    }

    @Test(arguments: [
        ("abc", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "3928e184fb8690f840da3988121d31be65cb9d3ef83ee6146feac861e19b563a"
        ),
    ])
    func sha512Of256BitsHasTheValuesOfTheStandard(_ text: String, _ digest: String) {
        #expect(self.digest(text, .sha512Truncated) == digest)
    }

    @Test(arguments: [MessageDigest.Algorithm.md5, .sha1, .sha256, .sha512Truncated])
    func splitMakesNoDifference(_ algorithm: MessageDigest.Algorithm) {
        for seed in 0..<40 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = generator.bytes(Int.random(in: 0...300, using: &generator))
            var pieces = MessageDigest(algorithm)
            for cut in generator.cuts(of: bytes.count, longest: 70) { pieces.update(Array(bytes[cut]).span.bytes) }
            #expect(pieces.finalize() == MessageDigest.of(bytes, by: algorithm), "seed \(seed)")
        }
    }

    @Test(arguments: [MessageDigest.Algorithm.md5, .sha1, .sha256, .sha512Truncated])
    func copyIsIndependentOfItsOriginal(_ algorithm: MessageDigest.Algorithm) {
        var original = MessageDigest(algorithm)
        original.update("ab".utf8.span.bytes)
        let copy = original
        original.update("c".utf8.span.bytes)
        #expect(copy.finalize() == MessageDigest.of(Array("ab".utf8), by: algorithm))
        #expect(original.finalize() == MessageDigest.of(Array("abc".utf8), by: algorithm))
        // More may follow after the digest so far.
        original.update("d".utf8.span.bytes)
        #expect(original.finalize() == MessageDigest.of(Array("abcd".utf8), by: algorithm))
    }
}
