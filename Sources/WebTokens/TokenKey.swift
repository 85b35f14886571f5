import TLSEngine

/// A key that verifies tokens, with the algorithms it is for.
package struct TokenKey: Sendable {
    /// Largest RSA modulus in bits; a longer one costs more to use than it protects.
    package static let rsaBitsLimit = 8192
    /// Smallest RSA modulus in bits (RFC 7518 §3.3).
    package static let rsaBitsMinimum = 2048
    /// Smallest secret in bytes: the size of the smallest hash (RFC 7518 §3.2).
    package static let secretMinimum = 32

    private enum Material: Sendable {
        case secret([UInt8])
        case publicKey(PublicKey)
    }

    private let material: Material
    /// Name that a token's header refers to; `nil` if it has none.
    package let identifier: String?
    /// The algorithms that this key may be used with: those of its kind, or the one that its owner declared.
    package let algorithms: Set<TokenAlgorithm>

    /// - Parameters:
    ///   - secret: at least 32 bytes for HS256, 48 for HS384, 64 for HS512 (RFC 7518 §3.2). A shorter one than an
    ///     algorithm requires is not used with it.
    ///   - allowsShort: whether any secret of at least one byte is used with all of them, as its issuer does.
    ///   - algorithm: the only one that the key is for; `nil` for all that its kind permits.
    package init(
        secret: [UInt8], allowsShort: Bool = false, identifier: String? = nil, algorithm: TokenAlgorithm? = nil
    ) throws(TokenKeyProblem) {
        let permitted = TokenAlgorithm.allCases.filter { candidate in
            candidate.secretHash.map { allowsShort || $0.byteCount <= secret.count } ?? false
        }
        let minimum = allowsShort ? 1 : algorithm?.secretHash?.byteCount ?? Self.secretMinimum
        guard secret.count >= minimum else {
            let name = algorithm?.rawValue ?? TokenAlgorithm.hs256.rawValue
            throw TokenKeyProblem("a secret of \(secret.count) bytes is too short: \(name) needs at least \(minimum)")
        }
        self.material = .secret(secret)
        self.identifier = identifier
        self.algorithms = try Self.restrict(permitted, to: algorithm, kind: "a secret")
    }

    package init(
        _ key: PublicKey, identifier: String? = nil, algorithm: TokenAlgorithm? = nil
    ) throws(TokenKeyProblem) {
        let permitted: [TokenAlgorithm]
        let kind: String
        switch key.kind {
        case .rsa(let bits):
            guard bits >= Self.rsaBitsMinimum else {
                throw TokenKeyProblem(
                    "an RSA key of \(bits) bits is too weak: at least \(Self.rsaBitsMinimum) are needed")
            }
            guard bits <= Self.rsaBitsLimit else {
                throw TokenKeyProblem(
                    "an RSA key of \(bits) bits is too long: at most \(Self.rsaBitsLimit) are accepted")
            }
            (permitted, kind) = ([.rs256, .rs384, .rs512, .ps256, .ps384, .ps512], "an RSA key")
        case .p256: (permitted, kind) = ([.es256], "a P-256 key")
        case .p384: (permitted, kind) = ([.es384], "a P-384 key")
        case .p521: (permitted, kind) = ([.es512], "a P-521 key")
        case .ed25519: (permitted, kind) = ([.edDSA], "an Ed25519 key")
        }
        self.material = .publicKey(key)
        self.identifier = identifier
        self.algorithms = try Self.restrict(permitted, to: algorithm, kind: kind)
    }

    private static func restrict(
        _ permitted: [TokenAlgorithm], to algorithm: TokenAlgorithm?, kind: String
    ) throws(TokenKeyProblem) -> Set<TokenAlgorithm> {
        guard let algorithm else { return Set(permitted) }
        guard permitted.contains(algorithm) else {
            throw TokenKeyProblem("\(kind) cannot be used with \(algorithm.rawValue)")
        }
        return [algorithm]
    }

    /// - Returns: `false` also for an algorithm that the key is not for: a public key is never used as a secret.
    func isSignature(_ signature: [UInt8], of message: [UInt8], by algorithm: TokenAlgorithm) -> Bool {
        guard self.algorithms.contains(algorithm) else { return false }
        switch self.material {
        case .secret(let secret):
            guard let hash = algorithm.secretHash else { return false }
            return KeyedDigest.isCode(signature, of: message, secret: secret, by: hash)
        case .publicKey(let key):
            guard let scheme = algorithm.scheme else { return false }
            switch key.kind {
            case .rsa, .ed25519: return key.isSignature(signature, of: message, by: scheme)
            case .p256: return Self.isECDSA(signature, size: 32, of: message, by: scheme, key)
            case .p384: return Self.isECDSA(signature, size: 48, of: message, by: scheme, key)
            case .p521: return Self.isECDSA(signature, size: 66, of: message, by: scheme, key)
            }
        }
    }

    /// A token's ECDSA signature is both numbers at full size, one after the other (RFC 7518 §3.4).
    /// - Parameter size: length of one number in bytes.
    private static func isECDSA(
        _ signature: [UInt8], size: Int, of message: [UInt8], by scheme: SignatureScheme, _ key: PublicKey
    ) -> Bool {
        guard signature.count == 2 * size else { return false }
        let numbers = DER.integer(signature.prefix(size)) + DER.integer(signature.suffix(size))
        return key.isSignature(DER.sequence(numbers), of: message, by: scheme)
    }
}

/// Why a key cannot be used, in words for the person who configured it.
package struct TokenKeyProblem: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
