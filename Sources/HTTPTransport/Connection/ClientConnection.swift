import NIOCore
import StreamTransport
import TLSEngine

/// One connection to a server, as a channel's last handler: carries one exchange at a time and rests in the pool
/// between them. Performs what the exchange's progress decides.
///
/// Confined to its event loop.
final class ClientConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = Never

    enum Phase {
        case opening(ConnectionAttempt)
        case idle
        case busy(Exchange)
        /// The response of the exchange is complete; what comes of the connection is decided when the read is over.
        case finished(Exchange, trailers: [HeaderField], keepsAlive: Bool)
        /// Not HTTP any more.
        case upgraded
        case closed
    }

    let wire: WireHandler
    let limits: MessageLimits
    let pool: ConnectionPool
    let key: PoolKey
    /// Of those that the pool had when it was told to retire them all.
    let generation: Int
    var facts = ConnectionMetadata()
    var phase: Phase
    var context: ChannelHandlerContext?
    var exchangesServed = 0
    /// What its packets are marked with.
    var trafficClass = TrafficClass.standard
    /// Since when it rests.
    var idleSince = NIODeadline.now()
    /// What the system said before the connection ended.
    var lossCause: TransportFailure?
    /// A piece of the body is on its way to the system.
    var isWritingPiece = false
    /// The piece's bytes on the wire before it was written.
    var bodyStart: Int64 = 0
    var lastProgress = NIODeadline.now()
    /// Whether the read under way has brought anything.
    var hasReceived = false
    /// What waited for the system when the deadline last looked.
    var unsentBytes = 0
    var deadline: (at: NIODeadline, task: Scheduled<Void>)?
    var continueTimer: Scheduled<Void>?
    private var awaitsRead = false
    /// The channel has ended.
    private(set) var isGone = false

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

    /// Whether the server has left it open behind a response, for another one or for a while.
    var hasServedResponse: Bool {
        self.exchangesServed > 1 || NIODeadline.now() - self.idleSince >= .milliseconds(100)
    }

    var busyExchange: Exchange? {
        switch self.phase {
        case .busy(let exchange), .finished(let exchange, _, _): exchange
        case .opening, .idle, .upgraded, .closed: nil
        }
    }

    // MARK: Reading

    /// Reads on unless the consumer is behind. An idle connection reads too, to learn that the server closed it.
    func readIfWanted() {
        guard !self.awaitsRead, let context = self.wire.context else { return }
        switch self.phase {
        case .busy(let exchange):
            guard exchange.wantsBytes else { return }
        case .idle: break
        case .opening, .finished, .upgraded, .closed: return
        }
        self.awaitsRead = true
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.awaitsRead = false
        self.noteReceived()
        self.finishResponse()
        self.readIfWanted()
        context.fireChannelReadComplete()
    }

    // MARK: Ending

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let facts = event as? TLSMetadata, case .opening(let attempt) = self.phase {
            attempt.secured(facts, on: self)
        }
        // The server sends no more, so there will be no other response.
        if event as? ChannelEvent == .inputClosed { self.close() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.isGone = true
        self.finishResponse()
        self.connectionEnded()
        context.fireChannelInactive()
    }

    /// The exchange gave up; nobody can tell any more where its response would end.
    func abandon() {
        self.close()
    }

    /// Closes; the exchange under way, if it has not ended, is told what it lost.
    func close() {
        if case .finished(let exchange, let trailers, _) = self.phase {
            self.phase = .finished(exchange, trailers: trailers, keepsAlive: false)
        }
        self.finishResponse()
        self.connectionEnded()
        self.context?.close(promise: nil)
    }

    /// Closes, and tells nobody: the pool has forgotten it already.
    func discard() {
        self.phase = .closed
        self.wire.stop()
        self.cancelTimers()
        self.context?.close(promise: nil)
    }

    func noteAddresses() {
        guard let channel = self.context?.channel else { return }
        self.facts.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
        self.facts.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
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
        self.deadline?.task.cancel()
        self.deadline = nil
        self.continueTimer?.cancel()
        self.continueTimer = nil
    }

    /// Fails the exchange under way, and closes.
    func fail(_ failure: ExchangeFailure) {
        switch self.phase {
        case .opening(let attempt): attempt.failed(failure, on: self)
        case .busy(let exchange): exchange.fail(failure)
        // The response is complete; what came behind it only ends the connection.
        case .finished, .idle, .upgraded, .closed: self.close()
        }
    }
}

extension ClientConnection {
    /// Sends the request of `exchange`, whose connection this now is.
    func run(_ exchange: Exchange) {
        guard let context = self.context else { return }
        self.phase = .busy(exchange)
        exchange.phase = .running(self)
        self.wire.beginExchange(self)
        self.mark(exchange.order.trafficClass)
        if exchange.order.isMeasured {
            exchange.metrics.connection = self.facts
            exchange.metrics.timings = self.facts.timings
        }
        exchange.consumer?.connectionReady(self.facts)
        guard case .busy = self.phase else { return }
        self.lastProgress = .now()
        self.watch(exchange)
        self.sendHead(exchange, context)
        guard case .busy = self.phase else { return }
        if exchange.progress.sending == .body { self.pumpBody() }
        self.readIfWanted()
    }

    private func mark(_ wanted: TrafficClass) {
        guard wanted != self.trafficClass, let peer = self.facts.peerAddress,
            let mark = wanted.socketOption(toward: peer)
        else { return }
        self.trafficClass = wanted
        let option = ChannelOptions.socket(SocketOptionLevel(mark.level), SocketOptionName(mark.name))
        // A hint: where the system does not take it, the request goes all the same.
        try? self.context?.channel.syncOptions?.setOption(option, value: SocketOptionValue(mark.value))
    }

    private func sendHead(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        let before = self.wire.bytesSent
        exchange.metrics.requestStart = exchange.instant
        self.wire.write(exchange.plan.head.bytes)
        exchange.metrics.requestHeadBytes = self.wire.bytesSent - before
        self.bodyStart = self.wire.bytesSent
        switch exchange.progress.sending {
        case .done:
            self.wire.flush()
            exchange.metrics.requestEnd = exchange.instant
        case .awaitingContinue:
            self.wire.flush()
            self.awaitContinue(exchange, context)
        // The first piece leaves together with the head.
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

    /// Sends the next piece of the body, unless one is still on its way.
    func pumpBody() {
        guard case .busy(let exchange) = self.phase, exchange.progress.sending == .body, !self.isWritingPiece,
            let step = exchange.body?.next(), let context = self.context
        else { return }
        switch step {
        case .piece(let piece): self.send(piece, exchange, context)
        case .end:
            self.endBody(exchange)
            self.wire.flush()
            exchange.metrics.requestEnd = exchange.instant
            self.progressed()
        case .later: self.wire.flush()
        case .failed(let failure): self.fail(.body(failure))
        }
    }

    private func send(_ piece: ByteBuffer, _ exchange: Exchange, _ context: ChannelHandlerContext) {
        let count = piece.readableBytes
        self.isWritingPiece = true
        self.lastProgress = .now()
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in self.pieceWritten(result, count, exchange) }
        if exchange.plan.framing == .chunked {
            self.wire.write(ByteBuffer(string: "\(String(count, radix: 16))\r\n"))
            self.wire.write(piece)
            self.wire.write(ByteBuffer(staticString: "\r\n"), promise)
        } else {
            self.wire.write(piece, promise)
        }
        // The last byte and the end are one step, so that no answer can come between them.
        if exchange.body?.isExhausted ?? true { self.endBody(exchange) }
        self.wire.flush()
    }

    private func endBody(_ exchange: Exchange) {
        exchange.progress.bodyEnded()
        if exchange.plan.framing == .chunked { self.wire.write(ByteBuffer(staticString: "0\r\n\r\n")) }
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
    }

    private func pieceWritten(_ result: Result<Void, any Error>, _ count: Int, _ exchange: Exchange) {
        self.isWritingPiece = false
        guard case .busy(let current) = self.phase, current === exchange else { return }
        if case .failure(let error) = result {
            // The end of the connection follows.
            self.lossCause = self.lossCause ?? TransportFailure(error)
            return
        }
        self.progressed()
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.instant }
        exchange.consumer?.bodySent(count)
        // In another turn, so that a fast peer does not keep the loop from everybody else.
        self.context?.eventLoop.assumeIsolated().execute { self.pumpBody() }
    }
}

extension ClientConnection {
    /// - Returns: how the end of the content is told; `nil` where none follows that is of interest.
    func headReceived(_ head: ResponseHead) -> ResponseFraming? {
        guard case .busy(let exchange) = self.phase else {
            self.fail(.violation(.unsolicited))
            return nil
        }
        self.hasReceived = true
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.instant }
        guard !head.isInformational else {
            self.informationalReceived(head, exchange)
            return nil
        }
        switch exchange.progress.headReceived(head) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .upgrade: exchange.consumer?.headReceived(head, framing: .none)
        case .tell(let framing):
            exchange.consumer?.headReceived(head, framing: framing)
            if case .busy = self.phase { return framing }
        }
        return nil
    }

    private func informationalReceived(_ head: ResponseHead, _ exchange: Exchange) {
        switch exchange.progress.informationalReceived(head, limit: self.limits.informationalHeads) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .tell(let startsBody):
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

    func responseEnded(_ trailers: [HeaderField]) {
        guard case .busy(let exchange) = self.phase else { return }
        let keepsAlive = exchange.progress.responseEnded()
        exchange.metrics.responseEnd = exchange.instant
        self.phase = .finished(exchange, trailers: trailers, keepsAlive: keepsAlive)
    }

    /// Behind a read: decides over a connection whose response is complete. The consumer is told last, so that its next
    /// order finds the connection.
    func finishResponse() {
        guard case .finished(let exchange, let trailers, let keepsAlive) = self.phase else { return }
        self.recordProgress(exchange)
        self.continueTimer?.cancel()
        self.continueTimer = nil
        if case .complete = exchange.progress.receiving {
            if exchange.progress.isUpgraded { return self.handOver(exchange) }
            if keepsAlive, self.wire.endExchange(), !self.isGone {
                self.phase = .idle
                self.idleSince = self.lastProgress
                self.pool.connectionFreed(self)
            } else {
                self.phase = .idle
                self.close()
            }
        }
        exchange.responseFinished(trailers)
    }

    /// What the wire has counted of this exchange.
    private func recordProgress(_ exchange: Exchange) {
        exchange.metrics.responseHeadBytes = self.wire.headBytes
        exchange.metrics.responseBodyBytes = self.wire.bodyBytes
    }

    private func handOver(_ exchange: Exchange) {
        self.phase = .upgraded
        self.pool.connectionClosed(self)
        guard let connection = UpgradedConnection(self) else { return exchange.fail(.cancelled) }
        exchange.end(.upgraded(connection))
    }

    /// The connection is gone and the response is not whole.
    func failExchange(_ exchange: Exchange) {
        self.recordProgress(exchange)
        guard !exchange.isEnded else { return }
        switch exchange.progress.loss {
        case .none: exchange.responseFinished([])
        case .withinContent(let received, let expected):
            self.end(exchange, .truncated(received: received, expected: expected, cause: self.lossCause))
        case .beforeHead: self.end(exchange, .connectionLost(self.loss(exchange, responseBegan: true)))
        case .beforeResponse:
            let failure = ExchangeFailure.connectionLost(self.loss(exchange, responseBegan: false))
            // The server may have closed the connection for being idle, just as we wrote.
            let isStale = self.facts.isReused && self.wire.headBytes == 0
            guard isStale, exchange.prepareToRepeat() else { return self.end(exchange, failure) }
            self.pool.repeatOnFreshConnection(exchange)
        }
    }

    private func end(_ exchange: Exchange, _ failure: ExchangeFailure) {
        exchange.phase = .ordered
        exchange.fail(failure)
    }

    private func loss(_ exchange: Exchange, responseBegan: Bool) -> ConnectionLoss {
        ConnectionLoss(
            cause: self.lossCause, wasReused: self.facts.isReused,
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
}

/// The deadline of a connection on which nothing moves. One task for many exchanges: it looks how long ago the last
/// byte was when it fires, and is put off instead of made anew with every byte.
extension ClientConnection {
    func progressed() {
        self.lastProgress = .now()
    }

    /// What one read brings has one time.
    func noteReceived() {
        guard self.hasReceived else { return }
        self.hasReceived = false
        self.progressed()
    }

    func watch(_ exchange: Exchange) {
        guard let timeout = exchange.order.idleTimeout.map(TimeAmount.bounded) else { return }
        let wanted = self.lastProgress + timeout
        if let deadline = self.deadline, deadline.at <= wanted { return }
        self.deadline?.task.cancel()
        self.schedule(at: wanted)
    }

    private func schedule(at instant: NIODeadline) {
        guard let eventLoop = self.context?.eventLoop.assumeIsolated() else { return }
        self.deadline = (instant, eventLoop.scheduleTask(deadline: instant) { self.deadlinePassed() })
    }

    private func deadlinePassed() {
        self.deadline = nil
        guard case .busy(let exchange) = self.phase, let timeout = exchange.order.idleTimeout.map(TimeAmount.bounded)
        else { return }
        let now = NIODeadline.now()
        // While the caller keeps us waiting, the server is not to blame.
        if !self.isWaitingForPeer(exchange) || self.didSendBodyBytes() { self.lastProgress = now }
        guard now < self.lastProgress + timeout else { return self.fail(.idle) }
        self.schedule(at: self.lastProgress + timeout)
    }

    /// Whether the system took some of a piece that has not left whole.
    private func didSendBodyBytes() -> Bool {
        guard self.isWritingPiece else { return false }
        let unsent = try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        defer { self.unsentBytes = unsent ?? 0 }
        return unsent != self.unsentBytes
    }

    private func isWaitingForPeer(_ exchange: Exchange) -> Bool {
        if exchange.isHeld { return false }
        if self.isWritingPiece { return true }
        if exchange.progress.sending == .body { return false }
        return exchange.wantsBytes
    }
}

/// Who has a connection after it left HTTP. Called on its event loop.
protocol RawBytesConsumer: AnyObject {
    func rawBytesReceived(_ bytes: ByteBuffer)
    func rawReadCompleted()
    func rawInputClosed()
    func rawErrorCaught(_ error: any Error)
    func rawConnectionEnded()
}
