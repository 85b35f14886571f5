import TLSEngine
import WebTokens
import WireText

/// Makes tokens of any header and claims, signed with HS256.
enum SampleTokens {
    static let secret = Array("0123456789abcdef0123456789abcdef".utf8)

    static func keys() throws -> TokenKeySet { TokenKeySet([try TokenKey(secret: Self.secret)]) }

    static func make(
        header: String = #"{"alg":"HS256"}"#, claims: String, secret: [UInt8] = Self.secret
    ) throws -> String {
        let signed = Self.base64URL(Array(header.utf8)) + "." + Self.base64URL(Array(claims.utf8))
        return signed + "." + Self.base64URL(try Self.code(of: signed, secret: secret))
    }

    static func code(of signed: String, secret: [UInt8]) throws -> [UInt8] {
        guard let code = KeyedDigest.of(Array(signed.utf8), secret: secret, by: .sha256) else { throw NoDigest() }
        return code
    }

    static func base64URL(_ bytes: [UInt8]) -> String {
        let text = Base64.encoded(bytes).map { character -> Character in
            switch character {
            case "+": "-"
            case "/": "_"
            default: character
            }
        }
        return String(text.prefix { $0 != "=" })
    }

    struct NoDigest: Error {}
}

extension TokenVerifier {
    convenience init(_ rules: Rules = Rules(), jwk: String) throws {
        try self.init(rules, keys: .read(file: Array(jwk.utf8)))
    }
}
