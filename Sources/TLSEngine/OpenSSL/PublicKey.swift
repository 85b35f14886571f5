import COpenSSL

/// Hash functions of signatures and keyed digests.
package enum HashFunction: Sendable, Hashable {
    case sha256
    case sha384
    case sha512

    /// Length of the hash in bytes.
    package var byteCount: Int {
        switch self {
        case .sha256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    fileprivate var name: String {
        switch self {
        case .sha256: "SHA256"
        case .sha384: "SHA384"
        case .sha512: "SHA512"
        }
    }
}

/// A way to sign, without its key.
package enum SignatureScheme: Sendable, Hashable {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    case rsaPKCS1(HashFunction)
    /// RSASSA-PSS with MGF1 of the same hash and a salt as long as the hash (RFC 8017 §8.1).
    case rsaPSS(HashFunction)
    /// The signature is the DER of `ECDSA-Sig-Value` (RFC 3279 §2.2.3).
    case ecdsa(HashFunction)
    /// RFC 8032; signs the message itself.
    case ed25519

    fileprivate var hash: HashFunction? {
        switch self {
        case .rsaPKCS1(let hash), .rsaPSS(let hash), .ecdsa(let hash): hash
        case .ed25519: nil
        }
    }
}

/// A public key that verifies signatures. Immutable.
@safe
package final class PublicKey: Sendable {
    package enum Kind: Sendable, Hashable {
        /// - Parameter bits: length of the modulus.
        case rsa(bits: Int)
        case p256
        case p384
        case p521
        case ed25519
    }

    // OpenSSL counts its references atomically, and nothing changes it here.
    nonisolated(unsafe) private let handle: OpaquePointer
    package let kind: Kind

    /// Reads a `SubjectPublicKeyInfo` (RFC 5280 §4.1).
    /// - Throws: `.unreadableCredentials` for anything else, an invalid key, such as a point beside its curve, and a key of
    ///   another kind than `Kind` lists.
    package convenience init(subjectPublicKeyInfo der: [UInt8]) throws(TLSFailure) {
        sluice_openssl_start()
        ErrorQueue.clear()
        let key = unsafe der.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_PUBKEY(nil, &position, bytes.count)
        }
        guard let key = unsafe key else { throw ErrorQueue.failure(.unreadableCredentials, "is no public key") }
        unsafe try self.init(owning: key)
    }

    /// Takes the key of a certificate, whose signature and dates are not checked.
    /// - Throws: `.unreadableCredentials`.
    package convenience init(certificate der: [UInt8]) throws(TLSFailure) {
        ErrorQueue.clear()
        guard let certificate = unsafe CertificateFields.parse(der) else {
            throw ErrorQueue.failure(.unreadableCredentials, "is no certificate")
        }
        defer { unsafe X509_free(certificate) }
        guard let key = unsafe X509_get_pubkey(certificate) else {
            throw ErrorQueue.failure(.unreadableCredentials, "has no public key that can be read")
        }
        unsafe try self.init(owning: key)
    }

    /// Takes ownership of the reference, also when it throws.
    private init(owning key: OpaquePointer) throws(TLSFailure) {
        unsafe self.handle = key
        guard let kind = unsafe Self.kind(of: key) else {
            self.kind = .ed25519
            ErrorQueue.clear()
            throw TLSFailure(
                .unreadableCredentials, reasons: ["is a key of a kind other than RSA, P-256, P-384, P-521 and Ed25519"])
        }
        self.kind = kind
        guard unsafe Self.isValid(key), unsafe kind != .ed25519 || !Self.hasSmallOrder(key) else {
            throw ErrorQueue.failure(.unreadableCredentials, "is a public key with invalid numbers")
        }
    }

    deinit {
        unsafe EVP_PKEY_free(self.handle)
    }

    private static func kind(of key: OpaquePointer) -> Kind? {
        if unsafe EVP_PKEY_is_a(key, "RSA") == 1 { return unsafe .rsa(bits: Int(EVP_PKEY_get_bits(key))) }
        if unsafe EVP_PKEY_is_a(key, "ED25519") == 1 { return .ed25519 }
        guard unsafe EVP_PKEY_is_a(key, "EC") == 1 else { return nil }
        let name = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer -> String? in
            guard unsafe EVP_PKEY_get_group_name(key, buffer.baseAddress, buffer.count, nil) == 1 else { return nil }
            return unsafe buffer.baseAddress.map { unsafe String(cString: $0) }
        }
        return switch name {
        case "prime256v1": .p256
        case "secp384r1": .p384
        case "secp521r1": .p521
        default: nil
        }
    }

    /// An RSA key with the exponent 1, for example, would accept signatures that anyone can compute.
    private static func isValid(_ key: OpaquePointer) -> Bool {
        let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        return unsafe context != nil && EVP_PKEY_public_check(context) == 1
    }

    /// The y of the points on Ed25519's curve whose order is 8 or less, 0 and 1 also as numbers beyond the field's (RFC 8032
    /// §5.1.3).
    private static let smallOrders: [[UInt8]] =
        [0x00, 0x01].map { [$0] + [UInt8](repeating: 0, count: 31) }
        + [0xEC, 0xED, 0xEE].map { [$0] + [UInt8](repeating: 0xFF, count: 30) + [0x7F] }
        + [
            [
                0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0,
                0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
            ],
            [
                0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F,
                0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
            ],
        ]

    /// Whether anyone can compute signatures that an Ed25519 key accepts.
    private static func hasSmallOrder(_ key: OpaquePointer) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        guard unsafe EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else { return true }
        // The highest bit is the sign of x.
        bytes[31] &= 0x7F
        return Self.smallOrders.contains(bytes)
    }

    /// Whether `signature` is one of `message` by this key's owner.
    /// - Returns: `false` also if the scheme does not belong to the kind of key.
    package func isSignature(_ signature: [UInt8], of message: [UInt8], by scheme: SignatureScheme) -> Bool {
        switch (scheme, self.kind) {
        case (.rsaPKCS1, .rsa), (.rsaPSS, .rsa), (.ed25519, .ed25519): break
        case (.ecdsa, .p256), (.ecdsa, .p384), (.ecdsa, .p521): break
        case (.rsaPKCS1, _), (.rsaPSS, _), (.ed25519, _), (.ecdsa, _): return false
        }
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        var options: OpaquePointer?
        let isReady =
            if let hash = scheme.hash {
                unsafe EVP_DigestVerifyInit_ex(context, &options, hash.name, nil, nil, self.handle, nil) == 1
            } else {
                unsafe EVP_DigestVerifyInit_ex(context, &options, nil, nil, nil, self.handle, nil) == 1
            }
        guard isReady else { return false }
        if case .rsaPSS = scheme {
            let isPadded =
                unsafe EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1
                && EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1
            guard isPadded else { return false }
        }
        return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}

/// Message authentication with a shared secret (HMAC, RFC 2104).
package enum KeyedDigest {
    /// - Parameter secret: not empty.
    /// - Returns: `nil` only if libcrypto refuses the hash or lacks memory.
    package static func of(_ message: [UInt8], secret: [UInt8], by hash: HashFunction) -> [UInt8]? {
        sluice_openssl_start()
        guard !secret.isEmpty else { return nil }
        var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count = 0
        ErrorQueue.clear()
        let made = unsafe EVP_Q_mac(
            nil, "HMAC", nil, hash.name, nil, secret, secret.count, message, message.count, &code, code.count, &count)
        guard unsafe made != nil, count == hash.byteCount else {
            ErrorQueue.clear()
            return nil
        }
        return Array(code.prefix(count))
    }

    /// Compares in a time that does not depend on the code.
    /// - Returns: whether `code` is the whole code of `message`.
    package static func isCode(
        _ code: [UInt8], of message: [UInt8], secret: [UInt8], by hash: HashFunction
    ) -> Bool {
        guard let expected = self.of(message, secret: secret, by: hash), code.count == expected.count else {
            return false
        }
        return unsafe CRYPTO_memcmp(code, expected, expected.count) == 0
    }
}
