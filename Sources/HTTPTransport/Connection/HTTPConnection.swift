import ByteKernels
import SessionTasks
import StreamTransport
import WireText

/// One HTTP/1.1 connection to a server. It carries one exchange at a time and is idle in the pool between exchanges. It
/// performs what `ExchangeProgress` decides.
///
/// Confined to its loop.
final class HTTPConnection: ExchangeCarrier {
    private enum Phase {
        case idle
        case busy(Exchange)
        /// The response is complete. Whether the connection is reused is decided at the end of the turn.
        case finished(Exchange, trailers: [FieldLine], keepsAlive: Bool)
        /// HTTP is over: the server switched protocols (101), or the consumer took the connection.
        case detached
        case closed
    }

    /// From so many bytes on, a piece of a body is sent by a call of its own instead of being copied.
    private static let largePiece = 16 << 10

    let pool: ConnectionPool
    let key: PoolKey
    /// The pool's generation when the connection was opened. `ConnectionPool.retireConnections` starts the next one.
    let generation: Int
    var metadata: ConnectionMetadata
    var exchangesServed = 0
    /// Keeps the connection from others between two exchanges.
    var lease: ConnectionLease?
    private(set) var idleSince: MonotonicInstant
    private let transport: any Transport
    private var reader: ResponseReader
    /// Bytes behind the head of the current response, unparsed while its consumer may take the connection: those of one
    /// read, perhaps none. `nil` if the consumer has decided.
    private var heldBytes: [UInt8]?
    private var phase = Phase.idle
    /// Of the latest response, whose head says what the server speaks.
    private var servesHTTP11 = false
    /// `nil` before the first request is pipelined.
    private var pipeline: RequestPipeline?
    private var isTurnEndRequested = false
    /// How the connection's packets are marked.
    private var trafficClass = TrafficClass.standard
    /// How the connection ended, unless we closed it.
    private var transportEnd: TransportEnd?
    /// The piece of the body that is being written: its length, and `Transport.sentBytes` when the system has taken it.
    private var unsentPiece: (count: Int, end: UInt64)?
    /// Of the current request, on the wire.
    private var requestBytes: Int64 = 0
    private var lastActivity: MonotonicInstant
    /// Bytes not yet acknowledged when the idle timer last fired; `nil` if it has not for this exchange.
    private var unsentBytes: Int?
    private let idleTimer = LoopTimer()
    private var idleDeadline: MonotonicInstant?
    private let continueTimer = LoopTimer()

    /// - Parameter transport: paused, and without a consumer.
    init(_ transport: any Transport, _ metadata: ConnectionMetadata, key: PoolKey, in pool: ConnectionPool) {
        self.transport = transport
        self.metadata = metadata
        self.key = key
        self.pool = pool
        self.generation = pool.generation
        self.reader = ResponseReader(limits: pool.settings.limits)
        self.idleSince = pool.loop.now
        self.lastActivity = pool.loop.now
        transport.consumer = self
    }

    private var loop: Loop { self.pool.loop }
    private var lossCause: TransportFailure? { self.transportEnd?.transportFailure }

    /// Whether the server kept the connection open after a response: for a second response, or for at least 100 ms.
    var hasServedResponse: Bool {
        self.exchangesServed > 1 || self.idleSince.duration(to: self.loop.now) >= .milliseconds(100)
    }

    /// Reads unless the consumer has no demand. An idle connection reads too, to notice that the server closed it.
    func updateReading() {
        switch self.phase {
        case .busy(let exchange) where !exchange.wantsBytes:
            self.transport.pauseReading()
            self.watchPipeline()
        case .busy where self.heldBytes != nil: self.readHeldBytes()
        case .busy, .idle:
            // The time in which the consumer wanted nothing does not count.
            self.recordActivity()
            if self.transportEnd == nil { self.transport.resumeReading() }
        case .finished, .detached, .closed: break
        }
    }

    // MARK: Ending

    /// Closes, and fails the current exchange if it has not ended.
    func close() {
        if case .finished(let exchange, let trailers, _) = self.phase {
            self.phase = .finished(exchange, trailers: trailers, keepsAlive: false)
        }
        self.finishResponse()
        self.connectionEnded()
    }

    /// Closes without notifying the pool, which has already removed the connection.
    func discard() {
        self.phase = .closed
        self.closeTransport()
    }

    private func connectionEnded() {
        let phase = self.phase
        switch phase {
        case .detached, .closed: return
        case .idle, .busy, .finished: self.discard()
        }
        self.pool.connectionClosed(self)
        if case .busy(let exchange) = phase { self.failExchange(exchange) }
        self.repeatPipelined()
    }

    private func closeTransport() {
        self.reader.stop()
        self.heldBytes = nil
        self.loop.disarm(self.idleTimer)
        self.loop.disarm(self.continueTimer)
        self.transport.consumer = nil
        self.transport.close(linger: .zero)
    }

    /// Fails the current exchange, and closes.
    private func fail(_ failure: ExchangeFailure) {
        switch self.phase {
        case .busy(let exchange): exchange.fail(failure)
        // The response is complete: bytes that follow it only end the connection.
        case .finished, .idle, .detached, .closed: self.close()
        }
    }

    /// The connection ended before the response did.
    private func failExchange(_ exchange: Exchange) {
        self.recordWireCounts(exchange)
        guard !exchange.isEnded else { return }
        // The handshake may have failed because of the early data (RFC 8446 §D.3).
        if (self.transport as? SecureTransport)?.isSecured == false, self.transportEnd != nil,
            exchange.prepareToRepeat()
        {
            return self.pool.repeatOnFreshConnection(exchange)
        }
        if let failure = ExchangeFailure(tls: self.lossCause) { return self.end(exchange, failure) }
        switch exchange.progress.loss {
        case .none: exchange.responseFinished([])
        case .withinContent(let received, let expected):
            self.end(exchange, .truncated(received: received, expected: expected, cause: self.lossCause))
        case .beforeHead: self.end(exchange, .connectionLost(self.loss(exchange, responseBegan: true)))
        case .beforeResponse:
            let failure = ExchangeFailure.connectionLost(self.loss(exchange, responseBegan: false))
            // The server may have closed the idle connection just as the request was written.
            let isStale = self.metadata.isReused && self.reader.headBytes == 0 || exchange.wasPipelined
            guard isStale, exchange.prepareToRepeat() else { return self.end(exchange, failure) }
            exchange.mayBePipelined = false
            self.pool.repeatOnFreshConnection(exchange)
        }
    }

    private func end(_ exchange: Exchange, _ failure: ExchangeFailure) {
        exchange.phase = .created
        exchange.fail(failure)
    }

    private func loss(_ exchange: Exchange, responseBegan: Bool) -> ConnectionLoss {
        ConnectionLoss(
            cause: self.lossCause, wasReused: self.metadata.isReused,
            responseBegan: responseBegan || self.reader.headBytes > 0, wasRepeated: exchange.isRepeated)
    }
}

// MARK: Sending a request

extension HTTPConnection {
    /// Assigns the connection to `exchange` and sends its request.
    func run(_ exchange: Exchange) {
        self.phase = .busy(exchange)
        exchange.phase = .running(self)
        if let lease = exchange.request.lease {
            self.lease = lease
            lease.began(self)
        }
        self.reader.beginResponse()
        self.setTrafficClass(exchange.request.trafficClass)
        if exchange.request.isMeasured {
            exchange.metrics.connection = self.metadata
            exchange.metrics.timings = self.metadata.timings
        }
        exchange.consumer?.connectionReady(self.metadata)
        guard case .busy = self.phase else { return }
        self.recordActivity()
        self.armIdleTimer(for: exchange)
        self.sendHead(exchange)
        if exchange.progress.sending == .body { self.pumpBody() }
        self.updateReading()
    }

    private func setTrafficClass(_ wanted: TrafficClass) {
        guard wanted != self.trafficClass else { return }
        self.trafficClass = wanted
        self.transport.setTrafficClass(wanted, on: self.loop)
    }

    private func sendHead(_ exchange: Exchange) {
        exchange.metrics.requestStart = exchange.timestamp
        self.requestBytes = 0
        let head = exchange.plan.head.bytes
        head.withRawSpan { _ = self.transport.write($0) }
        exchange.metrics.requestHeadBytes = Int64(head.count)
        switch exchange.progress.sending {
        case .done: exchange.metrics.requestEnd = exchange.timestamp
        case .awaitingContinue:
            guard let timeout = exchange.plan.continueTimeout else { return }
            self.loop.arm(self.continueTimer, after: timeout, target: self)
        case .body, .abandoned: break
        }
    }

    /// Sends the next piece of the body, unless one is still being written.
    func pumpBody() {
        guard case .busy(let exchange) = self.phase, exchange.progress.sending == .body, self.unsentPiece == nil,
            !exchange.isSuspended, let step = exchange.body?.next()
        else { return }
        switch step {
        case .piece(let count): self.send(count, exchange)
        case .end:
            self.endBody(exchange)
            exchange.metrics.requestEnd = exchange.timestamp
            self.recordActivity()
        case .later: break
        case .failed(let failure): self.fail(.body(failure))
        }
    }

    private func send(_ count: Int, _ exchange: Exchange) {
        self.recordActivity()
        let isChunked = exchange.plan.framing == .chunked
        if isChunked { self.sendFraming(ChunkReader.header(count)) }
        exchange.body?.withPiece(count) { piece in
            _ = count < Self.largePiece ? self.transport.write(piece) : self.transport.writeThrough(piece)
        }
        self.requestBytes += Int64(count)
        if isChunked { self.sendFraming(Array("\r\n".utf8)) }
        self.unsentPiece = (count, self.transport.writtenBytes)
        // The last byte and the end of the body are one step, so that no response can arrive between them.
        if exchange.body?.isExhausted ?? true { self.endBody(exchange) }
        self.transport.awaitProgress()
    }

    private func sendFraming(_ bytes: [UInt8]) {
        bytes.withRawSpan { _ = self.transport.write($0) }
        self.requestBytes += Int64(bytes.count)
    }

    private func endBody(_ exchange: Exchange) {
        exchange.progress.bodyEnded()
        if exchange.plan.framing == .chunked { self.sendFraming(Array("0\r\n\r\n".utf8)) }
        exchange.metrics.requestBodyBytes = self.requestBytes
    }

    private func pieceSent(_ count: Int) {
        self.unsentPiece = nil
        guard case .busy(let exchange) = self.phase else { return }
        self.recordActivity()
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes = self.requestBytes
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.timestamp }
        exchange.progress.bodyProgressed()
        exchange.consumer?.bodySent(count)
        // In another turn, so that a fast peer does not starve the loop's other connections.
        if exchange.progress.sending == .body { self.loop.inNextTurn(self) }
    }
}

// MARK: Receiving a response

extension HTTPConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.recordActivity()
        self.loop.spend(bytes.byteCount)
        return self.read(bytes.bytes)
    }

    /// - Returns: how many bytes are used up.
    private func read(_ bytes: RawSpan) -> Int {
        var offset = 0
        do throws(ResponseViolation) {
            while let event = try self.reader.next(bytes, at: &offset) {
                switch event {
                case .head(let head):
                    self.headReceived(head)
                    if self.holdBytes(bytes.extracting(offset..<bytes.byteCount)) { offset = bytes.byteCount }
                case .content(let range): self.contentReceived(bytes.extracting(range))
                case .end(let trailers): self.responseEnded(trailers)
                }
                if self.heldBytes != nil { break }
            }
        } catch {
            self.violated(error)
            return bytes.byteCount
        }
        if case .busy = self.phase { self.updateReading() }
        return offset
    }

    /// - Returns: whether `bytes` wait until the consumer wants content or takes the connection.
    private func holdBytes(_ bytes: RawSpan) -> Bool {
        guard case .busy(let exchange) = self.phase, exchange.holdsConnection else { return false }
        self.heldBytes = [UInt8](bytes)
        return true
    }

    /// The consumer does not take the connection. Bytes of a further response follow it in a turn of their own.
    private func readHeldBytes() {
        guard let bytes = self.heldBytes.take() else { return }
        let used = bytes.withRawSpan { self.read($0) }
        if used < bytes.count { self.heldBytes = Array(bytes[used...]) }
    }

    /// The consumer takes the connection in place of the content.
    /// - Returns: `false` if content was read already.
    func detach() -> Bool {
        guard case .busy(let exchange) = self.phase, exchange.holdsConnection, let unread = self.heldBytes.take() else {
            return false
        }
        self.recordWireCounts(exchange)
        exchange.metrics.responseEnd = exchange.timestamp
        let readsOnly = exchange.wasPipelined || self.pipeline?.wasWritten == true
        self.repeatPipelined()
        self.handOver(exchange, DetachedConnection(self.transport, self.metadata, unread: unread, readsOnly: readsOnly))
        return true
    }

    private func violated(_ violation: ResponseViolation) {
        // Some servers mix up the answers to requests that are written at once.
        if case .busy(let exchange) = self.phase, exchange.wasPipelined, exchange.progress.loss == .beforeResponse {
            self.pool.stopPipelining(self.key)
            return self.connectionEnded()
        }
        self.fail(.violation(violation))
    }

    private func headReceived(_ head: ResponseHead) {
        guard case .busy(let exchange) = self.phase else { return self.fail(.violation(.unsolicited)) }
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.timestamp }
        guard !head.isInterim else { return self.informationalReceived(head, exchange) }
        self.servesHTTP11 = head.version >= .http11
        switch exchange.progress.headReceived(head) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .upgrade:
            // What follows is for the connection's next owner.
            self.transport.pauseReading()
            exchange.consumer?.headReceived(head, framing: .none)
            self.responseEnded([])
        case .deliver(let framing):
            exchange.consumer?.headReceived(head, framing: framing)
            if case .busy = self.phase { self.reader.begin(framing) }
        }
    }

    private func informationalReceived(_ head: ResponseHead, _ exchange: Exchange) {
        switch exchange.progress.informationalReceived(head, limit: self.pool.settings.limits.informationalHeads) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .deliver(let startsBody):
            exchange.consumer?.informationalHeadReceived(head)
            if startsBody { self.pumpBody() }
        }
    }

    private func contentReceived(_ bytes: RawSpan) {
        guard case .busy(let exchange) = self.phase else { return }
        exchange.progress.contentReceived(bytes.byteCount)
        exchange.contentReceived(bytes)
    }

    private func responseEnded(_ trailers: [FieldLine]) {
        self.outputProgressed()
        guard case .busy(let exchange) = self.phase else { return }
        self.unsentPiece = nil
        let keepsAlive = exchange.progress.responseEnded()
        exchange.metrics.responseEnd = exchange.timestamp
        self.phase = .finished(exchange, trailers: trailers, keepsAlive: keepsAlive)
        // What follows is the next response, which begins in the next turn.
        if self.reader.leavesExcess { self.transport.pauseReading() }
        guard !self.isTurnEndRequested else { return }
        self.isTurnEndRequested = true
        self.loop.atTurnEnd(self)
    }

    /// Releases or closes the connection of a complete response. The consumer is notified last, so that its next
    /// request finds the connection idle.
    private func finishResponse() {
        guard case .finished(let exchange, let trailers, let keepsAlive) = self.phase else { return }
        self.recordWireCounts(exchange)
        self.loop.disarm(self.continueTimer)
        if exchange.progress.isUpgraded {
            return self.handOver(exchange, DetachedConnection(self.transport, self.metadata))
        }
        self.phase = .idle
        if keepsAlive, let next = self.pipeline?.popFirst() {
            self.advance(to: next)
        } else if keepsAlive, self.pipeline?.isBroken != true, self.reader.endResponse() {
            self.idleSince = self.lastActivity
            self.pool.connectionFreed(self)
        } else {
            self.repeatPipelined()
            self.close()
        }
        exchange.responseFinished(trailers)
    }

    private func recordWireCounts(_ exchange: Exchange) {
        exchange.metrics.responseHeadBytes = self.reader.headBytes
        exchange.metrics.responseBodyBytes = self.reader.bodyBytes
    }

    private func handOver(_ exchange: Exchange, _ connection: DetachedConnection) {
        self.phase = .detached
        self.loop.disarm(self.idleTimer)
        if let transportEnd { connection.transportEnded(transportEnd) }
        self.pool.connectionClosed(self)
        exchange.end(.detached(connection))
    }

    /// Without further input no other response can arrive.
    func inputClosed() {
        self.readHeldBytes()
        self.stopPipelining()
        if self.reader.inputEnded() { self.responseEnded([]) }
        self.close()
    }

    func outputProgressed() {
        guard let (count, end) = self.unsentPiece, self.transport.sentBytes >= end else { return }
        self.pieceSent(count)
    }

    func transportEnded(_ end: TransportEnd) {
        self.transportEnd = end
        self.readHeldBytes()
        self.stopPipelining()
        self.close()
    }
}

extension HTTPConnection: TurnEndTarget {
    func turnEnded() {
        self.isTurnEndRequested = false
        self.finishResponse()
        self.updateReading()
    }

    func nextTurnBegan() {
        self.pumpBody()
    }
}

// MARK: Pipelining

extension HTTPConnection {
    /// Whether another request can be written behind the current ones: the server has shown that it keeps connections
    /// open.
    var acceptsPipelined: Bool {
        guard case .busy(let current) = self.phase, self.exchangesServed > 0, self.servesHTTP11,
            self.transportEnd == nil, current.mayBePipelined, self.generation == self.pool.generation
        else { return false }
        return self.pipeline?.hasCapacity ?? true
    }

    /// Writes the request of `exchange` behind the others.
    func pipeline(_ exchange: Exchange) {
        let pipeline = self.pipeline ?? RequestPipeline()
        self.pipeline = pipeline
        pipeline.append(exchange)
        exchange.phase = .pipelined(self)
        exchange.wasPipelined = true
        self.reader.leavesExcess = true
        exchange.metrics.requestStart = exchange.timestamp
        let head = exchange.plan.head.bytes
        head.withRawSpan { _ = self.transport.write($0) }
        exchange.metrics.requestHeadBytes = Int64(head.count)
        exchange.metrics.requestEnd = exchange.timestamp
        self.watchPipeline()
    }

    /// The response of `exchange` is the next one. Its timeout begins now.
    private func advance(to exchange: Exchange) {
        self.exchangesServed += 1
        self.reader.leavesExcess = self.pipeline?.isEmpty == false
        self.phase = .busy(exchange)
        exchange.phase = .running(self)
        self.reader.beginResponse()
        self.metadata.isReused = true
        self.metadata.timings = ConnectTimings()
        if exchange.request.isMeasured { exchange.metrics.connection = self.metadata }
        exchange.consumer?.connectionReady(self.metadata)
        guard case .busy = self.phase else { return }
        self.recordActivity()
        self.armIdleTimer(for: exchange)
        self.pool.pipelineAdvanced(self)
    }

    /// `exchange`, whose request is written, has ended. Its response is not read: the connection is closed behind the
    /// current response, and the other requests are sent again.
    func withdraw(_ exchange: Exchange) {
        self.pipeline?.remove(exchange)
        self.pipeline?.breakOff()
        self.repeatPipelined()
    }

    /// Sends the pipelined requests again, one by one on other connections.
    private func repeatPipelined() {
        guard let pipeline, !pipeline.isEmpty else { return }
        self.loop.disarm(pipeline.patienceTimer)
        let exchanges = pipeline.takeAll()
        for exchange in exchanges {
            exchange.phase = .created
            exchange.mayBePipelined = false
        }
        self.pool.repeatExchanges(exchanges.filter { $0.prepareToRepeat() }, on: self.key)
    }

    /// The server closes without a word, although requests wait: it may not expect several.
    private func stopPipelining() {
        if self.pipeline?.isEmpty == false { self.pool.stopPipelining(self.key) }
    }

    /// A consumer that takes nothing must not keep the requests behind it waiting.
    private func watchPipeline() {
        guard let pipeline, !pipeline.isEmpty, case .busy(let exchange) = self.phase, !exchange.wantsBytes else {
            return
        }
        self.loop.arm(pipeline.patienceTimer, after: RequestPipeline.patience, target: self)
    }
}

// MARK: Timeouts

extension HTTPConnection: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        if timer === self.idleTimer { self.idleDeadline = nil }
        guard case .busy(let exchange) = self.phase else { return }
        if timer === self.pipeline?.patienceTimer {
            if !exchange.wantsBytes { self.repeatPipelined() }
        } else if timer === self.idleTimer {
            self.idleTimerFired(exchange)
        } else if exchange.progress.continueTimedOut() {
            self.pumpBody()
        }
    }

    private func recordActivity() { self.lastActivity = self.loop.now }

    /// One timer serves many exchanges: when it fires it compares `lastActivity` and is armed again, instead of being
    /// re-armed with every byte.
    private func armIdleTimer(for exchange: Exchange) {
        guard let interval = exchange.idleInterval else { return }
        self.unsentBytes = nil
        let wanted = self.lastActivity.advanced(by: interval)
        if let deadline = self.idleDeadline, deadline <= wanted { return }
        self.armIdleTimer(at: wanted)
    }

    private func armIdleTimer(at deadline: MonotonicInstant) {
        self.idleDeadline = deadline
        self.loop.arm(self.idleTimer, at: deadline, target: self)
    }

    private func idleTimerFired(_ exchange: Exchange) {
        guard let timeout = exchange.request.idleTimeout else { return }
        // The timeout does not run while the caller, not the server, is being waited for.
        if !self.isWaitingForPeer(exchange) || self.didSendBodyBytes(exchange) { self.recordActivity() }
        let deadline = self.lastActivity.advanced(by: timeout)
        guard self.loop.now < deadline else { return self.fail(.idle) }
        self.armIdleTimer(at: min(deadline, self.loop.now.advanced(by: exchange.idleInterval ?? timeout)))
    }

    /// Whether bytes of the body were acknowledged since the timer last fired.
    private func didSendBodyBytes(_ exchange: Exchange) -> Bool {
        guard exchange.body != nil else { return false }
        let unsent = self.transport.unacknowledgedBytes
        defer { self.unsentBytes = unsent }
        return unsent != self.unsentBytes
    }

    private func isWaitingForPeer(_ exchange: Exchange) -> Bool {
        if exchange.isSuspended { return false }
        if self.unsentPiece != nil { return true }
        if exchange.progress.sending == .body { return false }
        return exchange.wantsBytes
    }
}
