import COpenSSL

/// Bytes between the caller and OpenSSL.
extension SecureConnection {
    /// One event from `input`; and how many bytes of it are left.
    func step(_ input: UnsafeRawBufferPointer, _ plaintext: inout MutableRawSpan) -> (SecureEvent?, left: Int) {
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
        case .handshaking(let dialogue): return dialogue.question == .none ? self.handshake(dialogue) : nil
        case .open: return unsafe plaintext.withUnsafeMutableBytes { unsafe self.decrypt(into: $0) }
        case .inputClosed: return nil
        case .failed: return self.tellFailure()
        }
    }

    private func decrypt(into plaintext: UnsafeMutableRawBufferPointer) -> SecureEvent? {
        guard let start = plaintext.baseAddress, plaintext.count > 0 else { return nil }
        // Most calls only learn that there is no more; OpenSSL would take a sixth of a record's time to say so.
        if unsafe self.channel.pointee.input.isEmpty, unsafe SSL_has_pending(self.ssl) == 0 { return nil }
        var count = 0
        ErrorQueue.clear()
        let result = unsafe SSL_read_ex(self.ssl, start, plaintext.count, &count)
        guard self.messagesInSuccession <= EstablishedRecords.overheadLimit else { return self.refuseMessages() }
        self.flushOutput()
        if result == 1 {
            self.messagesInSuccession = 0
            return .plaintext(count: count)
        }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return nil
        case SSL_ERROR_ZERO_RETURN:
            self.phase = .inputClosed
            return .inputClosed
        default:
            self.fail(.record, "a record cannot be read")
            return self.tellFailure()
        }
    }

    /// Counts a message behind the handshake: a key update, a ticket. OpenSSL sets no limit to them, works all off within
    /// one call, and makes new keys for each; so it sees no more input once they are too many.
    func noteMessageReceived() {
        self.messagesInSuccession += 1
        guard self.messagesInSuccession > EstablishedRecords.overheadLimit else { return }
        unsafe self.channel.pointee.inputHeld = true
    }

    private func refuseMessages() -> SecureEvent? {
        unsafe self.channel.pointee.inputHeld = false
        self.provokeAlert()
        self.fail(TLSFailure(.record, reasons: [RecordViolation.nothingButOverhead.words], alert: self.alert))
        return self.tellFailure()
    }

    /// - Returns: `false` if it must be tried again after more input, or failed.
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
            self.messagesInSuccession = 0
            return true
        }
        // A message of the peer's that arrived in part (a key update or ticket over two records) must be completed
        // first.
        if unsafe SSL_get_error(self.ssl, result) != SSL_ERROR_WANT_READ {
            self.fail(.engine, "a record cannot be written")
        }
        return false
    }

    /// Sends what had to wait, and close_notify if that is wanted and nothing waits any more.
    func flushOutput() {
        guard self.isHandshakeCompleted else { return }
        if !self.held.isEmpty {
            // Moved out, because a failure on the way drops what is held.
            var bytes: [UInt8] = []
            swap(&bytes, &self.held)
            guard unsafe bytes.withUnsafeBytes({ unsafe self.encrypt($0) }) else {
                if self.failure == nil { self.held = bytes }
                return
            }
        }
        guard case .closing = self.outputState else { return }
        if let records = self.records {
            if records.writeCloseNotify(to: self.output) { self.outputState = .closed }
            return
        }
        ErrorQueue.clear()
        // 0: sent, and the peer's has not come; 1: sent, and it had. Below: a message of the peer's is incomplete;
        // tried again.
        if unsafe SSL_shutdown(self.ssl) >= 0 { self.outputState = .closed }
        ErrorQueue.clear()
    }

    func tellFailure() -> SecureEvent? {
        guard case .failed(let failure, told: false) = self.phase else { return nil }
        self.phase = .failed(failure, told: true)
        return .failed(failure)
    }

    /// Fails with what OpenSSL's queue and the callbacks found out, else as `kind`.
    func fail(_ kind: TLSFailure.Kind, _ what: String) {
        let reasons = ErrorQueue.takeReasons()
        let cause: TLSFailure.Kind
        if self.alert?.origin == .peer {
            cause = .peerAlert
        } else {
            cause = self.dialogue?.refusal ?? kind
        }
        var words = reasons.isEmpty ? [what] : reasons
        switch cause {
        case .verification(let verdict): words.append(verdict.description)
        case .pinMismatch: words.append("the chain holds none of the pinned keys")
        case .rejected: words = ["the peer's certificate was rejected by decision"]
        default: break
        }
        self.fail(TLSFailure(cause, reasons: words, alert: self.alert))
    }

    func fail(_ failure: TLSFailure) {
        guard self.failure == nil else { return }
        self.phase = .failed(failure, told: false)
        self.records = nil
        self.held = []
        self.aside = []
    }
}
