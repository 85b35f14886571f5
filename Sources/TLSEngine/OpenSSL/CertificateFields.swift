import COpenSSL

/// Reads fields of X.509 certificates.
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

extension CertificateNames {
    static let subjectLimit = 4096

    /// - Parameter der: one certificate.
    /// - Returns: `nil` for an invalid certificate, and for a subject of more than 4096 bytes.
    public init?(der: [UInt8]) {
        let parsed = unsafe der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var position = bytes.baseAddress
            return unsafe d2i_X509(nil, &position, bytes.count)
        }
        guard let certificate = unsafe parsed else {
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

extension CertificateFields {
    fileprivate static func subject(of certificate: OpaquePointer) -> String? {
        let limit = CertificateNames.subjectLimit
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: limit) { buffer in
            let count = unsafe sluice_subject_text(certificate, buffer.baseAddress, Int32(limit))
            guard count >= 0 else { return nil }
            let bytes = unsafe buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    fileprivate static func alternativeNames(of certificate: OpaquePointer) -> [String] {
        var names: [String] = []
        unsafe withUnsafeMutablePointer(to: &names) { pointer in
            unsafe sluice_each_alternative_name(certificate, pointer) { context, bytes, count in
                let names = unsafe context?.assumingMemoryBound(to: [String].self)
                let text = unsafe UnsafeBufferPointer(start: bytes, count: Int(count))
                unsafe names?.pointee.append(String(decoding: text, as: UTF8.self))
            }
        }
        return names
    }
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
        else { throw ErrorQueue.failure(.engine, "the verification cannot begin") }
        let parameters = unsafe X509_STORE_CTX_get0_param(context)
        unsafe X509_VERIFY_PARAM_set_auth_level(parameters, Int32(configuration.securityLevel))
        // A configured root is trusted even if it is not self-signed.
        if !trust.extra.isEmpty { unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN)) }
        unsafe try name?.require(in: parameters)
        return unsafe Self.outcome(of: X509_verify_cert(context), context)
    }

    private func fill(_ chain: OpaquePointer) throws(TLSFailure) {
        for der in self.peerChain {
            let parsed = unsafe der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
                var position = bytes.baseAddress
                return unsafe d2i_X509(nil, &position, bytes.count)
            }
            guard let certificate = unsafe parsed else {
                throw ErrorQueue.failure(.unreadableCredentials, "the chain holds what is no certificate")
            }
            guard unsafe sluice_x509_push(chain, certificate) != 0 else {
                unsafe X509_free(certificate)
                throw ErrorQueue.failure(.engine, "no memory")
            }
        }
        guard !self.peerChain.isEmpty else {
            throw TLSFailure(.unreadableCredentials, reasons: ["the chain holds no certificate"])
        }
    }

    private static func outcome(of result: Int32, _ context: OpaquePointer) -> VerificationResult {
        let found = unsafe X509_STORE_CTX_get_error(context)
        ErrorQueue.clear()
        guard result != 1 else { return VerificationResult(code: X509_V_OK, text: "ok", depth: 0) }
        // A verification that could not run has failed, whatever the code says.
        let code = found == X509_V_OK ? X509_V_ERR_UNSPECIFIED : found
        return VerificationResult(
            code: code, text: unsafe String(cString: X509_verify_cert_error_string(Int(code))),
            depth: Int(unsafe X509_STORE_CTX_get_error_depth(context)))
    }
}
