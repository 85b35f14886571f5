import COpenSSL

/// TLS for one connection, without its socket: ciphertext goes in through `nextEvent`, what is to be sent comes out of
/// `output`.
///
/// Confined to its owner's thread. After each call the owner takes the bytes of `output`, before it calls another
/// connection that shares the buffer. An idle connection owns no buffer.
///
/// OpenSSL does the handshake and protects the records. With `TLSRecordLayer.compact` a server gives OpenSSL's own
/// connection up behind the handshake of TLS 1.3, and protects its records here (`CompactRecordLayer`).
@safe
public final class SecureConnection {
    enum Phase {
        case handshaking(HandshakeCallbackState)
        case open
        case inputClosed
        indirect case failed(TLSFailure, told: Bool)
    }

    enum Output {
        case open
        /// close_notify is wanted but cannot be said yet.
        case closing
        case closed
    }

    /// Ciphertext kept aside while the caller takes its time; beyond this the connection fails. A caller that stops
    /// reading from the transport while it is asked never comes near.
    static let deferredInputLimit = 1 << 20

    let snapshot: ContextSnapshot
    /// OpenSSL's own connection; `nil` once `records` go on without it.
    var ssl: OpaquePointer?
    let channel: UnsafeMutablePointer<CiphertextBIO>
    let serverName: String?
    let resumptionKey: String?

    /// With `TLSRecordLayer.compact`: records behind the handshake of TLS 1.3, for which `ssl` was given up.
    var records: CompactRecordLayer?

    var phase = Phase.handshaking(HandshakeCallbackState())
    var outputState = Output.open
    /// Handshake messages that OpenSSL took behind the handshake since data last came or left.
    var consecutiveHandshakeMessages = 0
    /// The alert that ended the connection.
    var alert: TLSAlert?
    /// Ciphertext that came while the caller was asked.
    var deferredInput: [UInt8] = []
    /// Plaintext that cannot be encrypted yet.
    var queuedPlaintext: [UInt8] = []

    /// Makes a connection in its context's role.
    ///
    /// - Parameters:
    ///   - serverName: client: the host name (A-labels, a final dot allowed) or IP address that is wanted; asked for by
    ///     SNI if it is a name, and verified. Ignored on a server.
    ///   - resumptionKey: client: sessions are kept and resumed under this key; `nil` for no resumption. Connections
    ///     may share a key only if they go to the same server for the same purpose: a resumed session is not verified
    ///     anew.
    ///   - output: where ciphertext goes; may be shared by connections of one thread.
    /// - Throws: `.configuration` if the name is missing although it is to be verified, or cannot be one.
    public init(
        _ context: TLSContext, serverName: String? = nil, resumptionKey: String? = nil,
        output: CiphertextBuffer = CiphertextBuffer()
    ) throws(TLSFailure) {
        let material = context.snapshot
        let client = material.configuration.role == .client
        let name = client ? try ReferenceIdentity.validated(serverName, in: material.configuration) : nil
        ErrorQueue.clear()
        guard let ssl = unsafe SSL_new(material.handle) else { throw ErrorQueue.failure(.engine, "no TLS connection") }
        let channel = UnsafeMutablePointer<CiphertextBIO>.allocate(capacity: 1)
        unsafe channel.initialize(to: CiphertextBIO(output: output))
        self.snapshot = material
        unsafe self.ssl = ssl
        unsafe self.channel = channel
        self.serverName = name?.text
        self.resumptionKey = client ? resumptionKey : nil
        guard let bio = unsafe CiphertextBIO.makeBIO(for: channel) else {
            throw ErrorQueue.failure(.engine, "no TLS connection")
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        if client {
            unsafe SSL_set_connect_state(ssl)
            unsafe try name?.install(on: ssl, verified: material.configuration.checksServerName)
            self.offerSession()
        } else {
            unsafe SSL_set_accept_state(ssl)
            if self.delegatesClientVerification { unsafe sluice_withhold_tickets(ssl) }
        }
        unsafe SSL_set_msg_callback(ssl, messageCallback)
    }

    deinit {
        self.freeOpenSSLConnection()
        unsafe self.channel.deinitialize(count: 1)
        unsafe self.channel.deallocate()
    }

    /// Where ciphertext goes; may be changed when it is empty, as when the connection moves to another thread.
    public var output: CiphertextBuffer {
        get { unsafe self.channel.pointee.output }
        set { unsafe self.channel.pointee.output = newValue }
    }

    /// Ciphertext that waits in `output`, in bytes; counts other connections' bytes too if they were not taken.
    public var pendingCiphertext: Int { self.output.count }

    /// Lends the waiting ciphertext, then drops it.
    public func withCiphertext<R>(_ body: (RawSpan) -> R) -> R {
        self.output.take(body)
    }

    /// Plaintext that waits for the handshake (or for the rest of a message that the peer began) before it can be
    /// encrypted. Grows without refusal: who writes early watches it.
    public var pendingPlaintext: Int { self.queuedPlaintext.count }

    var callbackState: HandshakeCallbackState? {
        if case .handshaking(let dialogue) = self.phase { dialogue } else { nil }
    }

    var isAwaitingDecision: Bool {
        self.callbackState.map { $0.pendingDecision != .none } ?? false
    }

    var failure: TLSFailure? {
        if case .failed(let failure, _) = self.phase { failure } else { nil }
    }

    public var isHandshakeCompleted: Bool {
        switch self.phase {
        case .open, .inputClosed: true
        case .handshaking, .failed: false
        }
    }

    /// Client: puts the ClientHello into `output`. Without it the first `nextEvent` does so. Nothing on a server.
    public func start() {
        guard case .handshaking = self.phase, self.snapshot.configuration.role == .client else { return }
        var nothing = MutableRawSpan()
        var position = 0
        // With no input no event can come of it but a failure, which `nextEvent` tells again.
        _ = self.nextEvent(RawSpan(), at: &position, plaintext: &nothing)
        if case .failed(let failure, _) = self.phase { self.phase = .failed(failure, told: false) }
    }

    /// Takes ciphertext and gives the next event.
    ///
    /// Call it until it answers `nil`: then all of `ciphertext` is consumed, of which nothing need be kept. To stop
    /// earlier, keep what is behind `position` and offer it later; plaintext that was decrypted but did not fit is
    /// given by a call without ciphertext.
    /// - Parameters:
    ///   - position: first byte of `ciphertext` not consumed yet; moved on.
    ///   - plaintext: takes decrypted bytes, at its front; records are up to 16 KiB and come out in parts if there is
    ///     less room. With no room at all nothing is decrypted.
    /// - Returns: `nil` when only more ciphertext, or the answer to a question, can lead to another event.
    public func nextEvent(
        _ ciphertext: RawSpan, at position: inout Int, plaintext: inout MutableRawSpan
    ) -> SecureEvent? {
        let start = max(0, min(position, ciphertext.byteCount))
        let fresh = ciphertext.extracting(start..<ciphertext.byteCount)
        let waits = self.isAwaitingDecision
        if self.deferredInput.isEmpty, !waits {
            let (event, left) = unsafe fresh.withUnsafeBytes { unsafe self.process($0, &plaintext) }
            position = ciphertext.byteCount - left
            return event
        }
        position = ciphertext.byteCount
        if fresh.byteCount > Self.deferredInputLimit - self.deferredInput.count {
            self.fail(TLSFailure(.excessiveInput, reasons: ["too much came while a decision was awaited"]))
        } else {
            unsafe fresh.withUnsafeBytes { unsafe self.deferredInput.append(contentsOf: $0) }
            if waits { return nil }
        }
        // Moved out, so that a callback may look at this object while OpenSSL reads from it.
        var bytes: [UInt8] = []
        swap(&bytes, &self.deferredInput)
        let (event, left) = unsafe bytes.withUnsafeBytes { unsafe self.process($0, &plaintext) }
        if left > 0 { self.deferredInput = Array(bytes.suffix(left)) }
        return event
    }

    /// Encrypts `plaintext` into `output`: up to 16 KiB become one record, more become several. Before the handshake is
    /// completed the bytes are copied and leave right after it (`heldPlaintext`).
    /// - Throws: `.outputClosed` after `closeOutput`; what failed if the connection failed.
    public func write(_ plaintext: RawSpan) throws(TLSFailure) {
        if let failure = self.failure { throw failure }
        guard case .open = self.outputState else {
            throw TLSFailure(.outputClosed, reasons: ["written after the output was closed"])
        }
        guard plaintext.byteCount > 0 else { return }
        if self.isHandshakeCompleted, self.queuedPlaintext.isEmpty,
            unsafe plaintext.withUnsafeBytes({ unsafe self.encrypt($0) })
        {
            return
        }
        if let failure = self.failure { throw failure }
        unsafe plaintext.withUnsafeBytes { unsafe self.queuedPlaintext.append(contentsOf: $0) }
    }

    /// Says close_notify behind everything written: we send no more. Input goes on (RFC 8446 §6.1). During the
    /// handshake it takes effect when that is completed.
    public func closeOutput() {
        guard case .open = self.outputState else { return }
        self.outputState = .closing
        self.flushOutput()
    }

    /// Tells that the transport's input has ended, and learns whether the peer had said so. Asked after all events were
    /// pulled. A connection whose handshake is not over fails with `.closedDuringHandshake`.
    public func transportClosed() -> TransportClosure {
        switch self.phase {
        case .inputClosed: return .clean
        case .open, .failed: return .truncated
        case .handshaking:
            self.fail(
                TLSFailure(.closedDuringHandshake, reasons: ["the peer closed during the handshake"], alert: self.alert)
            )
            return .truncated
        }
    }

    /// Answers `.verificationRequested`; the handshake goes on with the next call of `nextEvent`. Ignored when nothing
    /// was asked.
    public func resolveVerification(_ decision: VerificationDecision) {
        guard let dialogue = self.callbackState, dialogue.pendingDecision == .verification else { return }
        dialogue.pendingDecision = .none
        dialogue.decision = decision
        unsafe self.channel.pointee.isInputPaused = false
    }

    /// Answers `.clientCertificateRequested`, with `nil` to show no certificate; the handshake goes on with the next
    /// call of `nextEvent`. Ignored when nothing was asked.
    public func provideClientCertificate(_ identity: TLSIdentity?) {
        guard let dialogue = self.callbackState, dialogue.pendingDecision == .clientCertificate else { return }
        dialogue.pendingDecision = .none
        dialogue.selectedIdentity = identity.map { .identity($0) } ?? .noCertificate
    }
}

/// The handshake, with the two questions that may interrupt it.
extension SecureConnection {
    /// Whether the server's caller decides over client certificates.
    ///
    /// OpenSSL can suspend a client's verification but not a server's. So a server goes on provisionally, and OpenSSL
    /// sees no further input: the handshake cannot proceed past the next record, no application data passes in either
    /// direction, and no ticket is issued, before the caller has answered.
    var delegatesClientVerification: Bool {
        let configuration = self.snapshot.configuration
        return configuration.role == .server && configuration.delegatesVerification
            && configuration.peerVerification != .none
    }

    func handshake(_ dialogue: HandshakeCallbackState) -> SecureEvent? {
        if self.delegatesClientVerification, dialogue.decision == .reject { return self.refuseClient(dialogue) }
        ErrorQueue.clear()
        let result = unsafe SSL_do_handshake(self.ssl)
        if let request = dialogue.request {
            dialogue.request = nil
            dialogue.pendingDecision = .verification
            return .verificationRequested(request)
        }
        if result == 1 { return self.completeHandshake(dialogue) }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return nil
        case SSL_ERROR_WANT_X509_LOOKUP:
            dialogue.pendingDecision = .clientCertificate
            return .clientCertificateRequested(issuers: self.acceptedIssuers())
        case SSL_ERROR_ZERO_RETURN:
            self.fail(.closedDuringHandshake, "the peer closed during the handshake")
        default:
            self.fail(ErrorQueue.indicatesNotTLS ? .notTLS : .handshake, "the handshake failed")
        }
        return self.reportFailure()
    }

    private func completeHandshake(_ dialogue: HandshakeCallbackState) -> SecureEvent? {
        guard let facts = self.metadata() else {
            self.fail(.engine, "the handshake has no facts")
            return self.reportFailure()
        }
        if self.delegatesClientVerification, dialogue.decision == .accept { self.issueWithheldTickets(facts.version) }
        self.switchToCompactRecords(dialogue, facts)
        self.phase = .open
        self.flushOutput()
        return .handshakeCompleted(facts)
    }

    private func issueWithheldTickets(_ version: TLSVersion) {
        guard version == .tls13, self.snapshot.configuration.resumption != .off else { return }
        unsafe SSL_new_session_ticket(self.ssl)
        unsafe SSL_do_handshake(self.ssl)
        ErrorQueue.clear()
    }

    /// Ends the handshake of a client that was rejected after OpenSSL had gone on.
    private func refuseClient(_ dialogue: HandshakeCallbackState) -> SecureEvent? {
        ErrorQueue.clear()
        if unsafe SSL_version(self.ssl) == TLS1_2_VERSION {
            // Held before the client's ChangeCipherSpec, so both directions are still in the clear: bad_certificate.
            self.write(record: [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x2A])
            self.alert = TLSAlert(code: 42, origin: .ours)
        } else {
            self.refuseSignature()
        }
        dialogue.rejectionKind = .rejected
        self.fail(.rejected, "rejected")
        return self.reportFailure()
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
        if self.alert == nil { self.sendUnexpectedMessageAlert() }
    }

    /// Has OpenSSL send unexpected_message, by showing it a record that no peer may send.
    func sendUnexpectedMessageAlert() {
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
        guard let key = self.resumptionKey, self.snapshot.configuration.resumption != .off else { return }
        unsafe self.snapshot.sessions.session(for: key)?.offer(on: self.ssl)
    }
}

/// What OpenSSL asks in the middle of a handshake.
extension SecureConnection {
    /// Verifies the peer's chain, or begins to wait for the caller's decision over it.
    /// - Returns: whether the handshake goes on.
    func verifyPeer(_ store: OpaquePointer) -> Bool {
        guard let dialogue = self.callbackState else { return false }
        if let decision = dialogue.decision { return unsafe self.apply(decision, dialogue, store) }
        let verdict = unsafe self.verdict(store)
        let configuration = self.snapshot.configuration
        // OpenSSL would keep the verified chain for as long as the connection lives; nobody asks for it.
        defer { unsafe X509_STORE_CTX_set0_verified_chain(store, nil) }
        guard configuration.delegatesVerification else {
            if verdict.isValid { return true }
            let pinned = verdict.code == X509_V_ERR_APPLICATION_VERIFICATION
            dialogue.rejectionKind = pinned ? .pinMismatch : .verification(verdict)
            return false
        }
        let chain = unsafe Self.derChain(X509_STORE_CTX_get0_untrusted(store))
        dialogue.request = VerificationRequest(
            peerChain: chain, result: verdict, serverName: self.serverName ?? self.requestedName)
        // Until the caller answers, provisionally: the server's input is held, the client is suspended.
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        if configuration.role == .server {
            unsafe self.channel.pointee.isInputPaused = true
        } else {
            unsafe sluice_suspend_verification(self.ssl)
        }
        return true
    }

    private func apply(
        _ decision: VerificationDecision, _ dialogue: HandshakeCallbackState, _ store: OpaquePointer
    ) -> Bool {
        switch decision {
        case .accept:
            unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
            return true
        case .reject:
            dialogue.rejectionKind = .rejected
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return false
        }
    }

    private func verdict(_ store: OpaquePointer) -> VerificationResult {
        let configuration = self.snapshot.configuration
        if configuration.peerVerification != .none {
            let valid = unsafe X509_verify_cert(store) == 1
            let code = unsafe X509_STORE_CTX_get_error(store)
            guard valid, code == X509_V_OK else { return unsafe self.verdict(store, code) }
        }
        if !configuration.pins.isEmpty, unsafe !self.matchesPin(store, configuration.pins) {
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return VerificationResult(
                code: X509_V_ERR_APPLICATION_VERIFICATION, text: "no pinned key in the chain", depth: 0)
        }
        return VerificationResult(code: X509_V_OK, text: "ok", depth: 0)
    }

    private func verdict(_ store: OpaquePointer, _ found: Int32) -> VerificationResult {
        // A verification that could not be done has failed, whatever the code says.
        let code = found == X509_V_OK ? X509_V_ERR_UNSPECIFIED : found
        unsafe X509_STORE_CTX_set_error(store, code)
        return VerificationResult(
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
    func provideIdentity() -> Int32 {
        if self.snapshot.configuration.role == .server { return self.showRequestedIdentity() ? 1 : 0 }
        switch self.callbackState?.selectedIdentity ?? .noCertificate {
        case .undecided: return -1
        case .noCertificate: return 1
        case .identity(let identity): return unsafe identity.install(on: self.ssl) ? 1 : 0
        }
    }

    private func showRequestedIdentity() -> Bool {
        guard let name = self.requestedName else { return true }
        let wanted = self.snapshot.identities(for: name)
        guard let first = wanted.first, first !== self.snapshot.configuration.identities.first else { return true }
        unsafe SSL_certs_clear(self.ssl)
        return wanted.allSatisfy { unsafe $0.install(on: self.ssl) }
    }

    /// Takes over the reference to a session that the server lets us resume.
    func store(_ session: OpaquePointer) -> Bool {
        guard let key = self.resumptionKey else { return false }
        self.snapshot.sessions.store(unsafe CachedSession(owning: session), for: key)
        return true
    }
}

/// What the handshake agreed on, read from OpenSSL.
extension SecureConnection {
    func metadata() -> TLSMetadata? {
        guard let version = TLSVersion(rawValue: UInt16(truncatingIfNeeded: unsafe SSL_version(self.ssl))),
            let cipher = unsafe SSL_get_current_cipher(self.ssl)
        else { return nil }
        let identifier = unsafe SSL_CIPHER_get_protocol_id(cipher)
        // A literal costs each connection nothing.
        let name =
            RecordSuite(rawValue: identifier)?.name
            ?? (unsafe SSL_CIPHER_standard_name(cipher).map { unsafe String(cString: $0) })
        return TLSMetadata(
            version: version, cipherName: name ?? "unknown", cipherIdentifier: identifier,
            applicationProtocol: self.applicationProtocol(), serverName: self.requestedName,
            peerChain: self.peerChain(), resumed: unsafe SSL_session_reused(self.ssl) == 1)
    }

    /// The name in the ClientHello, ours or the peer's.
    var requestedName: String? {
        guard let name = unsafe SSL_get_servername(self.ssl, TLSEXT_NAMETYPE_host_name) else { return nil }
        return unsafe String(cString: name)
    }

    private func applicationProtocol() -> String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(self.ssl, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    private func peerChain() -> [[UInt8]] {
        guard let own = unsafe SSL_get0_peer_certificate(self.ssl) else { return [] }
        let chain = unsafe Self.derChain(SSL_get_peer_cert_chain(self.ssl))
        let first = unsafe CertificateFields.derBytes(of: own)
        // A server's view of the chain leaves the peer's own certificate out, a client's does not.
        return chain.first == first ? chain : [first] + chain
    }

    static func derChain(_ stack: OpaquePointer?) -> [[UInt8]] {
        (0..<(unsafe sluice_x509_count(stack))).map { index in
            unsafe CertificateFields.derBytes(of: sluice_x509_at(stack, index))
        }
    }
}

/// What passes between the caller and a handshake; gone when the handshake is over.
final class HandshakeCallbackState {
    /// What the caller was asked and has not answered.
    enum PendingDecision {
        case none
        case verification
        case clientCertificate
    }

    var pendingDecision = PendingDecision.none
    /// Put here in the middle of OpenSSL's work, asked when that returns.
    var request: VerificationRequest?
    var decision: VerificationDecision?
    var selectedIdentity = SelectedIdentity.undecided
    /// Why the peer was refused, to tell it better than OpenSSL's "certificate verify failed" does.
    var rejectionKind: TLSFailure.Kind?
    /// Server: what its records will need.
    var secrets = TrafficSecrets()
}
