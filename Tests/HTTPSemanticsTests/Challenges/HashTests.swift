import HTTPSemantics
import TestSupport
import Testing

@Suite("Hashes of Digest")
struct HashTests {
    private func hash(_ text: String, _ hash: DigestAlgorithm.Hash) -> String {
        var hasher = DigestHasher(hash)
        hasher.update(Array(text.utf8))
        return hasher.finalize()
    }

    /// RFC 1321 §A.5
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"), ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        (
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "d174ab98d277d9f5a5611c2c9f419d9f"
        ),
        (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
    ])
    func md5GivesTheVectorsOfTheRFC(_ text: String, _ digest: String) {
        #expect(self.hash(text, .md5) == digest)
    }

    /// FIPS 180-4, and the NIST's examples of it.
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
    func sha256GivesTheVectorsOfTheNIST(_ text: String, _ digest: String) {
        #expect(self.hash(text, .sha256) == digest)
    }

    @Test(arguments: [DigestAlgorithm.Hash.md5, .sha256])
    func theSplitMakesNoDifference(_ hash: DigestAlgorithm.Hash) {
        for seed in 0..<40 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = generator.bytes(Int.random(in: 0...300, using: &generator))
            var whole = DigestHasher(hash)
            whole.update(bytes)
            var pieces = DigestHasher(hash)
            for cut in generator.cuts(of: bytes.count, longest: 70) { pieces.update(Array(bytes[cut])) }
            #expect(pieces.finalize() == whole.finalize(), "seed \(seed)")
        }
    }
}
