import COpenSSL

/// What is read out of single certificates.
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

    /// The pin of the certificate's public key; `nil` only if OpenSSL has no memory.
    static func pin(of certificate: OpaquePointer?) -> PublicKeyPin? {
        guard let key = unsafe X509_get_X509_PUBKEY(certificate) else { return nil }
        return unsafe PublicKeyPin(digest: Self.sha256(self.encode { unsafe i2d_X509_PUBKEY(key, $0) }))
    }

    static func serverNames(of certificate: OpaquePointer) -> [String] {
        var names: [String] = []
        let total = unsafe withUnsafeMutablePointer(to: &names) { pointer in
            unsafe sluice_each_dns_name(certificate, pointer) { context, bytes, count in
                let names = unsafe context?.assumingMemoryBound(to: [String].self)
                let text = unsafe UnsafeBufferPointer(start: bytes, count: Int(count))
                unsafe names?.pointee.append(String(decoding: text, as: UTF8.self))
            }
        }
        guard total == 0 else { return names }
        return unsafe Self.subjectName(of: certificate).map { [$0] } ?? []
    }

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let done = unsafe EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        return done == 1 ? digest : []
    }

    private static func subjectName(of certificate: OpaquePointer) -> String? {
        let name = unsafe X509_get_subject_name(certificate)
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = unsafe X509_NAME_get_text_by_NID(name, NID_commonName, start, 256)
            return count > 0 ? unsafe String(cString: start) : nil
        }
    }

    /// Runs one of OpenSSL's i2d functions, which allocate when their target is nil.
    private static func encode(
        _ i2d: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d(&encoded)
        guard count > 0, let start = unsafe encoded else { return [] }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}
