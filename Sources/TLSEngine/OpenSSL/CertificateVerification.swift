import COpenSSL

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

/// The name or IP address that the server's certificate must match (reference identifier, RFC 9525 §6.1).
struct ReferenceIdentity {
    /// Without brackets and trailing dot.
    let text: String

    /// - Returns: `nil` if no name is given and none is needed.
    static func validated(
        _ name: String?, in configuration: TLSConfiguration
    ) throws(TLSFailure) -> ReferenceIdentity? {
        guard let name else {
            guard configuration.checksServerName, configuration.peerVerification != .none else { return nil }
            throw TLSFailure(.configuration, reasons: ["verification requires the server's name"])
        }
        var text = Substring(name)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        if text.hasSuffix(".") { text = text.dropLast() }
        guard (1...253).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw TLSFailure(.configuration, reasons: ["the server's name is not a host name or IP address in ASCII"])
        }
        return ReferenceIdentity(text: String(text))
    }

    /// Sends the name as SNI, unless it is an address (RFC 6066 §3), and makes verification require it.
    func install(on ssl: OpaquePointer?, verified: Bool) throws(TLSFailure) {
        if !self.isAddress, unsafe sluice_set_server_name(ssl, self.text) != 1 { throw self.unacceptable() }
        if verified { unsafe try self.require(in: SSL_get0_param(ssl)) }
    }

    /// Makes verification require a certificate for the name or address.
    func require(in parameters: OpaquePointer?) throws(TLSFailure) {
        if self.isAddress {
            guard unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, self.text) == 1 else { throw self.unacceptable() }
            return
        }
        // RFC 9525 §6.3 and §2: a wildcard is a whole label, and only subject alternative names count.
        unsafe X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        guard unsafe X509_VERIFY_PARAM_set1_host(parameters, self.text, 0) == 1 else { throw self.unacceptable() }
    }

    private var isAddress: Bool {
        guard let address = unsafe a2i_IPADDRESS(self.text) else {
            ErrorQueue.clear()
            return false
        }
        unsafe ASN1_OCTET_STRING_free(address)
        return true
    }

    private func unacceptable() -> TLSFailure {
        ErrorQueue.failure(.configuration, "\"\(self.text)\" is not a valid server name")
    }
}
