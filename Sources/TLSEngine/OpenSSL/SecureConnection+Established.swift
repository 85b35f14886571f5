import COpenSSL

/// `TLSRecordLayer.compact`: going on without OpenSSL's own connection once a server's handshake of TLS 1.3 is over,
/// which would hold 14 KiB for as long as the connection lives.
extension SecureConnection {
    /// Whether records are taken over after the handshake, if it comes to TLS 1.3.
    static func mayTakeOver(_ configuration: TLSConfiguration) -> Bool {
        configuration.recordLayer == .compact && configuration.role == .server && configuration.maximumVersion == .tls13
    }

    /// Whether OpenSSL's own connection is still there.
    package var holdsLibraryState: Bool { unsafe self.ssl != nil }

    /// Takes the records over right behind the handshake, or leaves everything as it is where something stands against
    /// it: another version or cipher suite, or input that OpenSSL has read already.
    func takeRecordsOver(_ dialogue: HandshakeDialogue, _ facts: TLSFacts) {
        guard Self.mayTakeOver(self.material.configuration) else { return }
        unsafe SSL_set_msg_callback(self.ssl, nil)
        guard facts.version == .tls13, unsafe SSL_has_pending(self.ssl) == 0,
            let suite = RecordSuite(rawValue: facts.cipherIdentifier),
            let records = dialogue.secrets.makeRecords(suite)
        else { return }
        self.records = records
        self.releaseLibraryState()
    }

    /// Gives back what OpenSSL holds for the connection. Its session stays good to resume, unless the connection
    /// failed.
    func releaseLibraryState() {
        guard let ssl = unsafe self.ssl else { return }
        // From here on no callback may find this object.
        unsafe SSL_set_ex_data(ssl, 0, nil)
        // OpenSSL forgets the session of a connection that was not shut down; a peer that just went away is no reason
        // to.
        if self.failure == nil { unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(ssl)
        unsafe self.ssl = nil
    }

    /// One event of records that were taken over.
    func advance(
        _ records: EstablishedRecords, _ input: UnsafeRawBufferPointer, _ plaintext: inout MutableRawSpan
    ) -> (SecureEvent?, left: Int) {
        guard case .open = self.phase else { return (self.tellFailure(), 0) }
        var position = 0
        let bytes = unsafe RawSpan(_unsafeBytes: input)
        guard let event = records.nextEvent(bytes, at: &position, plaintext: &plaintext) else {
            return (nil, input.count - position)
        }
        switch event {
        case .plaintext(let count): return (.plaintext(count: count), input.count - position)
        case .closed:
            self.phase = .inputClosed
            return (.inputClosed, 0)
        case .alert(let code):
            self.alert = TLSAlert(code: code, origin: .peer)
            self.fail(TLSFailure(.peerAlert, reasons: ["the peer ended the connection"], alert: self.alert))
        case .failed(.engine): self.fail(.engine, "a record cannot be decrypted")
        case .failed(.peer(let violation)): self.accuse(violation, records)
        }
        return (self.tellFailure(), 0)
    }

    /// Says what the peer did wrong, unless we have said that nothing more comes.
    private func accuse(_ violation: RecordViolation, _ records: EstablishedRecords) {
        ErrorQueue.clear()
        if case .open = self.outputState, records.writeAlert(violation.alert, to: self.output) {
            self.alert = TLSAlert(code: violation.alert, origin: .ours)
        }
        self.fail(TLSFailure(.record, reasons: [violation.words], alert: self.alert))
    }
}
