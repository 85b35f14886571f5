import Testing
import WebTokens
import WireText

@Suite("Signatures of tokens, RFC 7515, RFC 7518, RFC 8037")
struct TokenSignatureTests {
    @Test(arguments: ExampleTokens.withClaims.indices)
    func examplesOfTheRFCAreAccepted(_ index: Int) throws {
        let (algorithm, key, text) = ExampleTokens.withClaims[index]
        let token = try TokenVerifier(jwk: key).verify(text, now: 1_300_819_379)
        #expect(token.algorithm.rawValue == algorithm)
        #expect(token.issuer == "joe")
        #expect(token.expiry == 1_300_819_380)
        #expect(token.rawClaim("http://example.com/is_root") == Array("true".utf8))
    }

    /// Claims are read only after the signature was verified, so the payload's form is what remains wrong.
    @Test(arguments: ExampleTokens.withText.indices)
    func signaturesOfTextsThatAreNoClaimsAreVerified(_ index: Int) throws {
        let (algorithm, key, text) = ExampleTokens.withText[index]
        let error = #expect(throws: TokenError.self) { try TokenVerifier(jwk: key).verify(text, now: 0) }
        #expect(error?.label == "malformed", "\(algorithm): \(String(describing: error))")
        #expect(throws: TokenError.badSignature) { try TokenVerifier(jwk: key).verify(Self.damaged(text), now: 0) }
    }

    /// Made by OpenSSL with the key of RFC 8037 §A.1.
    @Test(arguments: ["", #","alg":"Ed25519""#, #","alg":"EdDSA""#])
    func algorithmMayBeCalledEd25519(_ declared: String) throws {
        let key = #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"\#(declared)}"#
        let token =
            "eyJhbGciOiJFZDI1NTE5In0.eyJzdWIiOiI0MiIsImV4cCI6MTkwMDAwMDAwMH0.jREQwMiLUOQKIuzEtw2pl2imQlllUQ2j"
            + "Bjv0nJW8zuXE2rtR2xUS8uFHZfn4f2Ps38vtI0YJa0qLMDDW99aoDg"
        let found = try TokenVerifier(jwk: key).verify(token, now: 1_800_000_000)
        #expect(found.algorithm == .edDSA && found.subject == "42")
    }

    @Test(arguments: ForeignTokens.all.indices)
    func tokensOfPyJWTAreAccepted(_ index: Int) throws {
        let (algorithm, key, text) = ForeignTokens.all[index]
        let isSecret = algorithm.hasPrefix("HS")
        let keys = try isSecret ? TokenKeySet.read(secret: Array(key.utf8)) : .read(file: Array(key.utf8))
        let verifier = TokenVerifier(keys: keys)
        let token = try verifier.verify(text, now: 1_899_999_999)
        #expect(token.algorithm.rawValue == algorithm)
        #expect(token.subject == "42")
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.damaged(text), now: 0) }
    }

    /// Every byte counts: a changed header, claim or signature is refused, whichever way.
    @Test(arguments: ExampleTokens.withClaims.indices)
    func tokenWithAnyChangedCharacterIsRefused(_ index: Int) throws {
        let (_, key, text) = ExampleTokens.withClaims[index]
        let verifier = try TokenVerifier(jwk: key)
        let bytes = Array(text.utf8)
        for position in bytes.indices {
            var changed = bytes
            changed[position] = changed[position] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(throws: TokenError.self, "position \(position)") { try verifier.verify(changed, now: 0) }
        }
        for count in 0..<bytes.count {
            let prefix = Array(bytes.prefix(count))
            #expect(throws: TokenError.self, "\(count) bytes") { try verifier.verify(prefix, now: 0) }
        }
    }

    /// The numbers r and s as zeros satisfied a verifier that did not check their range (CVE-2022-21449).
    @Test func ecdsaSignatureOfZerosIsRefused() throws {
        let (_, key, text) = ExampleTokens.withClaims[2]
        let signed = text.prefix(upTo: text.lastIndex(of: ".") ?? text.endIndex)
        let verifier = try TokenVerifier(jwk: key)
        for count in [0, 63, 64, 65, 128] {
            let signature = SampleTokens.base64URL([UInt8](repeating: 0, count: count))
            #expect(throws: TokenError.badSignature) { try verifier.verify("\(signed).\(signature)", now: 0) }
        }
    }

    /// A token's ECDSA signature is not the DER that TLS uses.
    @Test func ecdsaSignatureInDERIsRefused() throws {
        let (_, key, text) = ExampleTokens.withClaims[2]
        let parts = text.split(separator: ".")
        // r and s of the example, as X.690 writes them: s has a high bit and so a leading zero.
        let numbers = try #require(Base64.decodedURLSafe(parts[2].utf8))
        let der = [0x30, 0x45, 0x02, 0x20] + numbers.prefix(32) + [0x02, 0x21, 0x00] + numbers.suffix(32)
        let changed = "\(parts[0]).\(parts[1]).\(SampleTokens.base64URL(der))"
        #expect(throws: TokenError.badSignature) { try TokenVerifier(jwk: key).verify(changed, now: 0) }
    }

    private static func damaged(_ token: String) -> String {
        let signed = token.lastIndex(of: ".") ?? token.endIndex
        let start = token.index(after: signed)
        let first = token[start] == "A" ? "B" : "A"
        return String(token[..<start]) + first + String(token[token.index(after: start)...])
    }
}
