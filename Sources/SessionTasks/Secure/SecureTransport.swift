import ByteKernels
import DequeModule
import StreamTransport
import TLSEngine

/// TLS over another transport: its consumer sees plaintext, the transport below sees records.
///
/// Received plaintext goes to a buffer that all connections of the loop share; the writes of a turn are collected in
/// one of the loop's spare arrays and leave in as few records as possible: an idle connection holds the engine's state
/// and no buffer.
package final class SecureTransport {
    package typealias Completion = (Result<SecureTransport, TransportFailure>) -> Void

    enum Phase {
        case handshaking
        case established
        /// We said close_notify and wait for the transport below to end.
        case closing
        case ended
    }

    /// Plaintext of one turn that is encrypted before the turn ends.
    static let plaintextBufferLimit = 64 << 10

    package let lower: any Transport
    package var consumer: (any TransportConsumer)?
    package private(set) var facts: TLSMetadata?
    let connection: SecureConnection
    private let records: CiphertextBuffer
    private let plaintext: PlaintextBuffer
    var phase = Phase.handshaking
    var pendingPlaintext: [UInt8] = []
    private var kept: [UInt8] = []
    private var earlyCiphertext: [UInt8]
    private var paused = true
    var outputClosed = false
    private var inputEnded = false
    private var awaitsTurnEnd = false
    /// The connection has used its share of the turn and continues in the next one.
    private var awaitsNextTurn = false
    private var isResuming = false
    private var mustReportProgress = false
    /// OpenSSL waits for a decision of ours, and the connection below is not read meanwhile.
    var isAwaitingDecision = false
    private var failure: TransportFailure?
    /// Plaintext given and, of that, what the transport below has sent; between the two, where each encrypted piece
    /// ends below.
    var acceptedBytes: UInt64 = 0
    private var sentPlaintextBytes: UInt64 = 0
    private var encryptedPieces: Deque<(plain: UInt64, below: UInt64)> = []
    let settings: SecureSettings
    /// Received before the handshake was over; counted where there is a limit.
    private var handshakeBytes = 0
    private var completion: Completion?
    let timer = LoopTimer()

    /// Begins the handshake on `plain`, whose consumer this becomes. `completion` is called once, on the loop, unless
    /// `reset` comes first.
    /// - Parameter received: bytes of the handshake that were read from `plain` already.
    @discardableResult
    package static func upgrade(
        _ plain: any Transport, settings: SecureSettings, received: [UInt8], completion: @escaping Completion
    ) -> SecureTransport? {
        do throws(TLSFailure) {
            let records = plain.loop.local(CiphertextBuffer.self) { CiphertextBuffer() }
            let connection = try SecureConnection(
                settings.context, serverName: settings.serverName, resumptionKey: settings.resumptionKey,
                output: records)
            let transport = SecureTransport(
                over: plain, connection: connection, settings: settings, received: received, completion: completion)
            transport.begin()
            return transport
        } catch {
            plain.reset()
            completion(.failure(.tls(LayerFailure(error))))
            return nil
        }
    }

    private init(
        over lower: any Transport, connection: SecureConnection, settings: SecureSettings, received: [UInt8],
        completion: @escaping Completion
    ) {
        self.lower = lower
        self.connection = connection
        self.settings = settings
        self.earlyCiphertext = received
        self.completion = completion
        self.records = connection.output
        self.plaintext = lower.loop.local(PlaintextBuffer.self) { PlaintextBuffer() }
    }

    private func begin() {
        self.lower.consumer = self
        // Paused and resumed, the transport offers anew what its former consumer left of these very bytes.
        self.lower.pauseReading()
        self.loop.arm(self.timer, after: self.settings.timeout, target: self)
        self.connection.start()
        self.sendRecords()
        self.lower.resumeReading()
        if !self.earlyCiphertext.isEmpty { self.workLater() }
    }

    // MARK: Received

    /// Pulls what `ciphertext` holds, until it is used up, the consumer has had enough, or the connection has had its share
    /// of the turn.
    private func decryptInput(_ ciphertext: RawSpan) -> Int {
        var used = 0
        var goesOn = true
        while goesOn, self.phase != .ended, !self.isFull {
            guard self.phase != .established || !self.loop.budgetIsSpent else {
                self.resumeInNextTurn()
                break
            }
            let event = self.plaintext.lend { plain in
                self.connection.nextEvent(ciphertext, at: &used, plaintext: &plain)
            }
            guard let event else { break }
            self.loop.spend(event.work)
            goesOn = self.act(on: event)
        }
        if self.phase == .handshaking { self.countHandshakeBytes(used) }
        self.sendRecords()
        return used
    }

    /// Nothing more is read meanwhile.
    private func resumeInNextTurn() {
        self.lower.pauseReading()
        guard !self.awaitsNextTurn else { return }
        self.awaitsNextTurn = true
        self.loop.inNextTurn(self)
    }

    private func countHandshakeBytes(_ count: Int) {
        guard let limit = self.settings.handshakeByteLimit else { return }
        self.handshakeBytes += count
        guard self.handshakeBytes > limit else { return }
        self.fail(TLSFailure(.excessiveInput, reasons: ["the handshake is longer than \(limit) bytes"]))
    }

    /// Decrypted plaintext waits for the consumer.
    private var isFull: Bool {
        self.phase == .established && self.paused
    }

    private func act(on event: SecureEvent) -> Bool {
        switch event {
        case .handshakeCompleted(let facts): self.handshakeCompleted(facts)
        case .plaintext(let count): self.offer(count)
        case .verificationRequested(let request): self.requestDecision(request)
        case .clientCertificateRequested(let issuers): self.requestIdentity(issuers)
        case .inputClosed: self.inputClosedCleanly()
        case .failed(let failure):
            self.sendRecords()
            self.fail(failure)
            return false
        }
        return true
    }

    private func handshakeCompleted(_ facts: TLSMetadata) {
        self.facts = facts
        self.phase = .established
        self.loop.disarm(self.timer)
        self.lower.pauseReading()
        self.workLater()
        let completion = self.completion
        self.completion = nil
        completion?(.success(self))
    }

    private func offer(_ count: Int) {
        guard self.phase == .established else { return }
        if !self.kept.isEmpty {
            self.plaintext.lend { self.kept.append($0.bytes.extracting(0..<count)) }
            return self.offerKept()
        }
        let rest = self.plaintext.lend { plain -> [UInt8] in
            var offered = plain._mutatingExtracting(0..<count)
            let used = self.consumer?.bytesReceived(&offered) ?? count
            return used < count ? [UInt8](plain.bytes.extracting(max(0, used)..<count)) : []
        }
        guard self.phase == .established, !rest.isEmpty else { return }
        self.kept = rest
        // A consumer that resumed meanwhile, possibly a new owner, is still to be offered the rest.
        if !self.paused { self.isResuming = true; self.workLater() }
    }

    private func offerKept() {
        guard self.phase == .established, !self.paused, !self.kept.isEmpty else { return }
        var bytes = self.kept
        self.kept = []
        let used = bytes.withMutableRawSpan { self.consumer?.bytesReceived(&$0) ?? $0.byteCount }
        guard used < bytes.count, self.phase == .established else { return }
        bytes.removeFirst(max(0, used))
        self.kept = bytes
    }

    private func inputClosedCleanly() {
        self.inputEnded = true
        guard self.phase == .established else { return }
        self.consumer?.inputClosed()
    }

    // MARK: Sent

    /// Encrypts the plaintext written in this turn.
    func flush() {
        guard self.phase == .established, !self.pendingPlaintext.isEmpty else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &self.pendingPlaintext)
        bytes.withRawSpan { self.encrypt($0) }
        self.loop.returnSpareBuffer(bytes)
    }

    func encrypt(_ bytes: RawSpan) {
        do throws(TLSFailure) {
            try self.connection.write(bytes)
            self.sendRecords()
            self.confirmSent()
            self.encryptedPieces.append(
                (plain: self.confirmedOrMarked &+ UInt64(bytes.byteCount), below: self.lower.writtenBytes))
        } catch {
            self.fail(error)
        }
    }

    private var confirmedOrMarked: UInt64 {
        self.encryptedPieces.last?.plain ?? self.sentPlaintextBytes
    }

    private func confirmSent() {
        while let first = self.encryptedPieces.first, first.below <= self.lower.sentBytes {
            self.sentPlaintextBytes = first.plain
            self.encryptedPieces.removeFirst()
        }
    }

    /// Plaintext bytes of which every record has left.
    func confirmedBytes() -> UInt64 {
        self.confirmSent()
        return self.sentPlaintextBytes
    }

    func sendRecords() {
        guard self.records.count > 0 else { return }
        self.records.take { _ = self.lower.write($0) }
    }

    func workLater() {
        guard !self.awaitsTurnEnd else { return }
        self.awaitsTurnEnd = true
        self.loop.atTurnEnd(self)
    }

    // MARK: Ending

    private func fail(_ failure: TLSFailure) {
        self.fail(.tls(LayerFailure(failure)))
    }

    /// Ends the transport below with a reset, after a pending alert, and reports the failure at the end of the turn.
    func fail(_ failure: TransportFailure) {
        guard self.phase != .ended, self.failure == nil else { return }
        self.failure = failure
        self.loop.disarm(self.timer)
        self.lower.consumer = nil
        self.lower.close(linger: .seconds(1))
        self.workLater()
    }

    private func reportFailure() {
        guard let failure = self.failure, self.phase != .ended else { return }
        self.end(.failed(failure))
    }

    private func end(_ end: TransportEnd) {
        guard self.phase != .ended else { return }
        self.phase = .ended
        self.loop.disarm(self.timer)
        self.kept = []
        self.pendingPlaintext = []
        let consumer = self.consumer
        self.consumer = nil
        if let completion = self.completion {
            self.completion = nil
            completion(.failure(end.transportFailure ?? .truncated))
        } else {
            consumer?.transportEnded(end)
        }
    }

    /// Requested below once this turn's plaintext is encrypted: the transport below knows when it is sent.
    private func forwardProgressRequest() {
        guard self.mustReportProgress, self.pendingPlaintext.isEmpty else { return }
        self.mustReportProgress = false
        self.lower.awaitProgress()
    }

    package func awaitProgress() {
        guard self.phase == .handshaking || self.phase == .established else { return }
        self.mustReportProgress = true
        self.workLater()
    }

    func setPaused(_ paused: Bool) {
        self.paused = paused
        if paused { self.lower.pauseReading() } else { self.isResuming = true; self.workLater() }
    }
}

extension SecureTransport: TransportConsumer {
    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard self.earlyCiphertext.isEmpty else {
            self.earlyCiphertext.append(bytes.bytes)
            self.workLater()
            return bytes.byteCount
        }
        return self.decryptInput(bytes.bytes)
    }

    package func inputClosed() {
        guard !self.inputEnded else { return }
        switch self.connection.transportClosed() {
        case .clean: self.inputClosedCleanly()
        case .truncated:
            guard self.phase == .handshaking else { return self.fail(.truncated) }
            self.fail(TLSFailure(.closedDuringHandshake, reasons: ["the peer closed during the handshake"]))
        }
    }

    package func outputProgressed() {
        self.consumer?.outputProgressed()
    }

    package func transportEnded(_ end: TransportEnd) {
        self.end(end)
    }
}

extension SecureEvent {
    /// Work besides the consumer's own, in units of `TurnBudget`.
    fileprivate var work: Int {
        switch self {
        case .plaintext(let count): TurnBudget.record + count
        case .handshakeCompleted: TurnBudget.handshake
        case .verificationRequested, .clientCertificateRequested, .inputClosed, .failed: TurnBudget.record
        }
    }
}

extension SecureTransport: TurnEndTarget {
    package func nextTurnBegan() {
        self.awaitsNextTurn = false
        self.resumeNow()
    }

    package func turnEnded() {
        self.awaitsTurnEnd = false
        if !self.earlyCiphertext.isEmpty, !self.isFull {
            let bytes = self.earlyCiphertext
            self.earlyCiphertext = []
            let used = bytes.withRawSpan { self.decryptInput($0) }
            if used < bytes.count { self.earlyCiphertext = Array(bytes[used...]) }
        } else if self.phase == .handshaking {
            _ = self.decryptInput(RawSpan())
        }
        if self.isResuming {
            self.isResuming = false
            self.resumeNow()
        }
        self.flush()
        self.forwardProgressRequest()
        self.reportFailure()
    }

    private func resumeNow() {
        guard !self.paused, self.phase == .established else { return }
        self.offerKept()
        guard !self.paused, self.phase == .established else { return }
        // Input that OpenSSL took while the consumer was full or a decision was pending.
        _ = self.decryptInput(RawSpan())
        guard !self.paused, self.phase == .established else { return }
        if !self.earlyCiphertext.isEmpty { return self.workLater() }
        guard !self.awaitsNextTurn else { return }
        self.lower.resumeReading()
    }
}

/// Decisions that the handshake leaves to the connection's owner: whether to trust a certificate, and which to present.
extension SecureTransport {
    private func requestDecision(_ request: VerificationRequest) {
        guard let decide = self.settings.decide else { return self.decided(.reject) }
        self.pauseForDecision()
        let transport = LoopIsolated(self, on: self.loop)
        decide(request) { decision in
            transport.execute { $0.decided(decision) }
        }
    }

    private func decided(_ decision: VerificationDecision) {
        guard self.phase == .handshaking else { return }
        self.connection.resolveVerification(decision)
        self.resumeAfterDecision()
    }

    /// While a decision is pending the peer must not fill our memory, nor be blamed for the time.
    private func pauseForDecision() {
        self.isAwaitingDecision = true
        self.loop.disarm(self.timer)
        self.lower.pauseReading()
    }

    private func resumeAfterDecision() {
        if self.isAwaitingDecision {
            self.lower.resumeReading()
            self.loop.arm(self.timer, after: self.settings.timeout, target: self)
        }
        self.isAwaitingDecision = false
        self.workLater()
    }

    private func requestIdentity(_ issuers: [[UInt8]]) {
        guard let choose = self.settings.chooseIdentity else { return self.identityChosen(nil) }
        self.pauseForDecision()
        let transport = LoopIsolated(self, on: self.loop)
        choose(issuers) { identity in
            transport.execute { $0.identityChosen(identity) }
        }
    }

    private func identityChosen(_ identity: TLSIdentity?) {
        guard self.phase == .handshaking else { return }
        self.connection.provideClientCertificate(identity)
        self.resumeAfterDecision()
    }
}

extension SecureTransport: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.fail(.deadlinePassed(.securing))
    }
}

/// TLS settings of one connection: the context with its certificates and rules, and what belongs to this connection
/// only.
package struct SecureSettings: Sendable {
    package typealias Decide =
        @Sendable (VerificationRequest, @escaping @Sendable (VerificationDecision) -> Void) -> Void
    package typealias ChooseIdentity = @Sendable ([[UInt8]], @escaping @Sendable (TLSIdentity?) -> Void) -> Void

    package var context: TLSContext
    /// Client: the name or address to ask for and to verify.
    package var serverName: String?
    /// Client: sessions are kept and resumed under this key; `nil` resumes none. Equal keys must mean the same server
    /// and purpose.
    package var resumptionKey: String?
    /// For the handshake, without the time that `decide` and `chooseIdentity` take.
    package var timeout: Duration = .seconds(10)
    /// Bytes that the peer may send before the handshake is over, counted after each read; `nil` leaves it to OpenSSL,
    /// which bounds each message.
    package var handshakeByteLimit: Int?
    /// Asked when the context's configuration says `delegatesVerification`; may answer at any time, from any thread. `nil`
    /// rejects.
    package var decide: Decide?
    /// Asked for a client certificate when the configuration says `delegatesClientCertificate`; `nil` gives none.
    package var chooseIdentity: ChooseIdentity?

    package init(context: TLSContext, serverName: String? = nil) {
        self.context = context
        self.serverName = serverName
    }
}

/// The buffer that a loop's secure connections decrypt into: one for all, since none of them keeps anything in it.
private final class PlaintextBuffer {
    /// Four full TLS records.
    private static let capacity = 64 << 10

    private var bytes = [UInt8](repeating: 0, count: PlaintextBuffer.capacity)

    /// Lends the buffer. A second lending inside the first gets an array of its own.
    func lend<R>(_ body: (inout MutableRawSpan) -> R) -> R {
        var taken: [UInt8] = []
        swap(&taken, &self.bytes)
        if taken.isEmpty { taken = [UInt8](repeating: 0, count: Self.capacity) }
        defer { self.bytes = taken }
        return taken.withMutableRawSpan(body)
    }
}

extension TransportEnd {
    /// The failure; `nil` if this side ended the connection.
    package var transportFailure: TransportFailure? {
        if case .failed(let failure) = self { failure } else { nil }
    }
}
