import COpenSSL

/// A certificate with its chain and private key. Immutable.
@safe
public final class TLSIdentity: Sendable {
    // OpenSSL counts their references atomically, and nothing changes them here.
    nonisolated(unsafe) let certificate: OpaquePointer
    /// The intermediate certificates from the leaf's issuer towards the root; a STACK_OF(X509).
    nonisolated(unsafe) let chain: OpaquePointer
    nonisolated(unsafe) let key: OpaquePointer
    /// The names for which a server selects this identity: the DNS names among the subject alternative names, or the
    /// common name if there is no alternative name of any kind; others with `withServerNames(_:)`.
    public let serverNames: [String]

    /// Reads the certificate, followed by its chain, and the key.
    ///
    /// - Parameters:
    ///   - certificates: PEM text, the leaf certificate first; or one certificate in DER.
    ///   - key: PEM (PKCS#8, also encrypted, PKCS#1, SEC 1) or DER.
    ///   - password: for an encrypted key.
    /// - Throws: `.unreadableCredentials`, `.wrongPassword`, or `.keyMismatch` if the key does not belong to the
    ///   certificate.
    public convenience init(certificates: [UInt8], key: [UInt8], password: String? = nil) throws(TLSFailure) {
        try self.init(CredentialReader(bytes: certificates), CredentialReader(bytes: key), password: password)
    }

    /// Reads certificate and key from files, which may be the same; failures name the file.
    public convenience init(certificateFile: String, keyFile: String, password: String? = nil) throws(TLSFailure) {
        try self.init(CredentialReader(file: certificateFile), CredentialReader(file: keyFile), password: password)
    }

    /// Reads a PKCS#12 container with a certificate, its chain and its key.
    /// - Throws: `.unreadableCredentials`, `.wrongPassword`, or `.keyMismatch`.
    public convenience init(pkcs12: [UInt8], password: String? = nil) throws(TLSFailure) {
        try self.init(keyStore: CredentialReader(bytes: pkcs12), password: password)
    }

    public convenience init(pkcs12File: String, password: String? = nil) throws(TLSFailure) {
        try self.init(keyStore: CredentialReader(file: pkcs12File), password: password)
    }

    private convenience init(
        _ certificates: borrowing CredentialReader, _ key: borrowing CredentialReader, password: String?
    ) throws(TLSFailure) {
        guard let stack = unsafe sluice_x509_stack() else { throw ErrorQueue.failure(.engine, "no memory") }
        var complete = false
        defer { if !complete { unsafe sluice_x509_stack_free(stack) } }
        unsafe try certificates.eachCertificate { certificate in
            guard unsafe X509_up_ref(certificate) == 1 else { return }
            if unsafe sluice_x509_push(stack, certificate) == 0 { unsafe X509_free(certificate) }
        }
        guard let first = unsafe sluice_x509_shift(stack) else {
            throw certificates.failure(.unreadableCredentials, "contains no certificate")
        }
        let privateKey: OpaquePointer
        do throws(TLSFailure) {
            unsafe privateKey = try key.privateKey(password: password)
        } catch {
            unsafe X509_free(first)
            throw error
        }
        complete = true
        unsafe try self.init(owning: first, chain: stack, key: privateKey, file: key.file ?? certificates.file)
    }

    private convenience init(keyStore: borrowing CredentialReader, password: String?) throws(TLSFailure) {
        let store = unsafe try keyStore.keyStore()
        defer { unsafe PKCS12_free(store) }
        let isPasswordCorrect =
            unsafe PKCS12_mac_present(store) == 0 || PKCS12_verify_mac(store, password, -1) == 1
            || password == nil && PKCS12_verify_mac(store, "", 0) == 1
        guard isPasswordCorrect else { throw keyStore.failure(.wrongPassword, "the password is missing or wrong") }
        ErrorQueue.clear()
        var key: OpaquePointer?
        var certificate: OpaquePointer?
        var chain: OpaquePointer?
        let parsed = unsafe PKCS12_parse(store, password, &key, &certificate, &chain)
        let stack = unsafe chain ?? sluice_x509_stack()
        guard parsed == 1, let certificate = unsafe certificate, let key = unsafe key, let stack = unsafe stack else {
            unsafe EVP_PKEY_free(key)
            unsafe X509_free(certificate)
            unsafe sluice_x509_stack_free(stack)
            throw keyStore.failure(.unreadableCredentials, "contains no certificate with its key")
        }
        unsafe try self.init(owning: certificate, chain: stack, key: key, file: keyStore.file)
    }

    /// Takes ownership of all three references, also when it throws.
    private init(
        owning certificate: OpaquePointer, chain: OpaquePointer, key: OpaquePointer, file: String?
    ) throws(TLSFailure) {
        unsafe self.certificate = certificate
        unsafe self.chain = chain
        unsafe self.key = key
        self.serverNames = unsafe CertificateFields.serverNames(of: certificate)
        ErrorQueue.clear()
        guard unsafe X509_check_private_key(certificate, key) == 1 else {
            throw ErrorQueue.failure(.keyMismatch, "the private key does not match the certificate", file: file)
        }
    }

    private init(_ other: TLSIdentity, serverNames: [String]) {
        unsafe X509_up_ref(other.certificate)
        unsafe EVP_PKEY_up_ref(other.key)
        unsafe self.certificate = other.certificate
        unsafe self.chain = X509_chain_up_ref(other.chain)
        unsafe self.key = other.key
        self.serverNames = serverNames
    }

    /// A copy that a server selects for other names than those in the certificate.
    /// - Parameter names: DNS names; a leading `*.` matches any one label.
    public func withServerNames(_ names: [String]) -> TLSIdentity {
        TLSIdentity(self, serverNames: names)
    }

    deinit {
        unsafe X509_free(self.certificate)
        unsafe sluice_x509_stack_free(self.chain)
        unsafe EVP_PKEY_free(self.key)
    }

    /// The certificate's period of validity; `nil` if one of its times is not readable.
    package var validity: CertificateValidity? {
        guard let notBefore = unsafe Self.seconds(X509_get0_notBefore(self.certificate)),
            let notAfter = unsafe Self.seconds(X509_get0_notAfter(self.certificate))
        else { return nil }
        return CertificateValidity(notBefore: notBefore, notAfter: notAfter)
    }

    /// Seconds since 1970.
    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
        defer { unsafe ASN1_STRING_free(epoch) }
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    /// The key algorithm (RSA, EC, …): a server may present one certificate of each type.
    var keyType: Int32 { unsafe EVP_PKEY_get_base_id(self.key) }

    /// Installs the identity on a connection, in addition to those of other key types.
    func install(on ssl: OpaquePointer?) -> Bool {
        unsafe SSL_use_cert_and_key(ssl, self.certificate, self.key, self.chain, 1) == 1
    }

    func install(onContext context: OpaquePointer) -> Bool {
        unsafe SSL_CTX_use_cert_and_key(context, self.certificate, self.key, self.chain, 1) == 1
    }
}

/// A certificate's period of validity, in seconds since 1970 (RFC 5280 §4.1.2.5).
package struct CertificateValidity: Sendable, Equatable {
    package let notBefore: Int64
    package let notAfter: Int64
}

/// The client identity that the caller provided in response to a certificate request.
enum SelectedIdentity {
    /// The caller has not decided yet.
    case undecided
    case noCertificate
    case identity(TLSIdentity)
}
