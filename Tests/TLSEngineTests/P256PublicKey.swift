/// Finds a P-256 key in a certificate by its fixed prefix, so that pins are computed without the code under test.
struct P256PublicKey {
    /// SEQUENCE { SEQUENCE { ecPublicKey, prime256v1 }, BIT STRING of 65 bytes } up to the point itself (RFC 5480).
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
        0xCE,
        0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    let subjectPublicKeyInfo: [UInt8]

    init?(inCertificate der: [UInt8]) {
        let count = Self.prefix.count + 65
        guard der.count >= count else { return nil }
        for start in 0...(der.count - count) where der[start...].starts(with: Self.prefix) {
            self.subjectPublicKeyInfo = Array(der[start..<start + count])
            return
        }
        return nil
    }
}
