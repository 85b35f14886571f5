import COpenSSL

/// A TLS connection without a socket: `nextEvent` consumes received ciphertext, and ciphertext to send is appended to
/// `output`.
///
/// Confined to its owner's thread. After each call the owner must take the bytes of `output` before it calls another
/// connection that shares the buffer. An idle connection owns no buffer.
///
/// OpenSSL performs the handshake and protects the records. With `TLSRecordLayer.compact` a server frees OpenSSL's SSL
/// object after a TLS 1.3 handshake and continues with `CompactRecordLayer`.
@safe
public final class SecureConnection {
    enum Phase {
        case handshaking(HandshakeCallbackState)
        case open
        case inputClosed
        indirect case failed(TLSFailure, reported: Bool)
    }

    enum Output {
        case open
        /// close_notify is pending: the handshake or a write is incomplete.
        case closing
        case closed
    }

    /// Largest amount of ciphertext buffered during a pending decision, in bytes; beyond it the connection fails. A
    /// caller that pauses reading meanwhile does not reach it.
    private static let deferredInputLimit = 1 << 20

    let snapshot: ContextSnapshot
    /// OpenSSL's SSL object; `nil` once `records` has replaced it.
    var ssl: OpaquePointer?
    let channel: UnsafeMutablePointer<CiphertextBIO>
    let serverName: String?
    let resumptionKey: String?

    /// With `TLSRecordLayer.compact`: the record layer after a TLS 1.3 handshake, which replaces `ssl`.
    var records: CompactRecordLayer?

    var phase = Phase.handshaking(HandshakeCallbackState())
    var outputState = Output.open
    /// Post-handshake messages that OpenSSL processed since application data was last received or sent.
    var consecutiveHandshakeMessages = 0
    /// The alert that ended the connection.
    var alert: TLSAlert?
    /// Ciphertext received during a pending decision.
    var deferredInput: [UInt8] = []
    /// Server: whether the client may still send early data.
    var awaitsEarlyData: Bool
    /// Server: early data that was not delivered yet, at most `TLSConfiguration.earlyDataLimit` bytes.
    var earlyPlaintext: [UInt8] = []
    /// Bytes of early data sent or received.
    var earlyDataCount = 0
    /// Plaintext waiting for the handshake, or for the rest of a message that the peer began.
    var queuedPlaintext: [UInt8] = []

    /// Creates a connection with the role of its context.
    ///
    /// - Parameters:
    ///   - serverName: client: host name (A-labels, a trailing dot allowed) or IP address of the server; verified, and
    ///     sent as SNI if it is a name. Ignored on a server.
    ///   - resumptionKey: client: key of the session cache; `nil` disables resumption. Connections may share a key only
    ///     if they go to the same server for the same purpose: a resumed session is not verified again.
    ///   - output: receives ciphertext to send; connections of one thread may share it.
    /// - Throws: `.configuration` if the name is malformed, or missing although it is to be verified.
    public init(
        _ context: TLSContext, serverName: String? = nil, resumptionKey: String? = nil,
        output: CiphertextBuffer = CiphertextBuffer()
    ) throws(TLSFailure) {
        let snapshot = context.snapshot
        let client = snapshot.configuration.role == .client
        let name = client ? try ReferenceIdentity.validated(serverName, in: snapshot.configuration) : nil
        ErrorQueue.clear()
        guard let ssl = unsafe SSL_new(snapshot.handle) else { throw ErrorQueue.failure(.engine, "no TLS connection") }
        let channel = UnsafeMutablePointer<CiphertextBIO>.allocate(capacity: 1)
        unsafe channel.initialize(to: CiphertextBIO(output: output))
        self.snapshot = snapshot
        unsafe self.ssl = ssl
        unsafe self.channel = channel
        self.serverName = name?.text
        self.resumptionKey = client ? resumptionKey : nil
        self.awaitsEarlyData = !client && snapshot.configuration.earlyDataLimit > 0
        guard let bio = unsafe CiphertextBIO.makeBIO(for: channel) else {
            throw ErrorQueue.failure(.engine, "no TLS connection")
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        if client {
            unsafe SSL_set_connect_state(ssl)
            unsafe try name?.install(on: ssl, verified: snapshot.configuration.checksServerName)
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

    /// Receives ciphertext to send. May be replaced while it is empty, as when the connection moves to another thread.
    public var output: CiphertextBuffer {
        get { unsafe self.channel.pointee.output }
        set { unsafe self.channel.pointee.output = newValue }
    }

    /// Number of bytes in `output`, including bytes of other connections that were not taken.
    public var pendingCiphertext: Int { self.output.count }

    /// Calls `body` with the ciphertext to send, then discards it.
    public func withCiphertext<R>(_ body: (RawSpan) -> R) -> R {
        self.output.take(body)
    }

    /// Number of plaintext bytes waiting for the handshake (or for the rest of a message that the peer began) before
    /// they can be encrypted. Unbounded: a caller that writes early must limit it.
    public var pendingPlaintext: Int { self.queuedPlaintext.count }

    var callbackState: HandshakeCallbackState? {
        if case .handshaking(let state) = self.phase { state } else { nil }
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

    /// Client: writes the ClientHello to `output`; otherwise the first `nextEvent` does. No effect on a server.
    public func start() {
        guard case .handshaking = self.phase, self.snapshot.configuration.role == .client else { return }
        var noRoom = MutableRawSpan()
        var position = 0
        // Without input the only possible event is a failure, which the next `nextEvent` must report.
        _ = self.nextEvent(RawSpan(), at: &position, plaintext: &noRoom)
        if case .failed(let failure, _) = self.phase { self.phase = .failed(failure, reported: false) }
    }

    /// Consumes ciphertext and returns the next event.
    ///
    /// Call it until it returns `nil`: all of `ciphertext` is then consumed. To stop earlier, keep the bytes from
    /// `position` on and pass them later; decrypted plaintext that did not fit is returned by a call without
    /// ciphertext.
    /// - Parameters:
    ///   - position: offset of the first byte of `ciphertext` not consumed yet; advanced.
    ///   - plaintext: receives decrypted bytes at its front. Records are up to 16 KiB and are returned in parts if
    ///     there is less room. Without room nothing is decrypted.
    /// - Returns: `nil` when the next event needs more ciphertext or a pending decision.
    public func nextEvent(
        _ ciphertext: RawSpan, at position: inout Int, plaintext: inout MutableRawSpan
    ) -> SecureEvent? {
        let start = max(0, min(position, ciphertext.byteCount))
        let input = ciphertext.extracting(start..<ciphertext.byteCount)
        let isAwaitingDecision = self.isAwaitingDecision
        if self.deferredInput.isEmpty, !isAwaitingDecision {
            let (event, left) = unsafe input.withUnsafeBytes { unsafe self.process($0, &plaintext) }
            position = ciphertext.byteCount - left
            return event
        }
        position = ciphertext.byteCount
        if input.byteCount > Self.deferredInputLimit - self.deferredInput.count {
            self.fail(TLSFailure(.excessiveInput, reasons: ["too much data arrived during a pending decision"]))
        } else {
            unsafe input.withUnsafeBytes { unsafe self.deferredInput.append(contentsOf: $0) }
            if isAwaitingDecision { return nil }
        }
        // Moved out of `self`, which callbacks access while OpenSSL reads these bytes.
        var bytes: [UInt8] = []
        swap(&bytes, &self.deferredInput)
        let (event, left) = unsafe bytes.withUnsafeBytes { unsafe self.process($0, &plaintext) }
        if left > 0 { self.deferredInput = Array(bytes.suffix(left)) }
        return event
    }

    /// Encrypts `plaintext` into `output`, in records of up to 16 KiB. Before the handshake is complete the bytes are
    /// copied and encrypted right after it (`pendingPlaintext`).
    /// - Throws: `.outputClosed` after `closeOutput`; the failure of a failed connection.
    public func write(_ plaintext: RawSpan) throws(TLSFailure) {
        if let failure = self.failure { throw failure }
        guard case .open = self.outputState else {
            throw TLSFailure(.outputClosed, reasons: ["write after the output was closed"])
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

    /// Sends close_notify after everything written; input stays open (RFC 8446 §6.1). During the handshake it takes
    /// effect when that completes.
    public func closeOutput() {
        guard case .open = self.outputState else { return }
        self.outputState = .closing
        self.flushOutput()
    }

    /// Handles the end of the transport's input; call it after `nextEvent` has returned `nil`. A connection whose
    /// handshake is not complete fails with `.closedDuringHandshake`.
    /// - Returns: whether the peer had sent close_notify.
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

    /// Resolves `.verificationRequested`; the next `nextEvent` continues the handshake. Ignored without a pending
    /// request.
    public func resolveVerification(_ decision: VerificationDecision) {
        guard let state = self.callbackState, state.pendingDecision == .verification else { return }
        state.pendingDecision = .none
        state.decision = decision
        unsafe self.channel.pointee.isInputPaused = false
    }

    /// Resolves `.clientCertificateRequested`, with `nil` for no certificate; the next `nextEvent` continues the
    /// handshake. Ignored without a pending request.
    public func provideClientCertificate(_ identity: TLSIdentity?) {
        guard let state = self.callbackState, state.pendingDecision == .clientCertificate else { return }
        state.pendingDecision = .none
        state.selectedIdentity = identity.map { .identity($0) } ?? .noCertificate
    }

    // MARK: Handshake

    /// Whether the caller decides on client certificates.
    ///
    /// OpenSSL can suspend a client's verification but not a server's. A server therefore continues provisionally while
    /// OpenSSL receives no further input: until the decision the handshake cannot proceed past the next record, no
    /// application data passes in either direction, and no ticket is issued.
    private var delegatesClientVerification: Bool {
        let configuration = self.snapshot.configuration
        return configuration.role == .server && configuration.delegatesVerification
            && configuration.peerVerification != .none
    }

    func handshake(_ state: HandshakeCallbackState) -> SecureEvent? {
        if self.delegatesClientVerification, state.decision == .reject { return self.rejectClient(state) }
        guard self.receiveEarlyData() else { return nil }
        ErrorQueue.clear()
        let result = unsafe SSL_do_handshake(self.ssl)
        if let request = state.request {
            state.request = nil
            state.pendingDecision = .verification
            return .verificationRequested(request)
        }
        if result == 1 { return self.completeHandshake(state) }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            return nil
        case SSL_ERROR_WANT_X509_LOOKUP:
            state.pendingDecision = .clientCertificate
            return .clientCertificateRequested(issuers: self.acceptedIssuers())
        case SSL_ERROR_ZERO_RETURN:
            self.fail(.closedDuringHandshake, "the peer closed during the handshake")
        default:
            self.fail(ErrorQueue.indicatesNotTLS ? .notTLS : .handshake, "the handshake failed")
        }
        return self.reportFailure()
    }

    private func completeHandshake(_ state: HandshakeCallbackState) -> SecureEvent? {
        guard let metadata = self.metadata() else {
            self.fail(.engine, "the handshake has no version or cipher suite")
            return self.reportFailure()
        }
        if self.delegatesClientVerification, state.decision == .accept { self.issueWithheldTickets(metadata.version) }
        self.switchToCompactRecords(state, metadata)
        self.phase = .open
        self.flushOutput()
        return .handshakeCompleted(metadata)
    }

    private func issueWithheldTickets(_ version: TLSVersion) {
        guard version == .tls13, self.snapshot.configuration.resumption != .off else { return }
        unsafe SSL_new_session_ticket(self.ssl)
        unsafe SSL_do_handshake(self.ssl)
        ErrorQueue.clear()
    }

    /// Fails the handshake of a client that was rejected after OpenSSL had continued provisionally.
    private func rejectClient(_ state: HandshakeCallbackState) -> SecureEvent? {
        ErrorQueue.clear()
        if unsafe SSL_version(self.ssl) == TLS1_2_VERSION {
            // Input is paused before the client's ChangeCipherSpec, so both directions are still unprotected. The
            // record is a fatal bad_certificate alert.
            self.write(record: [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x2A])
            self.alert = TLSAlert(code: 42, origin: .ours)
        } else {
            self.failSignature()
        }
        state.rejectionKind = .rejected
        self.fail(.rejected, "rejected")
        return self.reportFailure()
    }

    private func write(record: [UInt8]) {
        unsafe record.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe self.channel.pointee.output.append(start, count: bytes.count)
        }
    }

    /// OpenSSL sends an encrypted alert only for an error that it detects itself: for the client's signature if that
    /// has arrived (handshake_failure), else for an invalid record (unexpected_message).
    private func failSignature() {
        unsafe sluice_refuse_signatures(self.ssl)
        unsafe SSL_do_handshake(self.ssl)
        if self.alert == nil { self.sendUnexpectedMessageAlert() }
    }

    /// Makes OpenSSL send unexpected_message by feeding it an invalid record.
    func sendUnexpectedMessageAlert() {
        let invalidRecord: [UInt8] = [0x16, 0x03, 0x03, 0xFF, 0xFF]
        unsafe invalidRecord.withUnsafeBytes { bytes in
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

    private func offerSession() {
        guard let key = self.resumptionKey, self.snapshot.configuration.resumption != .off else { return }
        unsafe self.snapshot.sessions.session(for: key)?.offer(on: self.ssl)
    }

    // MARK: Callbacks of OpenSSL during the handshake

    /// Verifies the peer's chain, or requests the caller's decision.
    /// - Returns: whether the handshake continues.
    func verifyPeer(_ store: OpaquePointer) -> Bool {
        guard let state = self.callbackState else { return false }
        if let decision = state.decision { return unsafe self.apply(decision, state, store) }
        let result = unsafe self.verify(store)
        let configuration = self.snapshot.configuration
        // OpenSSL would keep the verified chain, which is never read, for the lifetime of the connection.
        defer { unsafe X509_STORE_CTX_set0_verified_chain(store, nil) }
        guard configuration.delegatesVerification else {
            if result.isValid { return true }
            let isPinMismatch = result.code == X509_V_ERR_APPLICATION_VERIFICATION
            state.rejectionKind = isPinMismatch ? .pinMismatch : .verification(result)
            return false
        }
        let chain = unsafe Self.derChain(X509_STORE_CTX_get0_untrusted(store))
        state.request = VerificationRequest(
            peerChain: chain, result: result, serverName: self.serverName ?? self.requestedName)
        // Accepted provisionally until the decision: a server's input is paused, a client is suspended.
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        if configuration.role == .server {
            unsafe self.channel.pointee.isInputPaused = true
        } else {
            unsafe sluice_suspend_verification(self.ssl)
        }
        return true
    }

    private func apply(
        _ decision: VerificationDecision, _ state: HandshakeCallbackState, _ store: OpaquePointer
    ) -> Bool {
        switch decision {
        case .accept:
            unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
            return true
        case .reject:
            state.rejectionKind = .rejected
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return false
        }
    }

    private func verify(_ store: OpaquePointer) -> VerificationResult {
        let configuration = self.snapshot.configuration
        if configuration.peerVerification != .none {
            let valid = unsafe X509_verify_cert(store) == 1
            let code = unsafe X509_STORE_CTX_get_error(store)
            guard valid, code == X509_V_OK else {
                let failure = unsafe VerificationResult(failureOf: store)
                unsafe X509_STORE_CTX_set_error(store, failure.code)
                return failure
            }
        }
        if !configuration.pins.isEmpty, unsafe !self.matchesPin(store, configuration.pins) {
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return VerificationResult(
                code: X509_V_ERR_APPLICATION_VERIFICATION, text: "no pinned key in the chain", depth: 0)
        }
        return .valid
    }

    /// Without verification the peer's chain proves nothing, so only the key of its leaf certificate counts.
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

    /// Server: installs the identities for the requested SNI; the context holds the default ones. Client: installs the
    /// identity that the caller provided, or suspends the handshake until it does.
    /// - Returns: 1 to continue, 0 to fail, -1 to suspend the handshake.
    func provideIdentity() -> Int32 {
        if self.snapshot.configuration.role == .server { return self.installRequestedIdentities() ? 1 : 0 }
        switch self.callbackState?.selectedIdentity ?? .noCertificate {
        case .undecided: return -1
        case .noCertificate: return 1
        case .identity(let identity): return unsafe identity.install(on: self.ssl) ? 1 : 0
        }
    }

    private func installRequestedIdentities() -> Bool {
        guard let name = self.requestedName else { return true }
        let identities = self.snapshot.identities(for: name)
        guard let first = identities.first, first !== self.snapshot.configuration.identities.first else { return true }
        unsafe SSL_certs_clear(self.ssl)
        return identities.allSatisfy { unsafe $0.install(on: self.ssl) }
    }

    /// Caches a session for resumption.
    /// - Returns: whether the reference to `session` was taken over.
    func store(_ session: OpaquePointer) -> Bool {
        guard let key = self.resumptionKey else { return false }
        self.snapshot.sessions.store(unsafe CachedSession(owning: session), for: key)
        return true
    }

    // MARK: Metadata

    private func metadata() -> TLSMetadata? {
        guard let version = TLSVersion(rawValue: UInt16(truncatingIfNeeded: unsafe SSL_version(self.ssl))),
            let cipher = unsafe SSL_get_current_cipher(self.ssl)
        else { return nil }
        let identifier = unsafe SSL_CIPHER_get_protocol_id(cipher)
        // A literal needs no allocation for each connection.
        let name =
            RecordSuite(rawValue: identifier)?.name
            ?? (unsafe SSL_CIPHER_standard_name(cipher).map { unsafe String(cString: $0) })
        return TLSMetadata(
            version: version, cipherName: name ?? "unknown", cipherIdentifier: identifier,
            applicationProtocol: self.applicationProtocol(), serverName: self.requestedName,
            peerChain: self.peerChain(), resumed: unsafe SSL_session_reused(self.ssl) == 1,
            earlyData: self.earlyDataOutcome)
    }

    /// The SNI of the ClientHello, sent or received.
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
        // On a server, OpenSSL's chain omits the leaf certificate; on a client it does not.
        return chain.first == first ? chain : [first] + chain
    }

    private static func derChain(_ stack: OpaquePointer?) -> [[UInt8]] {
        (0..<(unsafe sluice_x509_count(stack))).map { index in
            unsafe CertificateFields.derBytes(of: sluice_x509_at(stack, index))
        }
    }
}

/// State that OpenSSL's callbacks share with the caller during a handshake; released when the handshake completes.
final class HandshakeCallbackState {
    /// The decision that the caller has yet to make.
    enum PendingDecision {
        case none
        case verification
        case clientCertificate
    }

    var pendingDecision = PendingDecision.none
    /// Set by the verification callback; becomes an event when `SSL_do_handshake` returns.
    var request: VerificationRequest?
    var decision: VerificationDecision?
    var selectedIdentity = SelectedIdentity.undecided
    /// The reason for rejecting the peer, more specific than OpenSSL's "certificate verify failed".
    var rejectionKind: TLSFailure.Kind?
    /// Server: the traffic secrets for `CompactRecordLayer`.
    var secrets = TrafficSecrets()
}
