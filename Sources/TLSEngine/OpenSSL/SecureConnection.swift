import COpenSSL

/// TLS for one connection, without its socket: ciphertext goes in through `nextEvent`, what is to be sent comes out of
/// `output`.
///
/// Confined to its owner's thread. After each call the owner takes the bytes of `output`, before it calls another
/// connection that shares the buffer. An idle connection owns no buffer.
///
/// OpenSSL does the handshake and protects the records. With `TLSRecordLayer.compact` a server gives OpenSSL's own
/// connection up behind the handshake of TLS 1.3, and protects its records here (`EstablishedRecords`).
@safe
public final class SecureConnection {
    enum Phase {
        case handshaking(HandshakeDialogue)
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
    static let asideLimit = 1 << 20

    let material: ContextMaterial
    /// OpenSSL's own connection; `nil` once `records` go on without it.
    var ssl: OpaquePointer?
    let channel: UnsafeMutablePointer<CiphertextChannel>
    let serverName: String?
    let resumptionKey: String?

    /// With `TLSRecordLayer.compact`: records behind the handshake of TLS 1.3, for which `ssl` was given up.
    var records: EstablishedRecords?

    var phase = Phase.handshaking(HandshakeDialogue())
    var outputState = Output.open
    /// Handshake messages that OpenSSL took behind the handshake since data last came or left.
    var messagesInSuccession = 0
    /// The alert that ended the connection.
    var alert: TLSAlert?
    /// Ciphertext that came while the caller was asked.
    var aside: [UInt8] = []
    /// Plaintext that cannot be encrypted yet.
    var held: [UInt8] = []

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
        let material = context.material
        let client = material.configuration.role == .client
        let name = client ? try ConnectionName.checked(serverName, in: material.configuration) : nil
        ErrorQueue.clear()
        guard let ssl = unsafe SSL_new(material.handle) else { throw ErrorQueue.failure(.engine, "no TLS connection") }
        let channel = UnsafeMutablePointer<CiphertextChannel>.allocate(capacity: 1)
        unsafe channel.initialize(to: CiphertextChannel(output: output))
        self.material = material
        unsafe self.ssl = ssl
        unsafe self.channel = channel
        self.serverName = name?.text
        self.resumptionKey = client ? resumptionKey : nil
        guard let bio = unsafe CiphertextChannel.makeBIO(for: channel) else {
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
            if self.decidesLate { unsafe sluice_withhold_tickets(ssl) }
        }
        unsafe SSL_set_msg_callback(ssl, noteMessage)
    }

    deinit {
        self.releaseLibraryState()
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
    public var heldPlaintext: Int { self.held.count }

    var dialogue: HandshakeDialogue? {
        if case .handshaking(let dialogue) = self.phase { dialogue } else { nil }
    }

    var waitsForAnswer: Bool {
        self.dialogue.map { $0.question != .none } ?? false
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
        guard case .handshaking = self.phase, self.material.configuration.role == .client else { return }
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
        let waits = self.waitsForAnswer
        if self.aside.isEmpty, !waits {
            let (event, left) = unsafe fresh.withUnsafeBytes { unsafe self.step($0, &plaintext) }
            position = ciphertext.byteCount - left
            return event
        }
        position = ciphertext.byteCount
        if fresh.byteCount > Self.asideLimit - self.aside.count {
            self.fail(TLSFailure(.excessiveInput, reasons: ["too much came while a decision was awaited"]))
        } else {
            unsafe fresh.withUnsafeBytes { unsafe self.aside.append(contentsOf: $0) }
            if waits { return nil }
        }
        // Moved out, so that a callback may look at this object while OpenSSL reads from it.
        var bytes: [UInt8] = []
        swap(&bytes, &self.aside)
        let (event, left) = unsafe bytes.withUnsafeBytes { unsafe self.step($0, &plaintext) }
        if left > 0 { self.aside = Array(bytes.suffix(left)) }
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
        if self.isHandshakeCompleted, self.held.isEmpty, unsafe plaintext.withUnsafeBytes({ unsafe self.encrypt($0) }) {
            return
        }
        if let failure = self.failure { throw failure }
        unsafe plaintext.withUnsafeBytes { unsafe self.held.append(contentsOf: $0) }
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
        guard let dialogue = self.dialogue, dialogue.question == .verification else { return }
        dialogue.question = .none
        dialogue.decision = decision
        unsafe self.channel.pointee.inputHeld = false
    }

    /// Answers `.clientCertificateRequested`, with `nil` to show no certificate; the handshake goes on with the next
    /// call of `nextEvent`. Ignored when nothing was asked.
    public func provideClientCertificate(_ identity: TLSIdentity?) {
        guard let dialogue = self.dialogue, dialogue.question == .clientCertificate else { return }
        dialogue.question = .none
        dialogue.chosenIdentity = identity.map { .given($0) } ?? .without
    }
}
