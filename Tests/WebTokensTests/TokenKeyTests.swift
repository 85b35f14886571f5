import Synchronization
import TLSEngine
import TestSupport
import Testing
import WebTokens
import WireText

@Suite("Keys of tokens, RFC 7517, RFC 7518 §6")
struct TokenKeyTests {
    private static func problem(_ text: String) -> String? {
        do {
            _ = try TokenKeySet.read(file: Array(text.utf8))
            return nil
        } catch {
            return error.description
        }
    }

    private static func algorithms(_ text: String) throws -> [String] {
        try TokenKeySet.read(file: Array(text.utf8)).keys.map {
            $0.algorithms.map(\.rawValue).sorted().joined(separator: " ")
        }
    }

    @Test func keySetOfTheRFCHasOneKeyForSignatures() throws {
        let set = try TokenKeySet.read(file: Array(ExampleTokens.keySet.utf8))
        #expect(set.keys.map(\.identifier) == ["2011-04-29"])
        #expect(set.keys.map(\.algorithms) == [[.rs256]])
        #expect(set.ignored == ["key “1”: is for another use than signatures"])
    }

    @Test func keyDecidesItsAlgorithms() throws {
        #expect(try Self.algorithms(ForeignTokens.rsa) == ["PS256 PS384 PS512 RS256 RS384 RS512"])
        #expect(try Self.algorithms(ForeignTokens.rsaPKCS1) == ["PS256 PS384 PS512 RS256 RS384 RS512"])
        #expect(try Self.algorithms(ForeignTokens.p384) == ["ES384"])
        #expect(try Self.algorithms(ForeignTokens.ed25519) == ["EdDSA"])
        let several = "comment\n" + ForeignTokens.p384 + "\r\n" + ForeignTokens.ed25519
        #expect(try Self.algorithms(several) == ["ES384", "EdDSA"])
    }

    @Test func keyOfACertificateIsUsed() throws {
        let certificate = try TestCertificate(TestCertificateProfile("issuer.test"))
        #expect(try Self.algorithms(certificate.certificatePEM) == ["ES256"])
    }

    @Test func weakKeysAreRefused() throws {
        #expect(Self.problem(ForeignTokens.rsaOf1024Bits)?.contains("1024 bits is too weak") == true)
        for (count, text) in [
            (31, "a secret of 31 bytes is too short: HS256 needs at least 32"), (0, "a secret of 0 bytes"),
        ] {
            let error = #expect(throws: TokenKeyProblem.self) {
                try TokenKeySet.read(secret: [UInt8](repeating: 0x61, count: count) + [0x0A])
            }
            #expect(error?.description.hasPrefix(text) == true)
        }
        let short = SampleTokens.base64URL([UInt8](repeating: 1, count: 40))
        #expect(
            Self.problem(#"{"kty":"oct","k":"\#(short)","alg":"HS512"}"#)?.contains("HS512 needs at least 64") == true)
    }

    @Test func secretIsUsedWithTheHashesThatItIsLongEnoughFor() throws {
        let lengths = [32: "HS256", 47: "HS256", 48: "HS256 HS384", 64: "HS256 HS384 HS512"]
        for (count, algorithms) in lengths {
            let set = try TokenKeySet.read(secret: [UInt8](repeating: 0x61, count: count) + [0x0D, 0x0A])
            #expect(set.keys.map { $0.algorithms.map(\.rawValue).sorted().joined(separator: " ") } == [algorithms])
        }
    }

    @Test func shortSecretIsUsedWhereItIsAllowed() throws {
        let set = try TokenKeySet.read(secret: Array("secret".utf8), allowsShort: true)
        #expect(set.keys.map(\.algorithms) == [[.hs256, .hs384, .hs512]])
        #expect(throws: TokenKeyProblem.self) { try TokenKeySet.read(secret: [0x0A], allowsShort: true) }
    }

    @Test func privateKeyInPEMIsRefused() {
        #expect(Self.problem(ForeignTokens.privateKey)?.contains("openssl pkey -pubout") == true)
    }

    @Test(arguments: [
        "", "text", "{}", "[]", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[1]}"#, #"{"keys":[],"keys":[]}"#,
        #"{"keys":[{"kty":"unknown"}]}"#, #"{"kty":"RSA"}"#, #"{"kty":"RSA","n":"AQ","e":"AQAB"}"#, #"{"kty":"oct"}"#,
        #"{"kty":"RSA","n":"!","e":"AQAB"}"#, #"{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}"#,
        #"{"kty":"OKP","crv":"Ed25519","x":"AQ"}"#, #"{"kty":"OKP","crv":"X25519","x":"AQ"}"#,
        // The point of RFC 7515 §A.3 with another y is beside the curve.
        #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}"#,
        "-----BEGIN PUBLIC KEY-----\n", "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "-----BEGIN X-----\nAAAA\n-----END X-----",
    ])
    func documentWithoutAKeyThatCanBeUsedIsRefused(_ text: String) {
        #expect(Self.problem(text)?.isEmpty == false)
    }

    /// Every number to the power of 1 is itself: a signature by such a key is one that anyone can write down.
    @Test func rsaKeyWithTheExponent1IsRefused() {
        #expect(Self.problem(ExampleTokens.rsaKey) == nil)
        #expect(Self.problem(ExampleTokens.rsaKey.replacing("AQAB", with: "AQ"))?.contains("invalid numbers") == true)
    }

    /// The products of such a point and any number are few: a signature by such a key is found by trying.
    @Test(arguments: [
        "00", "01", "ec" + String(repeating: "ff", count: 30) + "7f", "ed" + String(repeating: "ff", count: 30) + "7f",
        "ee" + String(repeating: "ff", count: 30) + "7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ])
    func ed25519KeyOfSmallOrderIsRefused(_ hex: String) throws {
        var key = try #require(Hexadecimal.bytes(hex))
        key += [UInt8](repeating: 0, count: 32 - key.count)
        for sign: UInt8 in [0, 0x80] {
            key[31] = key[31] & 0x7F | sign
            let text = #"{"kty":"OKP","crv":"Ed25519","x":"\#(SampleTokens.base64URL(key))"}"#
            #expect(Self.problem(text)?.contains("invalid numbers") == true, "\(hex) \(sign)")
        }
    }

    @Test func keyForAnAlgorithmOfAnotherKindIsRefused() {
        let key = ExampleTokens.withClaims[2].key.dropLast()
        #expect(Self.problem(key + #","alg":"ES256"}"#) == nil)
        #expect(Self.problem(key + #","alg":"HS256"}"#)?.contains("a P-256 key cannot be used with HS256") == true)
    }

    @Test func keysForOtherPurposesAreIgnored() throws {
        let key = ExampleTokens.withClaims[2].key.dropLast()
        for member in [#""use":"enc""#, #""key_ops":["sign"]"#, #""alg":"ECDH-ES""#, #""alg":"none""#] {
            #expect(
                Self.problem(key + "," + member + "}")?.contains("holds no key that can be used") == true, "\(member)")
        }
        for member in [#""use":"sig""#, #""key_ops":["verify"]"#, #""x5c":["AAAA"],"x-other":{"a":[1]}"#] {
            #expect(Self.problem(key + "," + member + "}") == nil)
        }
        #expect(Self.problem(key + #","kid":"1","kid":"2"}"#)?.contains("member twice") == true)
    }

    /// What a server publishes is known to anyone, and one bad key must not stop the others.
    @Test func secretsAndBadKeysOfAPublishedSetAreLeftOut() throws {
        let secret = #"{"kty":"oct","kid":"s","k":"\#(SampleTokens.base64URL(SampleTokens.secret))"}"#
        let weak =
            #"{"kty":"RSA","kid":"w","n":"\#(SampleTokens.base64URL([UInt8](repeating: 0xFF, count: 128)))","e":"AQAB"}"#
        let text = #"{"keys":[\#(secret),\#(weak),\#(ExampleTokens.rsaKey)]}"#
        let set = try TokenKeySet.read(published: Array(text.utf8))
        #expect(set.keys.count == 1)
        #expect(set.ignored == ["key “s”: is a secret, which is accepted from a file only"])
        #expect(set.refused.count == 1)
        #expect(throws: TokenKeyProblem.self) { try TokenKeySet.read(file: Array(text.utf8)) }
    }

    /// RFC 7517 §5: a set may have keys that another reader understands.
    @Test func keysOfOtherFormsDoNotStopTheOthers() throws {
        let other = ExampleTokens.withClaims[2].key.dropLast()
        for key in ["\(other),\"key_ops\":[5]}", "5", "[]", "null", #"{"kty":5}"#] {
            let set = try TokenKeySet.read(file: Array(#"{"keys":[\#(key),\#(ExampleTokens.rsaKey)]}"#.utf8))
            #expect(set.keys.map(\.algorithms).count == 1, "\(key)")
            #expect(set.ignored.count == 1 && set.ignored[0].hasPrefix("key 1: is "), "\(set.ignored)")
        }
        #expect(Self.problem("\(other),\"key_ops\":[5,\"verify\"]}") == nil)
    }

    @Test func numberAndSizeOfKeysAreLimited() {
        let keys = [String](repeating: ExampleTokens.rsaKey, count: 65).joined(separator: ",")
        #expect(Self.problem(#"{"keys":[\#(keys)]}"#)?.contains("65 keys, more than 64") == true)
        #expect(Self.problem(String(repeating: " ", count: 256 * 1024 + 1))?.contains("longer than 262144") == true)
    }

    // MARK: Selection

    private static func key(_ name: String?, _ secret: String) throws -> TokenKey {
        try TokenKey(secret: Array(secret.utf8), identifier: name)
    }

    private static let first = "first secret, of more than 32 bytes"
    private static let second = "second secret, of more than 32 bytes"

    private static func token(_ identifier: String?, _ secret: String) throws -> String {
        let header = identifier.map { #"{"alg":"HS256","kid":"\#($0)"}"# } ?? #"{"alg":"HS256"}"#
        return try SampleTokens.make(header: header, claims: "{}", secret: Array(secret.utf8))
    }

    @Test func identifierSelectsTheKey() throws {
        let verifier = TokenVerifier(
            keys: TokenKeySet([try Self.key("1", Self.first), try Self.key("2", Self.second)]))
        _ = try verifier.verify(Self.token("1", Self.first), now: 0)
        _ = try verifier.verify(Self.token("2", Self.second), now: 0)
        _ = try verifier.verify(Self.token(nil, Self.second), now: 0)
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.token("1", Self.second), now: 0) }
        #expect(throws: TokenError.unknownKey("3")) { try verifier.verify(Self.token("3", Self.first), now: 0) }
    }

    @Test func keyWithoutANameIsForAllNames() throws {
        let verifier = TokenVerifier(
            keys: TokenKeySet([try Self.key(nil, Self.first), try Self.key("2", Self.second)]))
        _ = try verifier.verify(Self.token("any", Self.first), now: 0)
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.token("2", Self.first), now: 0) }
    }

    @Test func unknownKeysAreReported() throws {
        let verifier = TokenVerifier(keys: TokenKeySet([try Self.key("1", Self.first)]))
        let count = Atomic(0)
        verifier.observeUnknownKeys { count.add(1, ordering: .relaxed) }
        _ = try verifier.verify(Self.token("1", Self.first), now: 0)
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.token("1", Self.second), now: 0) }
        #expect(count.load(ordering: .relaxed) == 0)
        #expect(throws: TokenError.self) { try verifier.verify(Self.token("2", Self.second), now: 0) }
        #expect(count.load(ordering: .relaxed) == 1)
    }

    @Test func unknownKeyIsReportedWhereKeysWithoutANameAreTried() throws {
        let verifier = TokenVerifier(keys: TokenKeySet([try Self.key(nil, Self.first)]))
        let count = Atomic(0)
        verifier.observeUnknownKeys { count.add(1, ordering: .relaxed) }
        _ = try verifier.verify(Self.token("1", Self.first), now: 0)
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.token(nil, Self.second), now: 0) }
        #expect(count.load(ordering: .relaxed) == 0)
        #expect(throws: TokenError.badSignature) { try verifier.verify(Self.token("2", Self.second), now: 0) }
        #expect(count.load(ordering: .relaxed) == 1)
    }

    @Test func replacedKeysAreNoLongerAccepted() throws {
        let verifier = TokenVerifier(keys: TokenKeySet([try Self.key("1", Self.first)]))
        let token = try Self.token("1", Self.first)
        _ = try verifier.verify(token, now: 0)
        verifier.replaceKeys(TokenKeySet([try Self.key("2", Self.second)]))
        #expect(throws: TokenError.unknownKey("1")) { try verifier.verify(token, now: 0) }
        verifier.replaceKeys(TokenKeySet([]))
        for name in [nil, "1"] {
            #expect(throws: TokenError.unknownKey(nil)) { try verifier.verify(Self.token(name, Self.first), now: 0) }
        }
    }
}
