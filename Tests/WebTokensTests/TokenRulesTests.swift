import Testing
import WebTokens

@Suite("Rules for claims, RFC 7519 §4.1")
struct TokenRulesTests {
    private static func verify(
        _ claims: String, _ rules: TokenVerifier.Rules = TokenVerifier.Rules(), now: Int64 = 1000
    ) throws -> Token {
        try TokenVerifier(rules, keys: SampleTokens.keys()).verify(SampleTokens.make(claims: claims), now: now)
    }

    @Test(arguments: [(1001, 0), (1000.5, 0), (1e3 + 0.001, 0), (991, 10), (9_007_199_254_740_991, 4_294_967_296)])
    func tokenIsAcceptedBeforeItsExpiry(_ expiry: Double, _ leeway: Int64) throws {
        #expect(try Self.verify(#"{"exp":\#(expiry)}"#, .init(leeway: leeway)).expiry != nil)
    }

    @Test(arguments: [(1000, 0), (999.5, 0), (0, 0), (-5, 0), (990, 10), (-9_007_199_254_740_991, 10)])
    func tokenIsRefusedFromItsExpiryOn(_ expiry: Double, _ leeway: Int64) {
        let error = #expect(throws: TokenError.self) { try Self.verify(#"{"exp":\#(expiry)}"#, .init(leeway: leeway)) }
        #expect(error == .expired(at: Int64(expiry.rounded(.up))))
    }

    @Test func tokenIsRefusedBeforeItIsValid() throws {
        _ = try Self.verify(#"{"nbf":1000}"#)
        _ = try Self.verify(#"{"nbf":1010}"#, .init(leeway: 10))
        #expect(throws: TokenError.notYetValid(before: 1001)) { try Self.verify(#"{"nbf":1001}"#) }
        #expect(throws: TokenError.notYetValid(before: 1001)) { try Self.verify(#"{"nbf":1000.5}"#) }
        #expect(throws: TokenError.notYetValid(before: 1011)) { try Self.verify(#"{"nbf":1011}"#, .init(leeway: 10)) }
    }

    @Test func extremeTimesDoNotOverflow() throws {
        let rules = TokenVerifier.Rules(leeway: .max)
        #expect(throws: TokenError.self) { try Self.verify(#"{"exp":1}"#, rules, now: .max) }
        #expect(throws: TokenError.self) { try Self.verify(#"{"nbf":9007199254740991}"#, rules, now: .min) }
        _ = try Self.verify(#"{"exp":1}"#, rules, now: .min)
        _ = try Self.verify(#"{"nbf":-9007199254740991}"#, rules, now: .max)
    }

    @Test func tokenWithoutExpiryIsRefusedIfOneIsRequired() throws {
        _ = try Self.verify("{}")
        #expect(throws: TokenError.malformed("claim exp is missing")) {
            try Self.verify("{}", .init(requiresExpiry: true))
        }
    }

    @Test func oneAudienceOfBothSidesMustBeTheSame() throws {
        let rules = TokenVerifier.Rules(audiences: ["chat", "feed"])
        _ = try Self.verify(#"{"aud":"chat"}"#, rules)
        _ = try Self.verify(#"{"aud":["other","feed"]}"#, rules)
        for claims in [#"{"aud":"Chat"}"#, #"{"aud":["chat feed"]}"#, #"{"aud":[]}"#, #"{"aud":""}"#, "{}"] {
            #expect(throws: TokenError.wrongAudience) { try Self.verify(claims, rules) }
        }
        _ = try Self.verify(#"{"aud":"anything"}"#)
    }

    @Test func issuerMustBeTheSameBytes() throws {
        let rules = TokenVerifier.Rules(issuer: "https://issuer.example/é")
        _ = try Self.verify(#"{"iss":"https://issuer.example/é"}"#, rules)
        // The same letter as two characters: equal to Swift, another name to the issuer.
        for claims in [#"{"iss":"https://issuer.example/e\u0301"}"#, #"{"iss":"https://issuer.example/"}"#, "{}"] {
            #expect(throws: TokenError.wrongIssuer) { try Self.verify(claims, rules) }
        }
    }

    @Test func onlyConfiguredAlgorithmsAreAccepted() throws {
        let (_, key, text) = ExampleTokens.withClaims[1]
        _ = try TokenVerifier(.init(algorithms: [.rs256]), jwk: key).verify(text, now: 0)
        #expect(throws: TokenError.algorithmRefused("RS256")) {
            try TokenVerifier(.init(algorithms: [.ps256, .hs256]), jwk: key).verify(text, now: 0)
        }
    }

    /// Issuers write null for a claim that they leave out.
    @Test func nullIsNoClaim() throws {
        let names = [
            "sub", "iss", "aud", "exp", "nbf", "iat", "jti", "channels", "subs", "b64info", "b64data", "channel",
            "client", "expire_at", "info", "data", "meta",
        ]
        let token = try Self.verify("{" + names.map { "\"\($0)\":null" }.joined(separator: ",") + "}")
        #expect(token.subject == nil && token.expiry == nil && token.audience == [] && token.identifier == nil)
        #expect(try token.channels() == nil && token.subscriptions() == nil && token.channel() == nil)
        #expect(try token.binaryInfo() == nil && token.binaryData() == nil)
        #expect(try token.client() == nil && token.expireAt() == nil)
        #expect(token.info == nil && token.data == nil && token.meta == nil)
        #expect(throws: TokenError.malformed("claim exp is missing")) {
            try Self.verify(#"{"exp":null}"#, .init(requiresExpiry: true))
        }
        #expect(throws: TokenError.wrongAudience) { try Self.verify(#"{"aud":null}"#, .init(audiences: ["chat"])) }
    }

    @Test func claimsAreKeptAsTheyWereSigned() throws {
        let claims = #"{ "sub": "4\u0032", "n": 1.50e1, "ok": true, "no": null, "list": [ 1 ], "name": "\"Ü\"" }"#
        let token = try Self.verify(claims)
        #expect(token.json == Array(claims.utf8))
        #expect(token.claimNames == ["sub", "n", "ok", "no", "list", "name"])
        #expect(token.subject == "42")
        #expect(token.rawClaim("list") == Array("[ 1 ]".utf8))
        #expect(token.textClaim("sub") == "42")
        #expect(token.textClaim("n") == "1.50e1")
        #expect(token.textClaim("ok") == "true")
        #expect(token.textClaim("name") == "\"Ü\"")
        for name in ["no", "list", "absent"] { #expect(token.textClaim(name) == nil) }
    }

    @Test func claimsOfCentrifugosTokensAreRead() throws {
        let token = try Self.verify(
            #"{"sub":"","channels":["a","b"],"subs":{"c":{"data":{"x":1}},"d":{}},"info":{"name":"n"},"b64info":"aGk=","data":[1],"b64data":"aG8=","#
                + #""meta":{"t":1},"channel":"$gossips","client":"c1","expire_at":0,"jti":"j","iat":12.9}"#)
        #expect(token.subject == "")
        #expect(try token.channels() == ["a", "b"])
        #expect(try token.subscriptions()?.map(\.channel) == ["c", "d"])
        #expect(try token.subscriptions()?.first?.options == Array(#"{"data":{"x":1}}"#.utf8))
        #expect(token.info == Array(#"{"name":"n"}"#.utf8))
        #expect(try token.binaryInfo() == Array("hi".utf8))
        #expect(token.data == Array("[1]".utf8))
        #expect(try token.binaryData() == Array("ho".utf8))
        #expect(token.meta == Array(#"{"t":1}"#.utf8))
        #expect(try token.channel() == "$gossips")
        #expect(try token.client() == "c1")
        #expect(try token.expireAt() == 0)
        #expect(token.identifier == "j")
        #expect(token.issuedAt == 12)
    }

    /// Other issuers may use these names in other ways: only who reads such a claim finds it wrong.
    @Test func claimsOfCentrifugosTokensAreCheckedWhenTheyAreRead() throws {
        let token = try Self.verify(
            #"{"channels":"a","subs":[],"b64info":"a-b_","b64data":1,"channel":1,"client":{},"expire_at":"1"}"#)
        #expect(throws: TokenError.self) { try token.channels() }
        #expect(throws: TokenError.self) { try token.subscriptions() }
        #expect(throws: TokenError.self) { try token.binaryInfo() }
        #expect(throws: TokenError.self) { try token.binaryData() }
        #expect(throws: TokenError.self) { try token.channel() }
        #expect(throws: TokenError.self) { try token.client() }
        #expect(throws: TokenError.self) { try token.expireAt() }
        let empty = try Self.verify("{}")
        #expect(try empty.channels() == nil)
        #expect(try empty.expireAt() == nil)
    }
}
