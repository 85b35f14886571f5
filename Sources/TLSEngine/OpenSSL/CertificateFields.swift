import COpenSSL

enum CertificateFields {
    static func derBytes(of certificate: OpaquePointer?) -> [UInt8] {
        unsafe self.encode { unsafe i2d_X509(certificate, $0) }
    }

    static func derBytes(ofName name: OpaquePointer?) -> [UInt8] {
        unsafe self.encode { unsafe i2d_X509_NAME(name, $0) }
    }

    static func derBytes(ofRevocationList list: OpaquePointer?) -> [UInt8] {
        unsafe self.encode { unsafe i2d_X509_CRL(list, $0) }
    }

    /// The pin of the certificate's public key; `nil` only if OpenSSL lacks memory.
    static func pin(of certificate: OpaquePointer?) -> PublicKeyPin? {
        guard let key = unsafe X509_get_X509_PUBKEY(certificate) else { return nil }
        return unsafe PublicKeyPin(digest: Self.sha256(self.encode { unsafe i2d_X509_PUBKEY(key, $0) }))
    }

    /// The DNS names among the alternative names, or the common name if there is no alternative name of any kind.
    static func serverNames(of certificate: OpaquePointer) -> [String] {
        var names: [String] = []
        let total = unsafe withUnsafeMutablePointer(to: &names) { pointer in
            unsafe sluice_each_dns_name(certificate, pointer, appendName)
        }
        guard total == 0 else { return names }
        return unsafe Self.commonName(of: certificate).map { [$0] } ?? []
    }

    fileprivate static func alternativeNames(of certificate: OpaquePointer) -> [String] {
        var names: [String] = []
        unsafe withUnsafeMutablePointer(to: &names) { pointer in
            unsafe sluice_each_alternative_name(certificate, pointer, appendName)
        }
        return names
    }

    /// The subject in the form of RFC 2253; `nil` if it exceeds the limit.
    fileprivate static func subject(of certificate: OpaquePointer) -> String? {
        let limit = CertificateNames.subjectLimit
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: limit) { buffer in
            let count = unsafe sluice_subject_text(certificate, buffer.baseAddress, Int32(limit))
            guard count >= 0 else { return nil }
            let bytes = unsafe buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Parses one certificate. The caller owns the result.
    static func parse(_ der: [UInt8]) -> OpaquePointer? {
        sluice_openssl_start()
        return unsafe der.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_X509(nil, &position, bytes.count)
        }
    }

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        sluice_openssl_start()
        var digest = [UInt8](repeating: 0, count: 32)
        let done = unsafe EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        return done == 1 ? digest : []
    }

    private static func commonName(of certificate: OpaquePointer) -> String? {
        let name = unsafe X509_get_subject_name(certificate)
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = unsafe X509_NAME_get_text_by_NID(name, NID_commonName, start, 256)
            return count > 0 ? unsafe String(cString: start) : nil
        }
    }

    /// Runs one of OpenSSL's i2d functions, which allocate when their target is nil.
    private static func encode(_ i2d: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d(&encoded)
        guard count > 0, let start = unsafe encoded else { return [] }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}

extension CertificateNames {
    fileprivate static let subjectLimit = 4096

    /// - Parameter der: one certificate.
    /// - Returns: `nil` for an invalid certificate, and for a subject of more than 4096 bytes.
    public init?(der: [UInt8]) {
        guard let certificate = unsafe CertificateFields.parse(der) else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe X509_free(certificate) }
        guard let pin = unsafe CertificateFields.pin(of: certificate),
            let subject = unsafe CertificateFields.subject(of: certificate)
        else { return nil }
        self.init(
            subject: subject, alternativeNames: unsafe CertificateFields.alternativeNames(of: certificate), pin: pin)
    }
}

/// Appends a name to the `[String]` at `context`.
private func appendName(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int32) {
    let names = unsafe context?.assumingMemoryBound(to: [String].self)
    let text = unsafe UnsafeBufferPointer(start: bytes, count: Int(count))
    unsafe names?.pointee.append(String(decoding: text, as: UTF8.self))
}

/// The SHA-256 digest of a certificate's SubjectPublicKeyInfo (RFC 7469 §2.4).
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// 32 bytes.
    public let digest: [UInt8]

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    /// Parses base64, optionally with the prefix `sha256/` or in the form `pin-sha256="…"`.
    /// - Returns: `nil` unless the base64 has 44 characters and decodes to 32 bytes.
    public init?(_ text: String) {
        var body = Substring(text)
        for prefix in ["pin-sha256=", "sha256/"] where body.hasPrefix(prefix) { body = body.dropFirst(prefix.count) }
        if body.hasPrefix("\""), body.hasSuffix("\""), body.count > 1 { body = body.dropFirst().dropLast() }
        guard let digest = Self.decode(Array(body.utf8)) else { return nil }
        self.digest = digest
    }

    /// `sha256/` followed by the digest in base64.
    public var description: String {
        "sha256/\(String(decoding: Self.encode(self.digest), as: UTF8.self))"
    }

    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 33)
        guard text.count == 44, unsafe EVP_DecodeBlock(&bytes, text, 44) == 33 else { return nil }
        let digest = Array(bytes.prefix(32))
        // Every pin has exactly one spelling.
        return self.encode(digest) == text ? digest : nil
    }

    private static func encode(_ digest: [UInt8]) -> [UInt8] {
        // OpenSSL appends a NUL.
        var text = [UInt8](repeating: 0, count: 45)
        let count = unsafe EVP_EncodeBlock(&text, digest, Int32(digest.count))
        return Array(text.prefix(Int(count)))
    }
}
