import NIOCore
import StreamTransport
import TLSEngine
import WireText

/// One connection to a server, the last handler of its channel. It carries one exchange at a time and is idle in the pool
/// between exchanges. It performs what `ExchangeProgress` decides.
///
/// Confined to its event loop.
final class ClientConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = Never

    enum Phase {
        case opening(ConnectionAttempt)
        case idle
        case busy(Exchange)
        /// The response is complete. Whether the connection is reused is decided at the end of the read.
        case finished(Exchange, trailers: [FieldLine], keepsAlive: Bool)
        /// Switched protocols (101): HTTP is over.
        case upgraded
        case closed
    }

    let wire: WireHandler
    let pool: ConnectionPool
    let key: PoolKey
    /// The pool's generation when the connection was opened. `ConnectionPool.retireConnections` starts the next one.
    let generation: Int
    var metadata = ConnectionMetadata()
    private(set) var context: ChannelHandlerContext?
    var exchangesServed = 0
    private(set) var idleSince = NIODeadline.now()
    private let limits: MessageLimits
    private var phase: Phase
    /// How the connection's packets are marked.
    private var trafficClass = TrafficClass.standard
    /// The system error before the connection ended.
    private var lossCause: TransportFailure?
    /// A piece of the body has been written and the system has not taken all of it.
    private var isWritingBodyPiece = false
    /// `WireHandler.bytesSent` before the first byte of the body.
    private var bodyStart: Int64 = 0
    private var lastActivity = NIODeadline.now()
    /// Whether the current read has delivered anything.
    private var hasReceived = false
    /// Bytes not yet taken by the system when the idle timer last fired.
    private var unsentBytes = 0
    private var idleTimer: (at: NIODeadline, task: Scheduled<Void>)?
    private var continueTimer: Scheduled<Void>?
    private var isReadPending = false
    private var isChannelInactive = false

    init(_ attempt: ConnectionAttempt, wire: WireHandler, limits: MessageLimits) {
        self.phase = .opening(attempt)
        self.wire = wire
        self.limits = limits
        self.pool = attempt.pool
        self.key = attempt.key
        self.generation = attempt.pool.generation
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    /// Whether the server kept the connection open after a response: for a second response, or for at least 100 ms.
    var hasServedResponse: Bool {
        self.exchangesServed > 1 || NIODeadline.now() - self.idleSince >= .milliseconds(100)
    }

    // MARK: Reading

    /// Reads unless the consumer has no demand. An idle connection reads too, to notice that the server closed it.
    func readIfWanted() {
        guard !self.isReadPending, let context = self.wire.context else { return }
        switch self.phase {
        case .busy(let exchange):
            guard exchange.wantsBytes else { return }
        case .idle: break
        case .opening, .finished, .upgraded, .closed: return
        }
        self.isReadPending = true
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.isReadPending = false
        self.recordReadProgress()
        self.finishResponse()
        self.readIfWanted()
        context.fireChannelReadComplete()
    }

    // MARK: Ending

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let metadata = event as? TLSMetadata, case .opening(let attempt) = self.phase {
            attempt.secured(metadata, on: self)
        }
        // Without further input no other response can arrive.
        if event as? ChannelEvent == .inputClosed { self.close() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.isChannelInactive = true
        self.finishResponse()
        self.connectionEnded()
        context.fireChannelInactive()
    }

    /// Closes, and fails the current exchange if it has not ended.
    func close() {
        if case .finished(let exchange, let trailers, _) = self.phase {
            self.phase = .finished(exchange, trailers: trailers, keepsAlive: false)
        }
        self.finishResponse()
        self.connectionEnded()
        self.context?.close(promise: nil)
    }

    /// Closes without notifying the pool, which has already removed the connection.
    func discard() {
        self.phase = .closed
        self.wire.stop()
        self.cancelTimers()
        self.context?.close(promise: nil)
    }

    func recordAddresses() {
        guard let channel = self.context?.channel else { return }
        self.metadata.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
        self.metadata.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
    }

    private func connectionEnded() {
        let phase = self.phase
        if case .closed = phase { return }
        self.phase = .closed
        self.wire.stop()
        self.cancelTimers()
        switch phase {
        case .opening(let attempt): attempt.connectionEnded(self.lossCause, on: self)
        case .busy(let exchange):
            self.pool.connectionClosed(self)
            self.failExchange(exchange)
        case .idle, .finished: self.pool.connectionClosed(self)
        case .upgraded, .closed: break
        }
    }

    private func cancelTimers() {
        self.idleTimer?.task.cancel()
        self.idleTimer = nil
        self.continueTimer?.cancel()
        self.continueTimer = nil
    }

    /// Fails the current exchange, and closes.
    private func fail(_ failure: ExchangeFailure) {
        switch self.phase {
        case .opening(let attempt): attempt.failed(failure, on: self)
        case .busy(let exchange): exchange.fail(failure)
        // The response is complete: bytes that follow it only end the connection.
        case .finished, .idle, .upgraded, .closed: self.close()
        }
    }

    // MARK: Sending a request

    /// Assigns the connection to `exchange` and sends its request.
    func run(_ exchange: Exchange) {
        guard let context = self.context else { return }
        self.phase = .busy(exchange)
        exchange.phase = .running(self)
        self.wire.beginExchange(self)
        self.setTrafficClass(exchange.request.trafficClass)
        if exchange.request.isMeasured {
            exchange.metrics.connection = self.metadata
            exchange.metrics.timings = self.metadata.timings
        }
        exchange.consumer?.connectionReady(self.metadata)
        guard case .busy = self.phase else { return }
        self.lastActivity = .now()
        self.armIdleTimer(for: exchange)
        self.sendHead(exchange, context)
        guard case .busy = self.phase else { return }
        if exchange.progress.sending == .body { self.pumpBody() }
        self.readIfWanted()
    }

    private func setTrafficClass(_ wanted: TrafficClass) {
        guard wanted != self.trafficClass, let peer = self.metadata.peerAddress,
            let mark = wanted.socketOption(toward: peer)
        else { return }
        self.trafficClass = wanted
        let option = ChannelOptions.socket(SocketOptionLevel(mark.level), SocketOptionName(mark.name))
        // Only a hint: if the system refuses the option, the request is sent anyway.
        try? self.context?.channel.syncOptions?.setOption(option, value: SocketOptionValue(mark.value))
    }

    private func sendHead(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        let before = self.wire.bytesSent
        exchange.metrics.requestStart = exchange.timestamp
        self.wire.write(ByteBuffer(bytes: exchange.plan.head.bytes))
        exchange.metrics.requestHeadBytes = self.wire.bytesSent - before
        self.bodyStart = self.wire.bytesSent
        switch exchange.progress.sending {
        case .done:
            self.wire.flush()
            exchange.metrics.requestEnd = exchange.timestamp
        case .awaitingContinue:
            self.wire.flush()
            self.awaitContinue(exchange, context)
        // The first piece of the body is sent together with the head.
        case .body, .abandoned: break
        }
    }

    private func awaitContinue(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        guard let timeout = exchange.plan.continueTimeout else { return }
        self.continueTimer = context.eventLoop.assumeIsolated().scheduleTask(in: .bounded(timeout)) {
            guard case .busy(let current) = self.phase, current === exchange else { return }
            if exchange.progress.continueTimedOut() { self.pumpBody() }
        }
    }

    /// Sends the next piece of the body, unless one is still being written.
    func pumpBody() {
        guard case .busy(let exchange) = self.phase, exchange.progress.sending == .body, !self.isWritingBodyPiece,
            let step = exchange.body?.next(), let context = self.context
        else { return }
        switch step {
        case .piece(let piece): self.send(piece, exchange, context)
        case .end:
            self.endBody(exchange)
            self.wire.flush()
            exchange.metrics.requestEnd = exchange.timestamp
            self.recordActivity()
        case .later: self.wire.flush()
        case .failed(let failure): self.fail(.body(failure))
        }
    }

    private func send(_ piece: ByteBuffer, _ exchange: Exchange, _ context: ChannelHandlerContext) {
        let count = piece.readableBytes
        self.isWritingBodyPiece = true
        self.lastActivity = .now()
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in self.pieceWritten(result, count, exchange) }
        if exchange.plan.framing == .chunked {
            self.wire.write(ByteBuffer(string: "\(String(count, radix: 16))\r\n"))
            self.wire.write(piece)
            self.wire.write(ByteBuffer(staticString: "\r\n"), promise)
        } else {
            self.wire.write(piece, promise)
        }
        // The last byte and the end of the body are one step, so that no response can arrive between them.
        if exchange.body?.isExhausted ?? true { self.endBody(exchange) }
        self.wire.flush()
    }

    private func endBody(_ exchange: Exchange) {
        exchange.progress.bodyEnded()
        if exchange.plan.framing == .chunked { self.wire.write(ByteBuffer(staticString: "0\r\n\r\n")) }
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
    }

    private func pieceWritten(_ result: Result<Void, any Error>, _ count: Int, _ exchange: Exchange) {
        self.isWritingBodyPiece = false
        guard case .busy(let current) = self.phase, current === exchange else { return }
        if case .failure(let error) = result {
            // `channelInactive` follows.
            self.lossCause = self.lossCause ?? TransportFailure(error)
            return
        }
        self.recordActivity()
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.timestamp }
        exchange.consumer?.bodySent(count)
        // In another turn, so that a fast peer does not starve the loop's other connections.
        self.context?.eventLoop.assumeIsolated().execute { self.pumpBody() }
    }

    // MARK: Receiving a response

    /// - Returns: the framing of the content that follows; `nil` if none follows or the exchange has ended.
    func headReceived(_ head: ResponseHead) -> ResponseFraming? {
        guard case .busy(let exchange) = self.phase else {
            self.fail(.violation(.unsolicited))
            return nil
        }
        self.hasReceived = true
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.timestamp }
        guard !head.isInterim else {
            self.informationalReceived(head, exchange)
            return nil
        }
        switch exchange.progress.headReceived(head) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .upgrade: exchange.consumer?.headReceived(head, framing: .none)
        case .deliver(let framing):
            exchange.consumer?.headReceived(head, framing: framing)
            if case .busy = self.phase { return framing }
        }
        return nil
    }

    private func informationalReceived(_ head: ResponseHead, _ exchange: Exchange) {
        switch exchange.progress.informationalReceived(head, limit: self.limits.informationalHeads) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .deliver(let startsBody):
            exchange.consumer?.informationalHeadReceived(head)
            if startsBody { self.pumpBody() }
        }
    }

    func contentReceived(_ bytes: ByteBuffer) {
        guard case .busy(let exchange) = self.phase else { return self.fail(.violation(.unsolicited)) }
        self.hasReceived = true
        exchange.progress.contentReceived(bytes.readableBytes)
        exchange.contentReceived(bytes)
    }

    func responseEnded(_ trailers: [FieldLine]) {
        guard case .busy(let exchange) = self.phase else { return }
        let keepsAlive = exchange.progress.responseEnded()
        exchange.metrics.responseEnd = exchange.timestamp
        self.phase = .finished(exchange, trailers: trailers, keepsAlive: keepsAlive)
    }

    /// At the end of a read: releases or closes the connection of a complete response. The consumer is notified last, so
    /// that its next request finds the connection idle.
    private func finishResponse() {
        guard case .finished(let exchange, let trailers, let keepsAlive) = self.phase else { return }
        self.recordWireCounts(exchange)
        self.continueTimer?.cancel()
        self.continueTimer = nil
        if case .complete = exchange.progress.receiving {
            if exchange.progress.isUpgraded { return self.completeUpgrade(exchange) }
            if keepsAlive, self.wire.endExchange(), !self.isChannelInactive {
                self.phase = .idle
                self.idleSince = self.lastActivity
                self.pool.connectionFreed(self)
            } else {
                self.phase = .idle
                self.close()
            }
        }
        exchange.responseFinished(trailers)
    }

    private func recordWireCounts(_ exchange: Exchange) {
        exchange.metrics.responseHeadBytes = self.wire.headBytes
        exchange.metrics.responseBodyBytes = self.wire.bodyBytes
    }

    private func completeUpgrade(_ exchange: Exchange) {
        self.phase = .upgraded
        self.pool.connectionClosed(self)
        guard let connection = UpgradedConnection(self) else { return exchange.fail(.cancelled) }
        exchange.end(.upgraded(connection))
    }

    /// The connection ended before the response did.
    private func failExchange(_ exchange: Exchange) {
        self.recordWireCounts(exchange)
        guard !exchange.isEnded else { return }
        switch exchange.progress.loss {
        case .none: exchange.responseFinished([])
        case .withinContent(let received, let expected):
            self.end(exchange, .truncated(received: received, expected: expected, cause: self.lossCause))
        case .beforeHead: self.end(exchange, .connectionLost(self.loss(exchange, responseBegan: true)))
        case .beforeResponse:
            let failure = ExchangeFailure.connectionLost(self.loss(exchange, responseBegan: false))
            // The server may have closed the idle connection just as the request was written.
            let isStale = self.metadata.isReused && self.wire.headBytes == 0
            guard isStale, exchange.prepareToRepeat() else { return self.end(exchange, failure) }
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
            responseBegan: responseBegan || self.wire.headBytes > 0, wasRepeated: exchange.isRepeated)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let violation as ResponseViolation: self.fail(.violation(violation))
        case let failure as TLSFailure: self.fail(.securing(failure))
        default:
            self.lossCause = TransportFailure(error)
            self.close()
        }
    }

    // MARK: Idle timeout

    private func recordActivity() {
        self.lastActivity = .now()
    }

    /// Reads the clock once per read.
    private func recordReadProgress() {
        guard self.hasReceived else { return }
        self.hasReceived = false
        self.recordActivity()
    }

    /// One timer serves many exchanges: when it fires it compares `lastActivity` and is scheduled again, instead of being
    /// re-armed with every byte.
    private func armIdleTimer(for exchange: Exchange) {
        guard let timeout = exchange.request.idleTimeout.map(TimeAmount.bounded) else { return }
        let wanted = self.lastActivity + timeout
        if let deadline = self.idleTimer, deadline.at <= wanted { return }
        self.idleTimer?.task.cancel()
        self.schedule(at: wanted)
    }

    private func schedule(at deadline: NIODeadline) {
        guard let eventLoop = self.context?.eventLoop.assumeIsolated() else { return }
        self.idleTimer = (deadline, eventLoop.scheduleTask(deadline: deadline) { self.idleTimerFired() })
    }

    private func idleTimerFired() {
        self.idleTimer = nil
        guard case .busy(let exchange) = self.phase, let timeout = exchange.request.idleTimeout.map(TimeAmount.bounded)
        else { return }
        let now = NIODeadline.now()
        // The timeout does not run while the caller, not the server, is being waited for.
        if !self.isWaitingForPeer(exchange) || self.didSendBodyBytes() { self.lastActivity = now }
        guard now < self.lastActivity + timeout else { return self.fail(.idle) }
        self.schedule(at: self.lastActivity + timeout)
    }

    /// Whether the system took some bytes of a piece that is still being written.
    private func didSendBodyBytes() -> Bool {
        guard self.isWritingBodyPiece else { return false }
        let unsent = try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        defer { self.unsentBytes = unsent ?? 0 }
        return unsent != self.unsentBytes
    }

    private func isWaitingForPeer(_ exchange: Exchange) -> Bool {
        if exchange.isSuspended { return false }
        if self.isWritingBodyPiece { return true }
        if exchange.progress.sending == .body { return false }
        return exchange.wantsBytes
    }
}

/// Receives the bytes of a connection after HTTP is over on it. Called on its event loop.
protocol RawBytesConsumer: AnyObject {
    func rawBytesReceived(_ bytes: ByteBuffer)
    func rawReadCompleted()
    func rawInputClosed()
    func rawErrorCaught(_ error: any Error)
    func rawConnectionEnded()
}
