import ByteKernels
import StreamTransport
import TLSEngine

/// TLS over another transport: its consumer sees plaintext, the transport below sees records.
///
/// Received plaintext goes to a buffer that all connections of the loop share; the writes of a turn are collected in
/// one of the loop's spare arrays and leave in as few records as possible: an idle connection holds the engine's state
/// and no buffer.
package final class SecureTransport {
    package typealias Completion = (Result<SecureTransport, TransportFailure>) -> Void

    /// Plaintext of one turn that is encrypted before the turn ends.
    private static let plaintextBufferLimit = 64 << 10

    package let lower: any Transport
    package var consumer: (any TransportConsumer)?
    package private(set) var metadata: TLSMetadata?
    private let connection: SecureConnection
    private let records: CiphertextBuffer
    private let plaintext: PlaintextBuffer
    /// Not checked for overlapping access, which would cost every record: its functions call nothing of this class.
    @exclusivity(unchecked) private var machine = SecureMachine()
    private var turnEndRequest = TurnEndRequest.none
    /// Plaintext written in this turn, or before the handshake was over.
    private var pendingPlaintext: [UInt8] = []
    /// Plaintext that the consumer left unread.
    private var kept: [UInt8] = []
    /// Ciphertext received before the handshake began, and later ciphertext queued after it.
    private var earlyCiphertext: [UInt8]
    private var progress = PlaintextProgress()
    /// Progress is to be reported once the plaintext that the engine keeps has left.
    private var awaitsKeptPlaintext = false
    private let settings: SecureSettings
    /// Received before the handshake was over; counted where there is a limit.
    private var handshakeBytes = 0
    private var completion: Completion?
    private var timer = HoldableTimer()
    /// Sent with the first message of the handshake; kept until the server is known to have taken it.
    private var earlyPlaintext: [UInt8] = []
    /// A turn has ended without early output.
    private var hasAwaitedOutput = false
    /// Whether the handshake was completed.
    package private(set) var isSecured = false

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
        // Pausing and resuming makes the transport offer again what its former consumer left of these bytes.
        self.lower.pauseReading()
        self.timer.arm(after: self.settings.timeout, on: self.loop, target: self)
        if self.settings.sendsEarlyData, let offer = self.connection.earlyDataOffer {
            self.beginEarly(offer)
        } else {
            self.connection.start()
            self.sendRecords()
        }
        self.lower.resumeReading()
        if !self.earlyCiphertext.isEmpty { self.endTurnLater() }
    }

    /// Whether the handshake's timeout is paused, as for a suspended task; the handshake itself continues.
    package var isTimeoutHeld: Bool {
        get { self.timer.isHeld }
        set { self.timer.setHeld(newValue, on: self.loop, target: self) }
    }

    // MARK: Early data

    /// Hands the connection over before its handshake, which begins at the end of the turn, with the output until then.
    private func beginEarly(_ offer: EarlyDataOffer) {
        self.machine.earlyDataBegan()
        self.metadata = offer.metadata
        self.endTurnLater()
        self.completion.take()?(.success(self))
    }

    private func startEarly() {
        if self.pendingPlaintext.isEmpty, !self.hasAwaitedOutput {
            // The owner may write at the end of the turn as well.
            self.hasAwaitedOutput = true
            return self.endTurnLater()
        }
        guard self.machine.earlyDataSent() else { return }
        if self.pendingPlaintext.count <= self.connection.earlyDataOffer?.limit ?? 0 {
            swap(&self.earlyPlaintext, &self.pendingPlaintext)
        }
        self.earlyPlaintext.withRawSpan { self.connection.start(earlyData: $0) }
        self.sendRecords()
    }

    /// The handshake is over: the server took the early data, or gets it again.
    private func resolveEarly(_ metadata: TLSMetadata, offered name: String?) {
        var bytes: [UInt8] = []
        swap(&bytes, &self.earlyPlaintext)
        guard !bytes.isEmpty else { return }
        if case .accepted = metadata.earlyData {
            return self.progress.encrypted(bytes.count, below: self.lower.writtenBytes)
        }
        // It was made for the protocol of the earlier session.
        guard metadata.applicationProtocol == name else {
            return self.fail(TLSFailure(.handshake, reasons: ["the server chose another protocol than for early data"]))
        }
        bytes.withRawSpan { self.encrypt($0) }
    }

    // MARK: Received

    /// Decrypts `ciphertext` until it is used up, the consumer has had enough, or the connection has had its share of the
    /// turn.
    private func decrypt(_ ciphertext: RawSpan) -> Int {
        var used = 0
        var isDrained = false
        while self.machine.decrypts, !(self.machine.isEstablished && self.loop.budgetIsSpent) {
            let event = self.plaintext.lend { plain in
                self.connection.nextEvent(ciphertext, at: &used, plaintext: &plain)
            }
            guard let event else {
                isDrained = true
                break
            }
            self.loop.spend(event.work)
            self.act(on: event)
        }
        self.countHandshakeBytes(used)
        self.sendRecords()
        self.endOffer(leavesBytes: !isDrained || !self.kept.isEmpty)
        return used
    }

    private func endOffer(leavesBytes: Bool) {
        switch self.machine.offerEnded(leavesBytes: leavesBytes, budgetIsSpent: self.loop.budgetIsSpent) {
        case .keep: break
        case .keepAndRequestTurn:
            self.lower.pauseReading()
            self.loop.inNextTurn(self)
        case .drop: self.kept = []
        }
    }

    /// Decrypts bytes received before, here and in OpenSSL.
    private func decryptHeld() {
        var bytes: [UInt8] = []
        swap(&bytes, &self.earlyCiphertext)
        let used = bytes.withRawSpan { self.decrypt($0) }
        if used < bytes.count { self.earlyCiphertext = Array(bytes[used...]) }
    }

    private func countHandshakeBytes(_ count: Int) {
        guard self.machine.isShakingHands, let limit = self.settings.handshakeByteLimit else { return }
        self.handshakeBytes += count
        guard self.handshakeBytes > limit else { return }
        self.fail(TLSFailure(.excessiveInput, reasons: ["the handshake is longer than \(limit) bytes"]))
    }

    private func act(on event: SecureEvent) {
        switch event {
        case .handshakeCompleted(let metadata): self.handshakeCompleted(metadata)
        case .plaintext(let count): self.offer(count)
        case .verificationRequested(let request): self.requestDecision(request)
        case .clientCertificateRequested(let issuers): self.requestIdentity(issuers)
        case .inputClosed: if self.machine.closeNotifyReceived() { self.consumer?.inputClosed() }
        case .failed(let failure):
            self.sendRecords()
            self.fail(failure)
        }
    }

    private func handshakeCompleted(_ metadata: TLSMetadata) {
        let action = self.machine.handshakeCompleted()
        guard action != .ignore else { return }
        let offered = self.metadata?.applicationProtocol
        self.metadata = metadata
        self.isSecured = true
        self.timer.disarm(on: self.loop)
        self.lower.pauseReading()
        if case .proceed(let isReading) = action {
            self.resolveEarly(metadata, offered: offered)
            if isReading { self.resumeReading() }
        }
        if !self.pendingPlaintext.isEmpty { self.awaitProgress() }
        self.completion.take()?(.success(self))
    }

    private func offer(_ count: Int) {
        if !self.kept.isEmpty {
            self.plaintext.lend { self.kept.append($0.bytes.extracting(0..<count)) }
            return self.offerKept()
        }
        self.kept = self.plaintext.lend { plain -> [UInt8] in
            var offered = plain._mutatingExtracting(0..<count)
            let used = self.consumer?.bytesReceived(&offered) ?? count
            return used < count ? [UInt8](plain.bytes.extracting(max(0, used)..<count)) : []
        }
    }

    private func offerKept() {
        guard !self.kept.isEmpty else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &self.kept)
        let used = bytes.withMutableRawSpan { self.consumer?.bytesReceived(&$0) ?? $0.byteCount }
        guard used < bytes.count else { return }
        bytes.removeFirst(max(0, used))
        self.kept = bytes
    }

    // MARK: Sent

    /// Encrypts the plaintext written in this turn.
    private func flush() {
        if self.machine.preparesEarlyData { return self.startEarly() }
        guard self.machine.isEstablished, !self.pendingPlaintext.isEmpty else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &self.pendingPlaintext)
        bytes.withRawSpan { self.encrypt($0) }
        self.loop.returnSpareBuffer(bytes)
    }

    private func encrypt(_ bytes: RawSpan) {
        do throws(TLSFailure) {
            try self.connection.write(bytes)
            self.sendRecords()
            // Forgets pieces that have left meanwhile.
            _ = self.sentBytes
            let isKept = self.connection.pendingPlaintext > 0
            self.progress.encrypted(bytes.byteCount, below: isKept ? nil : self.lower.writtenBytes)
        } catch {
            self.fail(error)
        }
    }

    private func sendRecords() {
        if self.records.count > 0 { self.records.take { _ = self.lower.write($0) } }
        if self.progress.keptBytes > 0 { self.releaseKeptPlaintext() }
    }

    /// The engine may have encrypted what it kept; a connection that failed has dropped it.
    private func releaseKeptPlaintext() {
        guard self.connection.isHandshakeCompleted, self.connection.pendingPlaintext == 0 else { return }
        self.progress.keptEncrypted(below: self.lower.writtenBytes)
        guard self.awaitsKeptPlaintext else { return }
        self.awaitsKeptPlaintext = false
        self.awaitProgress()
    }

    private func endTurnLater() {
        guard case .none = self.turnEndRequest else { return }
        self.turnEndRequest = .requested
        self.loop.atTurnEnd(self)
    }

    /// Requested below once this turn's plaintext is encrypted: the transport below knows when it is sent.
    package func awaitProgress() {
        // Progress of output written before the handshake is over is reported in any case.
        guard self.machine.isEstablished else { return }
        self.endTurnLater()
        self.turnEndRequest = .requestedToReportProgress
    }

    /// Requests a report when all is sent. It would come at once, and again and again, while plaintext is kept.
    private func awaitLower() {
        if self.progress.keptBytes > 0 { self.awaitsKeptPlaintext = true } else { self.lower.awaitProgress() }
    }

    // MARK: Ending

    private func fail(_ failure: TLSFailure) {
        self.fail(.tls(LayerFailure(failure)))
    }

    /// Ends the transport below with a reset, after a pending alert, and reports the failure at the end of the turn.
    private func fail(_ failure: TransportFailure) {
        guard self.machine.fail(failure) else { return }
        self.timer.disarm(on: self.loop)
        self.lower.consumer = nil
        self.lower.close(linger: .seconds(1))
        self.endTurnLater()
    }

    private func reportEnd(_ end: TransportEnd) {
        self.timer.disarm(on: self.loop)
        self.kept = []
        self.pendingPlaintext = []
        self.earlyPlaintext = []
        let consumer = self.consumer.take()
        if let completion = self.completion.take() {
            completion(.failure(end.transportFailure ?? .truncated))
        } else {
            consumer?.transportEnded(end)
        }
    }
}

extension SecureTransport: Transport {
    package var loop: Loop { self.lower.loop }
    package var localAddress: SocketAddress? { self.lower.localAddress }
    package var peerAddress: SocketAddress? { self.lower.peerAddress }

    package var readLimit: Int {
        get { self.lower.readLimit }
        set { self.lower.readLimit = newValue }
    }

    @discardableResult
    package func write(_ bytes: RawSpan) -> Int {
        self.write(LeadingBytes(0, count: 0), bytes)
    }

    @discardableResult
    package func write(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        let count = head.count + bytes.byteCount
        guard self.machine.acceptsOutput, count > 0 else { return self.queuedBytes }
        self.claimBuffer()
        self.progress.accepted(count)
        for index in 0..<head.count { self.pendingPlaintext.append(head[index]) }
        self.pendingPlaintext.append(bytes)
        if self.pendingPlaintext.count >= SecureTransport.plaintextBufferLimit { self.flush() }
        return self.queuedBytes
    }

    @discardableResult
    package func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        guard self.machine.acceptsOutput, count > 0 else { return self.queuedBytes }
        self.claimBuffer()
        let start = self.pendingPlaintext.count
        self.pendingPlaintext.append(contentsOf: repeatElement(0, count: count))
        let used = self.pendingPlaintext.withMutableRawSpan { bytes in
            var room = bytes._mutatingExtracting(start..<(start + count))
            return max(0, min(count, fill(&room)))
        }
        self.pendingPlaintext.removeLast(count - used)
        self.progress.accepted(used)
        if self.pendingPlaintext.count >= SecureTransport.plaintextBufferLimit { self.flush() }
        return self.queuedBytes
    }

    /// Borrows a buffer of the loop for the plaintext of this turn.
    private func claimBuffer() {
        guard self.pendingPlaintext.isEmpty else { return }
        self.pendingPlaintext = self.loop.takeSpareBuffer()
        self.endTurnLater()
    }

    @discardableResult
    package func writeThrough(_ bytes: RawSpan) -> Int {
        guard self.machine.acceptsOutput, bytes.byteCount > 0 else { return self.queuedBytes }
        guard self.machine.isEstablished else { return self.write(bytes) }
        self.flush()
        self.progress.accepted(bytes.byteCount)
        self.encrypt(bytes)
        return self.queuedBytes
    }

    package var outputStall: OutputStall { self.lower.outputStall }
    package func limitUnsent(to limit: Int) { self.lower.limitUnsent(to: limit) }
    package var delivery: OutputDelivery? {
        self.lower.delivery.map { lower in
            var delivery = lower
            delivery.isHeldUp = lower.isHeldUp || !self.pendingPlaintext.isEmpty || self.progress.keptBytes > 0
            return delivery
        }
    }

    package var queuedBytes: Int {
        self.lower.queuedBytes + self.pendingPlaintext.count + self.progress.keptBytes
    }
    package var writtenBytes: UInt64 { self.progress.acceptedBytes }
    /// Plaintext bytes of which every record has left.
    package var sentBytes: UInt64 { self.progress.sent(below: self.lower.sentBytes) }

    package func pauseReading() {
        if self.machine.pause() { self.lower.pauseReading() }
    }

    package func resumeReading() {
        switch self.machine.resume() {
        case .ignore: break
        case .read: self.lower.resumeReading()
        case .requestTurn: self.loop.inNextTurn(self)
        }
    }

    /// close_notify; the connection below stays whole, since TLS itself may still have to answer the peer.
    package func shutdownOutput() {
        guard self.machine.shutdownOutput() else { return }
        self.flush()
        self.connection.closeOutput()
        self.sendRecords()
    }

    /// TLS cannot refuse input: later input stays unread.
    package func shutdownInput() {
        self.lower.shutdownInput()
    }

    package func close(linger: Duration) {
        self.shutdownOutput()
        guard self.machine.close() else { return }
        self.lower.close(linger: linger)
    }

    package func reset() {
        _ = self.machine.close()
        self.lower.reset()
    }

    /// Never: there is no plain descriptor to give.
    package func detach() -> DetachedSocket? {
        nil
    }
}

extension SecureTransport: TransportConsumer {
    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard self.earlyCiphertext.isEmpty else {
            self.earlyCiphertext.append(bytes.bytes)
            return bytes.byteCount
        }
        self.machine.offerBegan()
        return self.decrypt(bytes.bytes)
    }

    package func inputClosed() {
        switch self.machine.lowerInputClosed() {
        case .ignore: break
        case .failTruncated: self.fail(.truncated)
        case .failHandshake: self.fail(.endOfInputDuringHandshake)
        }
    }

    package func outputProgressed() {
        self.consumer?.outputProgressed()
    }

    package var keepsUnreadInput: Bool { self.consumer?.keepsUnreadInput ?? false }

    package func outputFailed() {
        self.consumer?.outputFailed()
    }

    package func transportEnded(_ end: TransportEnd) {
        if self.machine.lowerEnded() { self.reportEnd(end) }
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
        guard case .offerKept = self.machine.turnBegan() else { return }
        self.offerKept()
        self.decryptHeld()
        if self.machine.gate.admitsInput { self.lower.resumeReading() }
    }

    package func turnEnded() {
        let request = self.turnEndRequest
        self.turnEndRequest = .none
        // The handshake begins with bytes received earlier, and continues after a decision.
        if self.machine.isShakingHands, !self.machine.preparesEarlyData { self.decryptHeld() }
        self.flush()
        if case .requestedToReportProgress = request { self.awaitLower() }
        if let failure = self.machine.takeFailure() { self.reportEnd(.failed(failure)) }
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
        self.proceed { $0.resolveVerification(decision) }
    }

    /// While a decision is pending the peer must not fill our memory, nor be blamed for the time.
    private func pauseForDecision() {
        guard self.machine.decisionRequested() else { return }
        self.timer.disarm(on: self.loop)
        self.lower.pauseReading()
    }

    private func proceed(_ decide: (SecureConnection) -> Void) {
        switch self.machine.decisionMade() {
        case .ignore: return
        case .proceed: break
        case .resumeAndProceed:
            self.lower.resumeReading()
            self.timer.arm(after: self.settings.timeout, on: self.loop, target: self)
        }
        decide(self.connection)
        self.endTurnLater()
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
        self.proceed { $0.provideClientCertificate(identity) }
    }
}

extension SecureTransport: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.fail(.deadlinePassed(.securing))
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

extension TLSFailure {
    /// The peer finished sending before the handshake was over.
    static var endOfInputDuringHandshake: TLSFailure {
        TLSFailure(.closedDuringHandshake, reasons: ["the peer closed during the handshake"])
    }
}

extension TransportEnd {
    /// The failure; `nil` if this side ended the connection.
    package var transportFailure: TransportFailure? {
        if case .failed(let failure) = self { failure } else { nil }
    }
}
