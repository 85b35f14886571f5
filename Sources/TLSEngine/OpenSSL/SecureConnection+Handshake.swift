import COpenSSL

/// The handshake, with the two questions that may interrupt it.
extension SecureConnection {
    /// Whether the server's caller decides over client certificates.
    ///
    /// OpenSSL can suspend a client's verification but not a server's. So a server goes on provisionally, and OpenSSL
    /// sees no further input: the handshake cannot proceed past the next record, no application data passes in either
    /// direction, and no ticket is issued, before the caller has answered.
    var decidesLate: Bool {
        let configuration = self.material.configuration
        return configuration.role == .server && configuration.asksForDecision && configuration.peerVerification != .none
    }

    func handshake(_ dialogue: HandshakeDialogue) -> SecureEvent? {
        if self.decidesLate, dialogue.decision == .reject { return self.refuseClient(dialogue) }
        ErrorQueue.clear()
        let result = unsafe SSL_do_handshake(self.ssl)
        if let request = dialogue.request {
            dialogue.request = nil
            dialogue.question = .verification
            return .verificationRequested(request)
        }
        if result == 1 { return self.completeHandshake(dialogue) }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return nil
        case SSL_ERROR_WANT_X509_LOOKUP:
            dialogue.question = .clientCertificate
            return .clientCertificateRequested(issuers: self.acceptedIssuers())
        case SSL_ERROR_ZERO_RETURN:
            self.fail(.closedDuringHandshake, "the peer closed during the handshake")
        default:
            self.fail(ErrorQueue.saysNotTLS ? .notTLS : .handshake, "the handshake failed")
        }
        return self.tellFailure()
    }

    private func completeHandshake(_ dialogue: HandshakeDialogue) -> SecureEvent? {
        guard let facts = self.facts() else {
            self.fail(.engine, "the handshake has no facts")
            return self.tellFailure()
        }
        if self.decidesLate, dialogue.decision == .accept { self.issueWithheldTickets(facts.version) }
        self.takeRecordsOver(dialogue, facts)
        self.phase = .open
        self.flushOutput()
        return .handshakeCompleted(facts)
    }

    private func issueWithheldTickets(_ version: TLSVersion) {
        guard version == .tls13, self.material.configuration.resumption != .off else { return }
        unsafe SSL_new_session_ticket(self.ssl)
        unsafe SSL_do_handshake(self.ssl)
        ErrorQueue.clear()
    }

    /// Ends the handshake of a client that was rejected after OpenSSL had gone on.
    private func refuseClient(_ dialogue: HandshakeDialogue) -> SecureEvent? {
        ErrorQueue.clear()
        if unsafe SSL_version(self.ssl) == TLS1_2_VERSION {
            // Held before the client's ChangeCipherSpec, so both directions are still in the clear: bad_certificate.
            self.write(record: [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x2A])
            self.alert = TLSAlert(code: 42, origin: .ours)
        } else {
            self.refuseSignature()
        }
        dialogue.refusal = .rejected
        self.fail(.rejected, "rejected")
        return self.tellFailure()
    }

    private func write(record: [UInt8]) {
        unsafe record.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe self.channel.pointee.output.append(start, count: bytes.count)
        }
    }

    /// OpenSSL sends an encrypted alert only where it finds a fault itself: in the client's signature if that is here
    /// (handshake_failure), else in a record that no peer may send (unexpected_message).
    private func refuseSignature() {
        unsafe sluice_refuse_signatures(self.ssl)
        unsafe SSL_do_handshake(self.ssl)
        if self.alert == nil { self.provokeAlert() }
    }

    /// Has OpenSSL send unexpected_message, by showing it a record that no peer may send.
    func provokeAlert() {
        let impossible: [UInt8] = [0x16, 0x03, 0x03, 0xFF, 0xFF]
        unsafe impossible.withUnsafeBytes { bytes in
            unsafe self.channel.pointee.input = bytes
            var byte: UInt8 = 0
            var count = 0
            unsafe SSL_read_ex(self.ssl, &byte, 1, &count)
            unsafe self.channel.pointee.input = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        ErrorQueue.clear()
    }

    private func acceptedIssuers() -> [[UInt8]] {
        let names = unsafe SSL_get0_peer_CA_list(self.ssl)
        return (0..<(unsafe sluice_name_count(names))).map { index in
            unsafe CertificateFields.derBytes(ofName: sluice_name_at(names, index))
        }
    }

    func offerSession() {
        guard let key = self.resumptionKey, self.material.configuration.resumption != .off else { return }
        unsafe self.material.sessions.session(for: key)?.offer(on: self.ssl)
    }
}
