import Testing
import WebTokens

@Suite("Attacks on tokens, RFC 8725")
struct TokenAttackTests {
    private static let claims = #"{"sub":"42"}"#

    @Test func unsecuredTokenOfTheRFCIsRefused() throws {
        for (_, key, _) in ExampleTokens.withClaims {
            #expect(throws: TokenError.algorithmRefused("none")) {
                try TokenVerifier(jwk: key).verify(ExampleTokens.unsecured, now: 0)
            }
        }
    }

    @Test(arguments: ["none", "None", "NONE", "nOnE", "", "hs256", "HS256 ", "RS1", "HS1", "dir", "ES256K"])
    func otherAlgorithmsAreRefusedEvenWithAValidCode(_ name: String) throws {
        let token = try SampleTokens.make(header: #"{"alg":"\#(name)"}"#, claims: Self.claims)
        #expect(throws: TokenError.algorithmRefused(name)) {
            try TokenVerifier(keys: SampleTokens.keys()).verify(token, now: 0)
        }
    }

    /// The public key is known to anyone: used as a secret, it would make any token valid.
    @Test(arguments: [ForeignTokens.rsa, ForeignTokens.rsaPKCS1, ForeignTokens.p384, ForeignTokens.ed25519])
    func publicKeyIsNotUsedAsASecret(_ pem: String) throws {
        let keys = try TokenKeySet.read(file: Array(pem.utf8))
        for secret in [pem, pem + "\n"] {
            let token = try SampleTokens.make(claims: Self.claims, secret: Array(secret.utf8))
            #expect(throws: TokenError.algorithmRefused("HS256")) {
                try TokenVerifier(keys: keys).verify(token, now: 0)
            }
        }
        #expect(throws: TokenKeyProblem.self) { try TokenKeySet.read(secret: Array(pem.utf8)) }
    }

    /// A key that the token brings along, or refers to, is its maker's.
    @Test(arguments: [
        #"{"alg":"HS256","jwk":{"kty":"oct","k":"MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE"}}"#,
        #"{"alg":"HS256","jku":"https://attacker.example/keys","kid":"1"}"#,
        #"{"alg":"HS256","x5u":"https://attacker.example/chain"}"#,
        #"{"alg":"HS256","kid":"../../../../dev/null"}"#,
        #"{"alg":"HS256","kid":"' UNION SELECT '1"}"#,
    ])
    func keysOfTheHeaderAreNotUsed(_ header: String) throws {
        let ones = [UInt8](repeating: UInt8(ascii: "1"), count: 32)
        for secret in [ones, [0]] {
            let token = try SampleTokens.make(header: header, claims: Self.claims, secret: secret)
            #expect(throws: TokenError.badSignature) {
                try TokenVerifier(keys: SampleTokens.keys()).verify(token, now: 0)
            }
        }
    }

    @Test(arguments: [
        #"{"alg":"HS256","crit":["exp"],"exp":1}"#, #"{"alg":"HS256","crit":[]}"#, #"{"alg":"HS256","crit":null}"#,
        #"{"alg":"HS256","b64":false,"crit":["b64"]}"#, #"{"alg":"none","alg":"HS256"}"#,
        #"{"alg":"HS256","alg":"HS256"}"#, #"{"alg":"HS256","\u0061lg":"HS256"}"#, #"{"alg":"HS256","kid":1}"#,
        #"{"alg":["HS256"]}"#, #"{"alg":null}"#, #"{}"#, #"[]"#, #""HS256""#, #"{"alg":"HS256"} x"#, #"{"alg":"HS256""#,
        "",
        #"{"alg":"HS256","kid":"1","kid":"2"}"#,
    ])
    func invalidHeaderIsRefusedEvenWithAValidCode(_ header: String) throws {
        let token = try SampleTokens.make(header: header, claims: Self.claims)
        let error = #expect(throws: TokenError.self) {
            try TokenVerifier(keys: SampleTokens.keys()).verify(token, now: 0)
        }
        #expect(error?.label == "malformed")
    }

    @Test(arguments: [
        #"{"sub":"1","sub":"2"}"#, #"{"sub":"1","s\u0075b":"2"}"#, #"{"sub":42}"#,
        #"{"iss":["joe"]}"#,
        #"{"aud":42}"#, #"{"aud":["a",1]}"#, #"{"aud":{}}"#, #"{"exp":"1900000000"}"#, #"{"exp":1e400}"#,
        #"{"exp":-1e400}"#,
        #"{"exp":9007199254740993}"#, #"{"exp":99999999999999999999}"#, #"{"exp":true}"#,
        #"{"nbf":"0"}"#, #"{"iat":[]}"#, #"{"jti":7}"#, #"[]"#, #""text""#, #"42"#, "", #"{"sub":"1"}{}"#,
        #"{'sub':'1'}"#,
        #"{"exp":01}"#, #"{"exp":0x7FFFFFFF}"#, #"{"exp":NaN}"#, #"{"exp":Infinity}"#,
    ])
    func invalidClaimsAreRefusedEvenWithAValidCode(_ claims: String) throws {
        let token = try SampleTokens.make(claims: claims)
        let error = #expect(throws: TokenError.self) {
            try TokenVerifier(keys: SampleTokens.keys()).verify(token, now: 0)
        }
        #expect(error?.label == "malformed", "\(String(describing: error))")
    }

    @Test func deeplyNestedClaimsAreRefused() throws {
        func nested(_ depth: Int) -> String {
            #"{"info":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
        }
        let verifier = try TokenVerifier(keys: SampleTokens.keys())
        #expect(try verifier.verify(SampleTokens.make(claims: nested(31)), now: 0).info?.count == 62)
        for depth in [32, 2500] {
            let token = try SampleTokens.make(claims: nested(depth))
            let error = #expect(throws: TokenError.self) { try verifier.verify(token, now: 0) }
            #expect(error?.label == "malformed")
        }
    }

    @Test func bytesThatAreNoUTF8AreRefused() throws {
        let header = SampleTokens.base64URL(Array(#"{"alg":"HS256"}"#.utf8))
        let claims = SampleTokens.base64URL(Array(#"{"sub":""#.utf8) + [0xC3, 0x28] + Array(#""}"#.utf8))
        let code = SampleTokens.base64URL(try SampleTokens.code(of: "\(header).\(claims)", secret: SampleTokens.secret))
        #expect(throws: TokenError.malformed("the claims are not UTF-8")) {
            try TokenVerifier(keys: SampleTokens.keys()).verify("\(header).\(claims).\(code)", now: 0)
        }
    }

    @Test func onlyTheCompactFormWithoutAnythingAroundItIsAccepted() throws {
        let token = try SampleTokens.make(claims: Self.claims)
        let verifier = try TokenVerifier(keys: SampleTokens.keys())
        #expect(try verifier.verify(token, now: 0).subject == "42")
        let parts = token.split(separator: ".").map { String($0) }
        let changed = [
            " " + token, token + " ", token + "\n", token + "=", token + ".", "." + token, token + ".e30", "", ".",
            "..", "....",
            parts[0] + "=." + parts[1] + "." + parts[2], parts[0] + "." + parts[1], parts[0] + ".." + parts[2],
            #"{"payload":"\#(parts[1])","protected":"\#(parts[0])","signature":"\#(parts[2])"}"#,
            token.replacing("e", with: "+"), token.replacing("e", with: "é"),
        ]
        for text in changed {
            #expect(throws: TokenError.self, "\(text)") { try verifier.verify(text, now: 0) }
        }
    }

    /// The last character of a signature has unused bits: with them set, it would be another text of the same token.
    @Test func tokenHasOneTextOnly() throws {
        let token = try SampleTokens.make(claims: Self.claims)
        let verifier = try TokenVerifier(keys: SampleTokens.keys())
        var accepted: [Character] = []
        for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
            if (try? verifier.verify(token.dropLast() + String(character), now: 0)) != nil {
                accepted.append(character)
            }
        }
        #expect(accepted == [token.last])
    }

    @Test func longTokenIsRefusedBeforeItIsRead() throws {
        let verifier = try TokenVerifier(keys: SampleTokens.keys())
        let token = try SampleTokens.make(claims: #"{"info":"\#(String(repeating: "x", count: 6000))"}"#)
        #expect(token.utf8.count < 8192)
        #expect(try verifier.verify(token, now: 0).info != nil)
        let longer = try SampleTokens.make(claims: #"{"info":"\#(String(repeating: "x", count: 6200))"}"#)
        #expect(throws: TokenError.tooLong(limit: 8192)) { try verifier.verify(longer, now: 0) }
        #expect(TokenVerifier.Rules(byteLimit: 1 << 20).byteLimit == 16 * 1024)
    }

    @Test func textsForClientsContainNothingOfTheToken() {
        let errors: [TokenError] = [
            .tooLong(limit: 1), .malformed("\u{7}\""), .algorithmRefused("\"\\\n"), .unknownKey("\"\n"),
            .unknownKey(nil),
            .badSignature, .expired(at: 1), .notYetValid(before: 1), .wrongAudience, .wrongIssuer,
        ]
        for error in errors {
            #expect(error.summary.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
            #expect(!error.description.isEmpty)
        }
    }

    @Test func namesFromATokenAreShortenedForTheLog() throws {
        let name = "\\u000aevil\\u001b" + String(repeating: "x", count: 500)
        let set = try TokenKeySet.read(file: Array(ExampleTokens.keySet.utf8))
        let token = try SampleTokens.make(header: #"{"alg":"RS256","kid":"\#(name)"}"#, claims: Self.claims)
        let error = #expect(throws: TokenError.self) { try TokenVerifier(keys: set).verify(token, now: 0) }
        #expect(error == .unknownKey("?evil?" + String(repeating: "x", count: 58) + "…"))
    }
}
