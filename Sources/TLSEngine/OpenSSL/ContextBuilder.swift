import COpenSSL

/// Writes a configuration into a new SSL_CTX.
@safe
struct ContextBuilder {
    let handle: OpaquePointer
    let configuration: TLSConfiguration

    func build(trust: TrustStore, sessionContext: [UInt8]) throws(TLSFailure) {
        ErrorQueue.clear()
        unsafe sluice_ctx_set_modes(self.handle)
        try self.setVersionsAndCiphers()
        try self.setProtocols()
        try self.setIdentities()
        unsafe SSL_CTX_set1_cert_store(self.handle, trust.handle)
        try self.setVerification()
        try self.setSessions(context: sessionContext)
        unsafe SSL_CTX_set_info_callback(self.handle, noteProgress)
        if self.configuration.keyLog != nil || SecureConnection.mayTakeOver(self.configuration) {
            unsafe SSL_CTX_set_keylog_callback(self.handle, logKey)
        }
    }

    private func setVersionsAndCiphers() throws(TLSFailure) {
        let configuration = self.configuration
        guard configuration.minimumVersion <= configuration.maximumVersion else {
            throw TLSFailure(.configuration, reasons: ["the minimum TLS version is above the maximum"])
        }
        guard (0...5).contains(configuration.securityLevel) else {
            throw TLSFailure(.configuration, reasons: ["the security level is not 0 to 5"])
        }
        unsafe SSL_CTX_set_security_level(self.handle, Int32(configuration.securityLevel))
        let minimum = Int32(configuration.minimumVersion.rawValue)
        let maximum = Int32(configuration.maximumVersion.rawValue)
        guard unsafe sluice_ctx_set_versions(self.handle, minimum, maximum) == 1 else {
            throw ErrorQueue.failure(.configuration, "these TLS versions are not available")
        }
        let list = configuration.cipherList
        guard unsafe SSL_CTX_set_cipher_list(self.handle, list) == 1 else {
            throw ErrorQueue.failure(.configuration, "the cipher list \"\(list)\" names no usable cipher")
        }
        let suites = configuration.cipherSuites
        guard unsafe SSL_CTX_set_ciphersuites(self.handle, suites) == 1 else {
            throw ErrorQueue.failure(.configuration, "the cipher suites \"\(suites)\" are not all known")
        }
        if configuration.role == .server { unsafe sluice_ctx_prefer_server_order(self.handle) }
    }

    private func setProtocols() throws(TLSFailure) {
        let names = self.configuration.applicationProtocols
        guard !names.isEmpty else { return }
        guard let encoded = ApplicationProtocols.encode(names) else {
            throw TLSFailure(.configuration, reasons: ["an application protocol's name is not 1 to 255 bytes"])
        }
        switch self.configuration.role {
        case .client:
            guard unsafe SSL_CTX_set_alpn_protos(self.handle, encoded, UInt32(encoded.count)) == 0 else {
                throw ErrorQueue.failure(.engine, "the application protocols cannot be set")
            }
        case .server:
            unsafe SSL_CTX_set_alpn_select_cb(self.handle, chooseProtocol, nil)
        }
    }

    private func setIdentities() throws(TLSFailure) {
        let identities = self.configuration.identities
        switch self.configuration.role {
        case .client:
            if self.configuration.asksForClientCertificate {
                unsafe SSL_CTX_set_cert_cb(self.handle, chooseIdentity, nil)
            }
            if let identity = identities.first, !self.configuration.asksForClientCertificate {
                try self.install(identity)
            }
        case .server:
            guard let first = identities.first else {
                throw TLSFailure(.configuration, reasons: ["a server needs a certificate"])
            }
            // Another certificate for the same names stands beside the first if its key is of another kind.
            var kinds: Set<Int32> = []
            for identity in identities where identity.serverNames == first.serverNames {
                if kinds.insert(identity.keyKind).inserted { try self.install(identity) }
            }
            unsafe SSL_CTX_set_cert_cb(self.handle, chooseIdentity, nil)
            unsafe _ = sluice_ctx_set_server_name_callback(self.handle, judgeServerName)
        }
    }

    private func install(_ identity: TLSIdentity) throws(TLSFailure) {
        guard unsafe identity.install(onContext: self.handle) else {
            throw ErrorQueue.failure(.configuration, "the certificate is not acceptable")
        }
    }

    private func setVerification() throws(TLSFailure) {
        let configuration = self.configuration
        unsafe SSL_CTX_set_verify(self.handle, self.verificationMode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(self.handle, judgePeer, nil)
        let parameters = unsafe SSL_CTX_get0_param(self.handle)
        switch configuration.revocation {
        case .off: break
        case .peer: unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_CRL_CHECK))
        case .wholeChain:
            unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
        }
        // What the caller names as an anchor is one, whether it signed itself or not.
        if !configuration.trust.extra.isEmpty {
            unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        }
        guard configuration.role == .server, configuration.peerVerification != .none else { return }
        for source in configuration.trust.extra {
            let reader = try source.reader()
            unsafe try reader.eachCertificate { unsafe SSL_CTX_add_client_CA(self.handle, $0) }
        }
    }

    private var verificationMode: Int32 {
        switch (self.configuration.role, self.configuration.peerVerification) {
        case (.client, .none):
            self.configuration.asksForDecision || !self.configuration.pins.isEmpty ? SSL_VERIFY_PEER : SSL_VERIFY_NONE
        case (.client, .optional), (.client, .required), (.server, .optional): SSL_VERIFY_PEER
        case (.server, .none): SSL_VERIFY_NONE
        case (.server, .required): SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        }
    }

    private func setSessions(context: [UInt8]) throws(TLSFailure) {
        guard (1...604_800).contains(self.configuration.sessionLifetime) else {
            throw TLSFailure(.configuration, reasons: ["the session lifetime is not 1 to 604800 seconds"])
        }
        unsafe SSL_CTX_set_timeout(self.handle, self.configuration.sessionLifetime)
        unsafe SSL_CTX_set_session_id_context(self.handle, context, UInt32(context.count))
        switch (self.configuration.resumption, self.configuration.role) {
        case (.off, _):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_off), 0)
            unsafe sluice_ctx_use_tickets(self.handle, 0)
            unsafe SSL_CTX_set_num_tickets(self.handle, 0)
        case (.tickets, .client), (.serverCache, .client):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_client), 0)
            unsafe SSL_CTX_sess_set_new_cb(self.handle, keepSession)
        case (.tickets, .server):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_off), 0)
        case (.serverCache(let limit), .server):
            // OpenSSL takes 0 for unlimited.
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_server), max(1, limit))
            unsafe sluice_ctx_use_tickets(self.handle, 0)
        }
    }
}
