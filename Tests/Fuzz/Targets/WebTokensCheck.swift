import TLSEngine
import WebTokens
import WireText

/// The first byte chooses how the rest is used: as a token, as the header or the claims of a token with a valid code, or
/// as a document with keys. Each gives a token, keys, or one error; what is accepted keeps the limits.
enum WebTokensCheck {
    private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let choice = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        switch choice {
        case UInt8(ascii: "h"):
            try self.verify(self.signed(header: rest, claims: Array(#"{"sub":"42"}"#.utf8)), isSigned: true)
        case UInt8(ascii: "c"):
            try self.verify(self.signed(header: Array(#"{"alg":"HS256"}"#.utf8), claims: rest), isSigned: true)
        case UInt8(ascii: "k"):
            try self.readKeys(rest)
        default:
            try self.verify(rest, isSigned: false)
        }
    }

    private static func verify(_ token: [UInt8], isSigned: Bool) throws(InvariantViolation) {
        guard let key = try? TokenKey(secret: self.secret) else { return }
        let verifier = TokenVerifier(keys: TokenKeySet([key]))
        let verified: Token
        do throws(TokenError) {
            verified = try verifier.verify(token, now: 1_000_000_000)
        } catch {
            let summary = error.summary.utf8
            let isPlain = summary.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
            try InvariantViolation.expect(isPlain, "a text for the client with other characters")
            let description = error.description.utf8
            try InvariantViolation.expect(description.count < 300, "a long description")
            try InvariantViolation.expect(description.allSatisfy { $0 >= 0x20 }, "a description of several lines")
            let isForged = !isSigned && error.label == "expired"
            try InvariantViolation.expect(!isForged, "claims were read without a valid signature")
            return
        }
        try self.check(verified)
    }

    private static func check(_ token: Token) throws(InvariantViolation) {
        try InvariantViolation.expect(token.algorithm == .hs256, "an algorithm that the key is not for")
        try InvariantViolation.expect(token.expiry.map { $0 > 1_000_000_000 } ?? true, "an expired token")
        try InvariantViolation.expect(token.notBefore.map { $0 <= 1_000_000_000 } ?? true, "a token of the future")
        try InvariantViolation.expect(Set(token.claimNames).count == token.claimNames.count, "a claim twice")
        for name in token.claimNames {
            guard let raw = token.rawClaim(name) else { throw InvariantViolation("a claim without a value") }
            var reader = JSONReader(raw)
            let isValid = (try? reader.skipValue()) != nil && reader.isAtEnd()
            try InvariantViolation.expect(isValid, "a claim that is no JSON")
            _ = token.textClaim(name)
        }
        _ = try? token.channels()
        _ = try? token.subscriptions()
        _ = try? token.binaryInfo()
        _ = try? token.binaryData()
        _ = try? token.channel()
        _ = try? token.client()
        _ = try? token.expireAt()
    }

    private static func readKeys(_ bytes: [UInt8]) throws(InvariantViolation) {
        _ = try? TokenKeySet.read(secret: bytes)
        for set in [try? TokenKeySet.read(file: bytes), try? TokenKeySet.read(published: bytes)] {
            guard let set else { continue }
            let isBounded = (1...TokenKeySet.countLimit).contains(set.keys.count)
            try InvariantViolation.expect(isBounded, "\(set.keys.count) keys")
            try InvariantViolation.expect(set.keys.allSatisfy { !$0.algorithms.isEmpty }, "a key without a use")
            let token = self.signed(header: Array(#"{"alg":"RS256"}"#.utf8), claims: Array("{}".utf8))
            let isAccepted = (try? TokenVerifier(keys: set).verify(token, now: 0)) != nil
            try InvariantViolation.expect(!isAccepted, "a token that the key's owner did not sign")
        }
    }

    private static func signed(header: [UInt8], claims: [UInt8]) -> [UInt8] {
        let signed = self.base64URL(header) + [UInt8(ascii: ".")] + self.base64URL(claims)
        let code = KeyedDigest.of(signed, secret: self.secret, by: .sha256) ?? []
        return signed + [UInt8(ascii: ".")] + self.base64URL(code)
    }

    private static func base64URL(_ bytes: [UInt8]) -> [UInt8] {
        Base64.encoded(bytes).utf8.compactMap { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): nil
            default: character
            }
        }
    }
}
