import COpenSSL

/// What OpenSSL asks in the middle of a handshake.
extension SecureConnection {
    /// Verifies the peer's chain, or begins to wait for the caller's decision over it.
    /// - Returns: whether the handshake goes on.
    func judgePeer(_ store: OpaquePointer) -> Bool {
        guard let dialogue = self.dialogue else { return false }
        if let decision = dialogue.decision { return unsafe self.apply(decision, dialogue, store) }
        let verdict = unsafe self.verdict(store)
        let configuration = self.material.configuration
        // OpenSSL would keep the verified chain for as long as the connection lives; nobody asks for it.
        defer { unsafe X509_STORE_CTX_set0_verified_chain(store, nil) }
        guard configuration.asksForDecision else {
            if verdict.isValid { return true }
            let pinned = verdict.code == X509_V_ERR_APPLICATION_VERIFICATION
            dialogue.refusal = pinned ? .pinMismatch : .verification(verdict)
            return false
        }
        let chain = unsafe Self.derChain(X509_STORE_CTX_get0_untrusted(store))
        dialogue.request = VerificationRequest(
            peerChain: chain, verdict: verdict, serverName: self.serverName ?? self.requestedName)
        // Until the caller answers, provisionally: the server's input is held, the client is suspended.
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        if configuration.role == .server {
            unsafe self.channel.pointee.inputHeld = true
        } else {
            unsafe sluice_suspend_verification(self.ssl)
        }
        return true
    }

    private func apply(
        _ decision: VerificationDecision, _ dialogue: HandshakeDialogue, _ store: OpaquePointer
    ) -> Bool {
        switch decision {
        case .accept:
            unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
            return true
        case .reject:
            dialogue.refusal = .rejected
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return false
        }
    }

    private func verdict(_ store: OpaquePointer) -> VerificationVerdict {
        let configuration = self.material.configuration
        if configuration.peerVerification != .none {
            let valid = unsafe X509_verify_cert(store) == 1
            let code = unsafe X509_STORE_CTX_get_error(store)
            guard valid, code == X509_V_OK else { return unsafe self.verdict(store, code) }
        }
        if !configuration.pins.isEmpty, unsafe !self.matchesPin(store, configuration.pins) {
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return VerificationVerdict(
                code: X509_V_ERR_APPLICATION_VERIFICATION, text: "no pinned key in the chain", depth: 0)
        }
        return VerificationVerdict(code: X509_V_OK, text: "ok", depth: 0)
    }

    private func verdict(_ store: OpaquePointer, _ found: Int32) -> VerificationVerdict {
        // A verification that could not be done has failed, whatever the code says.
        let code = found == X509_V_OK ? X509_V_ERR_UNSPECIFIED : found
        unsafe X509_STORE_CTX_set_error(store, code)
        return VerificationVerdict(
            code: code, text: unsafe String(cString: X509_verify_cert_error_string(Int(code))),
            depth: Int(unsafe X509_STORE_CTX_get_error_depth(store)))
    }

    /// Without verification the chain that the peer sent proves nothing, so only its own key counts.
    private func matchesPin(_ store: OpaquePointer, _ pins: Set<PublicKeyPin>) -> Bool {
        let chain = unsafe X509_STORE_CTX_get0_chain(store)
        let count = unsafe sluice_x509_count(chain)
        guard count > 0 else {
            return unsafe CertificateFields.pin(of: X509_STORE_CTX_get0_cert(store)).map(pins.contains) ?? false
        }
        return (0..<count).contains { index in
            unsafe CertificateFields.pin(of: sluice_x509_at(chain, index)).map(pins.contains) ?? false
        }
    }

    /// Server: shows the identities for the name that was asked for; the default ones are in place already. Client:
    /// shows what the caller gave, or begins to wait for it.
    /// - Returns: 1 to go on, 0 to fail, -1 to be asked again.
    func chooseIdentity() -> Int32 {
        if self.material.configuration.role == .server { return self.showRequestedIdentity() ? 1 : 0 }
        switch self.dialogue?.chosenIdentity ?? .without {
        case .undecided: return -1
        case .without: return 1
        case .given(let identity): return unsafe identity.install(on: self.ssl) ? 1 : 0
        }
    }

    private func showRequestedIdentity() -> Bool {
        guard let name = self.requestedName else { return true }
        let wanted = self.material.identities(for: name)
        guard let first = wanted.first, first !== self.material.configuration.identities.first else { return true }
        unsafe SSL_certs_clear(self.ssl)
        return wanted.allSatisfy { unsafe $0.install(on: self.ssl) }
    }

    /// Takes over the reference to a session that the server lets us resume.
    func keep(_ session: OpaquePointer) -> Bool {
        guard let key = self.resumptionKey else { return false }
        self.material.sessions.store(unsafe KeptSession(owning: session), for: key)
        return true
    }
}
