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
        unsafe der.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_X509(nil, &position, bytes.count)
        }
    }

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
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

// MARK: - Verification without a connection

extension VerificationRequest {
    /// Verifies the chain with other roots than the connection's: path, validity today, server usage and the reference
    /// name. Pins and revocation lists are not checked.
    ///
    /// May be called at any time, from any thread.
    /// - Throws: `.unreadableCredentials` for roots that cannot be read, for missing system roots, and for an invalid
    ///   certificate in the chain; `.configuration` for a malformed name.
    public func evaluate(against trust: TrustAnchors) throws(TLSFailure) -> VerificationResult {
        var configuration = TLSConfiguration.client()
        configuration.trust = trust
        configuration.checksServerName = self.serverName != nil
        let name = try ReferenceIdentity.validated(self.serverName, in: configuration)
        let store = try TrustStore(configuration)
        ErrorQueue.clear()
        guard let context = unsafe X509_STORE_CTX_new() else { throw ErrorQueue.failure(.engine, "no memory") }
        defer { unsafe X509_STORE_CTX_free(context) }
        guard let chain = unsafe sluice_x509_stack() else { throw ErrorQueue.failure(.engine, "no memory") }
        defer { unsafe sluice_x509_stack_free(chain) }
        unsafe try self.fill(chain)
        guard unsafe X509_STORE_CTX_init(context, store.handle, sluice_x509_at(chain, 0), chain) == 1,
            unsafe X509_STORE_CTX_set_default(context, "ssl_server") == 1
        else { throw ErrorQueue.failure(.engine, "the verification cannot be initialized") }
        let parameters = unsafe X509_STORE_CTX_get0_param(context)
        unsafe X509_VERIFY_PARAM_set_auth_level(parameters, Int32(configuration.securityLevel))
        // A configured root is trusted even if it is not self-signed.
        if !trust.extra.isEmpty { unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN)) }
        unsafe try name?.require(in: parameters)
        let isValid = unsafe X509_verify_cert(context) == 1
        defer { ErrorQueue.clear() }
        return unsafe isValid ? .valid : VerificationResult(failureOf: context)
    }

    private func fill(_ chain: OpaquePointer) throws(TLSFailure) {
        for der in self.peerChain {
            guard let certificate = unsafe CertificateFields.parse(der) else {
                throw ErrorQueue.failure(.unreadableCredentials, "the chain contains an invalid certificate")
            }
            guard unsafe sluice_x509_push(chain, certificate) != 0 else {
                unsafe X509_free(certificate)
                throw ErrorQueue.failure(.engine, "no memory")
            }
        }
        guard !self.peerChain.isEmpty else {
            throw TLSFailure(.unreadableCredentials, reasons: ["the chain contains no certificate"])
        }
    }
}

extension VerificationResult {
    static let valid = VerificationResult(code: X509_V_OK, text: "ok", depth: 0)

    /// The error of a failed verification. One that could not run has failed, whatever the code says.
    init(failureOf context: OpaquePointer) {
        let found = unsafe X509_STORE_CTX_get_error(context)
        let code = found == X509_V_OK ? X509_V_ERR_UNSPECIFIED : found
        self.init(
            code: code, text: unsafe String(cString: X509_verify_cert_error_string(Int(code))),
            depth: Int(unsafe X509_STORE_CTX_get_error_depth(context)))
    }
}
