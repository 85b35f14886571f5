import COpenSSL

extension SecureConnection {
    // MARK: Reading and writing

    /// Processes `input` up to the next event.
    /// - Returns: the event, and the number of bytes of `input` not consumed.
    func process(_ input: UnsafeRawBufferPointer, _ plaintext: inout MutableRawSpan) -> (SecureEvent?, left: Int) {
        if let records = self.records { return unsafe self.advance(records, input, &plaintext) }
        unsafe self.channel.pointee.input = input
        let event = self.advance(&plaintext)
        let left = unsafe self.channel.pointee.input.count
        unsafe self.channel.pointee.input = UnsafeRawBufferPointer(start: nil, count: 0)
        switch self.phase {
        case .failed, .inputClosed: return (event, 0)
        case .handshaking, .open: return (event, left)
        }
    }

    private func advance(_ plaintext: inout MutableRawSpan) -> SecureEvent? {
        switch self.phase {
        case .handshaking(let state): return state.pendingDecision == .none ? self.handshake(state) : nil
        case .open: return unsafe plaintext.withUnsafeMutableBytes { unsafe self.decrypt(into: $0) }
        case .inputClosed: return nil
        case .failed: return self.reportFailure()
        }
    }

    private func decrypt(into plaintext: UnsafeMutableRawBufferPointer) -> SecureEvent? {
        guard let start = plaintext.baseAddress, plaintext.count > 0 else { return nil }
        if !self.earlyPlaintext.isEmpty { return unsafe self.takeEarlyPlaintext(into: plaintext) }
        // Most calls find no more input; asking OpenSSL would cost a sixth of decrypting a record.
        if unsafe self.channel.pointee.input.isEmpty, unsafe SSL_has_pending(self.ssl) == 0 { return nil }
        var count = 0
        ErrorQueue.clear()
        let result = unsafe SSL_read_ex(self.ssl, start, plaintext.count, &count)
        guard self.consecutiveHandshakeMessages <= CompactRecordLayer.nonDataRecordLimit else {
            return self.failForMessageLimit()
        }
        // Before the output: the error is that of the last call.
        let error = unsafe SSL_get_error(self.ssl, result)
        if error != SSL_ERROR_SSL { self.flushOutput() }
        if result == 1 {
            self.consecutiveHandshakeMessages = 0
            return .plaintext(count: count)
        }
        switch error {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return nil
        case SSL_ERROR_ZERO_RETURN:
            self.phase = .inputClosed
            return .inputClosed
        default:
            self.fail(.record, "a record cannot be read")
            return self.reportFailure()
        }
    }

    /// Counts a post-handshake message, such as KeyUpdate or NewSessionTicket. OpenSSL does not limit their number,
    /// processes all of them within one call, and derives new keys for each KeyUpdate; beyond the limit its input is
    /// paused.
    func handshakeMessageReceived() {
        self.consecutiveHandshakeMessages += 1
        guard self.consecutiveHandshakeMessages > CompactRecordLayer.nonDataRecordLimit else { return }
        unsafe self.channel.pointee.isInputPaused = true
    }

    private func failForMessageLimit() -> SecureEvent? {
        unsafe self.channel.pointee.isInputPaused = false
        self.sendUnexpectedMessageAlert()
        self.fail(TLSFailure(.record, reasons: [RecordViolation.tooManyNonDataRecords.explanation], alert: self.alert))
        return self.reportFailure()
    }

    /// - Returns: `false` if the write failed, or must be retried after more input.
    func encrypt(_ plaintext: UnsafeRawBufferPointer) -> Bool {
        if let records = self.records {
            if records.write(unsafe RawSpan(_unsafeBytes: plaintext), to: self.output) { return true }
            self.fail(.engine, "a record cannot be written")
            return false
        }
        var count = 0
        ErrorQueue.clear()
        let result = unsafe SSL_write_ex(self.ssl, plaintext.baseAddress, plaintext.count, &count)
        if result == 1 {
            self.consecutiveHandshakeMessages = 0
            return true
        }
        // OpenSSL must first receive the rest of a message of the peer that spans records, such as KeyUpdate.
        if unsafe SSL_get_error(self.ssl, result) != SSL_ERROR_WANT_READ {
            self.fail(.engine, "a record cannot be written")
        }
        return false
    }

    /// Encrypts the queued plaintext, then sends a pending close_notify.
    func flushOutput() {
        guard self.isHandshakeCompleted else { return }
        if !self.queuedPlaintext.isEmpty {
            // Moved out of `self`, because a failure clears the queue.
            var bytes: [UInt8] = []
            swap(&bytes, &self.queuedPlaintext)
            guard unsafe bytes.withUnsafeBytes({ unsafe self.encrypt($0) }) else {
                if self.failure == nil { self.queuedPlaintext = bytes }
                return
            }
        }
        guard case .closing = self.outputState else { return }
        if let records = self.records {
            if records.writeCloseNotify(to: self.output) { self.outputState = .closed }
            return
        }
        ErrorQueue.clear()
        // 0: sent, the peer's is outstanding; 1: sent, the peer's was received. Negative: a message of the peer is
        // incomplete; retried later.
        if unsafe SSL_shutdown(self.ssl) >= 0 { self.outputState = .closed }
        ErrorQueue.clear()
    }

    func reportFailure() -> SecureEvent? {
        guard case .failed(let failure, reported: false) = self.phase else { return nil }
        self.phase = .failed(failure, reported: true)
        return .failed(failure)
    }

    /// Fails the connection. An alert of the peer or a rejection by a callback takes precedence over `kind`.
    func fail(_ kind: TLSFailure.Kind, _ what: String) {
        let errors = ErrorQueue.takeReasons()
        let cause: TLSFailure.Kind
        if self.alert?.origin == .peer {
            cause = .peerAlert
        } else {
            cause = self.callbackState?.rejectionKind ?? kind
        }
        var reasons = errors.isEmpty ? [what] : errors
        switch cause {
        case .verification(let result): reasons.append(result.description)
        case .pinMismatch: reasons.append("the chain holds none of the pinned keys")
        case .rejected: reasons = ["the peer's certificate was rejected by the application"]
        default: break
        }
        self.fail(TLSFailure(cause, reasons: reasons, alert: self.alert))
    }

    func fail(_ failure: TLSFailure) {
        guard self.failure == nil else { return }
        self.phase = .failed(failure, reported: false)
        self.records = nil
        self.queuedPlaintext = []
        self.deferredInput = []
    }

    // MARK: Compact record layer

    /// Whether `CompactRecordLayer` replaces OpenSSL after a TLS 1.3 handshake.
    static func usesCompactRecords(_ configuration: TLSConfiguration) -> Bool {
        configuration.recordLayer == .compact && configuration.role == .server && configuration.maximumVersion == .tls13
    }

    /// Whether OpenSSL's SSL object still exists.
    package var holdsOpenSSLConnection: Bool { unsafe self.ssl != nil }

    /// Replaces OpenSSL's SSL object, which holds 14 KiB, by `CompactRecordLayer` right after the handshake. Keeps
    /// OpenSSL for another version or cipher suite, and if it has buffered input.
    func switchToCompactRecords(_ state: HandshakeCallbackState, _ metadata: TLSMetadata) {
        guard Self.usesCompactRecords(self.snapshot.configuration) else { return }
        unsafe SSL_set_msg_callback(self.ssl, nil)
        guard metadata.version == .tls13, unsafe SSL_has_pending(self.ssl) == 0,
            let suite = RecordSuite(rawValue: metadata.cipherIdentifier),
            let records = state.secrets.makeRecords(suite)
        else { return }
        self.records = records
        self.freeOpenSSLConnection()
    }

    /// Frees OpenSSL's SSL object. The session stays resumable unless the connection failed.
    func freeOpenSSLConnection() {
        guard let ssl = unsafe self.ssl else { return }
        // Callbacks must not find this object any more.
        unsafe SSL_set_ex_data(ssl, 0, nil)
        // OpenSSL invalidates the session of a connection that was not shut down, also if the peer merely disconnected.
        if self.failure == nil { unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(ssl)
        unsafe self.ssl = nil
    }

    /// Processes `input` with the compact record layer.
    func advance(
        _ records: CompactRecordLayer, _ input: UnsafeRawBufferPointer, _ plaintext: inout MutableRawSpan
    ) -> (SecureEvent?, left: Int) {
        guard case .open = self.phase else { return (self.reportFailure(), 0) }
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
        case .failed(.peer(let violation)): self.fail(violation, records)
        }
        return (self.reportFailure(), 0)
    }

    /// Sends an alert, unless our output is closed, and fails the connection.
    private func fail(_ violation: RecordViolation, _ records: CompactRecordLayer) {
        ErrorQueue.clear()
        if case .open = self.outputState, records.writeAlert(violation.alert, to: self.output) {
            self.alert = TLSAlert(code: violation.alert, origin: .ours)
        }
        self.fail(TLSFailure(.record, reasons: [violation.explanation], alert: self.alert))
    }
}
