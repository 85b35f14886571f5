import TLSEngine

/// Signature algorithms of tokens (RFC 7518 §3.1, RFC 8037 §3.1). `none` is not among them.
package enum TokenAlgorithm: String, Sendable, Hashable, CaseIterable {
    case hs256 = "HS256"
    case hs384 = "HS384"
    case hs512 = "HS512"
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case ps384 = "PS384"
    case ps512 = "PS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    /// With Ed25519 only; also called `Ed25519` (RFC 9864 §2.2).
    case edDSA = "EdDSA"

    /// - Parameter name: the value of `alg` in a token or key.
    init?(name: String) { self.init(rawValue: name == "Ed25519" ? Self.edDSA.rawValue : name) }

    /// The hash of a keyed digest; `nil` for the algorithms of public keys.
    var secretHash: HashFunction? {
        switch self {
        case .hs256: .sha256
        case .hs384: .sha384
        case .hs512: .sha512
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512, .es256, .es384, .es512, .edDSA: nil
        }
    }

    /// `nil` for the algorithms of secrets.
    var scheme: SignatureScheme? {
        switch self {
        case .hs256, .hs384, .hs512: nil
        case .rs256: .rsaPKCS1(.sha256)
        case .rs384: .rsaPKCS1(.sha384)
        case .rs512: .rsaPKCS1(.sha512)
        case .ps256: .rsaPSS(.sha256)
        case .ps384: .rsaPSS(.sha384)
        case .ps512: .rsaPSS(.sha512)
        case .es256: .ecdsa(.sha256)
        case .es384: .ecdsa(.sha384)
        case .es512: .ecdsa(.sha512)
        case .edDSA: .ed25519
        }
    }
}
