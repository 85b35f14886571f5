import COpenSSL

/// A verification apart from any connection.
extension VerificationRequest {
    /// What the chain is worth by other roots than the connection's own: whether it leads to one of them, is valid today,
    /// and is a server's for the name that was asked for. Pins and revocation lists do not count.
    ///
    /// May be called at any time, from any thread.
    /// - Throws: `.unreadableMaterial` for roots that cannot be read, where the system's are asked for and there are none,
    ///   and for a chain that holds anything but certificates; `.configuration` for a name that no server can have.
    public func verdict(by trust: TrustAnchors) throws(TLSFailure) -> VerificationVerdict {
        var configuration = TLSConfiguration.client()
        configuration.trust = trust
        configuration.checksServerName = self.serverName != nil
        let name = try ConnectionName.checked(self.serverName, in: configuration)
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
        // What the caller names as a root is one, whether it signed itself or not.
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
                throw ErrorQueue.failure(.unreadableMaterial, "the chain holds what is no certificate")
            }
            guard unsafe sluice_x509_push(chain, certificate) != 0 else {
                unsafe X509_free(certificate)
                throw ErrorQueue.failure(.engine, "no memory")
            }
        }
        guard !self.peerChain.isEmpty else {
            throw TLSFailure(.unreadableMaterial, reasons: ["the chain holds no certificate"])
        }
    }

    private static func outcome(of result: Int32, _ context: OpaquePointer) -> VerificationVerdict {
        let found = unsafe X509_STORE_CTX_get_error(context)
        ErrorQueue.clear()
        guard result != 1 else { return VerificationVerdict(code: X509_V_OK, text: "ok", depth: 0) }
        // A verification that could not be done has failed, whatever the code says.
        let code = found == X509_V_OK ? X509_V_ERR_UNSPECIFIED : found
        return VerificationVerdict(
            code: code, text: unsafe String(cString: X509_verify_cert_error_string(Int(code))),
            depth: Int(unsafe X509_STORE_CTX_get_error_depth(context)))
    }
}
