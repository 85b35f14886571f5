/// Writes the few ASN.1 values that keys and signatures consist of, in DER (X.690).
enum DER {
    /// Object identifiers, encoded without tag and length.
    enum Identifier {
        /// rsaEncryption (RFC 8017 §A.1).
        static let rsa: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
        /// id-ecPublicKey (RFC 5480 §2.1.1).
        static let ellipticCurve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        /// secp256r1, secp384r1 and secp521r1 (RFC 5480 §2.1.1.1).
        static let p256: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        static let p384: [UInt8] = [0x2B, 0x81, 0x04, 0x00, 0x22]
        static let p521: [UInt8] = [0x2B, 0x81, 0x04, 0x00, 0x23]
        /// id-Ed25519 (RFC 8410 §3).
        static let ed25519: [UInt8] = [0x2B, 0x65, 0x70]
    }

    /// - Parameter magnitude: the number without a sign, most significant byte first.
    static func integer(_ magnitude: ArraySlice<UInt8>) -> [UInt8] {
        var digits = Array(magnitude.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return self.value(tag: 0x02, digits)
    }

    static func sequence(_ content: [UInt8]) -> [UInt8] { self.value(tag: 0x30, content) }

    static func identifier(_ encoded: [UInt8]) -> [UInt8] { self.value(tag: 0x06, encoded) }

    static let null: [UInt8] = [0x05, 0x00]

    /// A `SubjectPublicKeyInfo` (RFC 5280 §4.1).
    /// - Parameters:
    ///   - algorithm: the identifier and its parameters, encoded.
    ///   - key: content of the bit string, in whole bytes.
    static func publicKey(algorithm: [UInt8], key: [UInt8]) -> [UInt8] {
        self.sequence(self.sequence(algorithm) + self.value(tag: 0x03, [0x00] + key))
    }

    /// An `RSAPublicKey` (RFC 8017 §A.1.1) within a `SubjectPublicKeyInfo`.
    static func rsaPublicKey(pkcs1: [UInt8]) -> [UInt8] {
        self.publicKey(algorithm: self.identifier(Identifier.rsa) + self.null, key: pkcs1)
    }

    private static func value(tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        guard content.count >= 0x80 else { return [tag, UInt8(content.count)] + content }
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + content
    }
}
