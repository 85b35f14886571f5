import ByteKernels
import HTTP2Engine
import StreamTransport
import WireText

/// One exchange on an HTTP/2 connection. It performs what `ExchangeProgress`, `HTTP2StreamState` and `PendingResponse`
/// decide.
///
/// The stream's window opens again as the consumer takes the response, so that a slow consumer stops its own stream only.
/// Confined to its loop.
final class HTTP2ClientStream {
    private let connection: HTTP2ClientConnection
    private let exchange: Exchange
    private var id: HTTP2StreamID = 0
    private var state = HTTP2StreamState.created
    private var pending = PendingResponse()
    /// Whether the connection had carried another exchange before.
    private let isReused: Bool
    /// Length of the piece of the body that is not in frames yet.
    private var unsentPiece: Int?
    /// Value of the transport's `sentBytes` at which the frames of the request so far have left.
    private var framesEnd: UInt64 = 0
    /// Bytes of the request that were not acknowledged when the idle timer last fired; `nil` before.
    private var unsentBytes: Int?
    private var lastActivity: MonotonicInstant
    private let idleTimer = LoopTimer()
    private let continueTimer = LoopTimer()

    init(_ exchange: Exchange, on connection: HTTP2ClientConnection) {
        self.exchange = exchange
        self.connection = connection
        self.isReused = connection.metadata.isReused
        self.lastActivity = connection.loop.now
    }

    private var loop: Loop { self.connection.loop }

    // MARK: Sending

    func begin(_ metadata: ConnectionMetadata) {
        self.exchange.phase = .running(self)
        if self.exchange.request.isMeasured {
            self.exchange.metrics.connection = metadata
            self.exchange.metrics.timings = metadata.timings
        }
        self.exchange.consumer?.connectionReady(metadata)
    }

    /// - Parameter headBytes: names and values before compression.
    func requestSent(_ id: HTTP2StreamID, headBytes: Int) {
        self.id = id
        self.state.requestSent()
        self.framesEnd = self.connection.writtenBytes
        let exchange = self.exchange
        exchange.metrics.requestStart = exchange.timestamp
        exchange.metrics.requestHeadBytes = Int64(headBytes)
        if let interval = exchange.idleInterval { self.loop.arm(self.idleTimer, after: interval, target: self) }
        switch exchange.progress.sending {
        case .done: exchange.metrics.requestEnd = exchange.timestamp
        case .awaitingContinue:
            guard let timeout = exchange.plan.continueTimeout else { return }
            self.loop.arm(self.continueTimer, after: timeout, target: self)
        case .body: self.pumpBody()
        case .abandoned: break
        }
    }

    private func send(_ count: Int) {
        self.recordActivity()
        self.unsentPiece = count
        var isTaken = false
        self.exchange.body?.withPiece(count) { isTaken = self.connection.send(self.id, $0) }
        // A stream that takes nothing will be closed, which ends the exchange.
        guard isTaken, self.exchange.body?.isExhausted ?? true else { return }
        self.endBody()
    }

    private func endBody() {
        self.exchange.progress.bodyEnded()
        self.connection.endOutput(self.id)
    }

    /// Everything given to the engine is in frames.
    func outputDrained() {
        guard !self.state.isLeft, let count = self.unsentPiece else { return }
        self.unsentPiece = nil
        self.framesEnd = self.connection.writtenBytes
        self.recordActivity()
        let exchange = self.exchange
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes += Int64(count)
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.timestamp }
        exchange.progress.bodyProgressed()
        exchange.consumer?.bodySent(count)
        if exchange.progress.sending == .body { self.loop.inNextTurn(self) }
    }

    // MARK: Receiving

    func headReceived(_ block: HTTP2FieldBlock, isInformational: Bool) {
        guard self.state.receives else { return }
        self.recordActivity()
        let exchange = self.exchange
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.timestamp }
        exchange.metrics.responseHeadBytes += Int64(block.bytes.count)
        guard let head = ResponseHead(block), head.isInterim == isInformational else {
            return self.fail(.violation(.upgrade))
        }
        guard self.pending.count < self.informationalLimit else {
            return self.fail(.violation(.tooManyInformationalHeads))
        }
        guard self.pending.isEmpty, exchange.wantsBytes else { return self.pending.append(.head(head)) }
        self.deliver(head)
    }

    private var informationalLimit: Int { self.exchange.pool.settings.limits.informationalHeads + 1 }

    func contentReceived(_ bytes: RawSpan) {
        guard self.state.receives else { return }
        self.recordActivity()
        self.exchange.metrics.responseBodyBytes += Int64(bytes.byteCount)
        guard self.pending.isEmpty, self.exchange.wantsBytes else { return self.pending.append(bytes) }
        self.deliver(bytes)
    }

    func inputEnded(_ trailers: [FieldLine]) {
        switch self.state.inputEnded() {
        case .deliverEnd:
            self.recordActivity()
            self.exchange.metrics.responseEnd = self.exchange.timestamp
            if self.pending.isEmpty, !self.exchange.isSuspended { return self.finish(trailers) }
            self.pending.append(.end(trailers: trailers))
        case .ignore: break
        }
    }

    /// Delivers the parts that the consumer takes.
    private func deliverPending() {
        while let part = self.pending.next(self.demand) {
            self.recordActivity()
            switch part {
            case .head(let head): self.deliver(head)
            case .content(let bytes): bytes.withRawSpan { self.deliver($0) }
            case .end(let trailers): self.finish(trailers)
            case .loss(let loss): self.end(loss)
            }
            self.pending.partDelivered()
        }
    }

    private var demand: PendingResponse.Demand {
        if self.exchange.isSuspended { .none } else if self.exchange.wantsBytes { .all } else { .end }
    }

    private func deliver(_ head: ResponseHead) {
        let exchange = self.exchange
        guard !head.isInterim else { return self.deliverInformational(head) }
        switch exchange.progress.headReceived(head) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .upgrade: self.fail(.violation(.upgrade))
        case .deliver(let framing): exchange.consumer?.headReceived(head, framing: framing)
        }
    }

    private func deliverInformational(_ head: ResponseHead) {
        let limit = self.exchange.pool.settings.limits.informationalHeads
        switch self.exchange.progress.informationalReceived(head, limit: limit) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .deliver(let startsBody):
            self.exchange.consumer?.informationalHeadReceived(head)
            if startsBody { self.pumpBody() }
        }
    }

    private func deliver(_ bytes: RawSpan) {
        self.exchange.progress.contentReceived(bytes.byteCount)
        self.exchange.contentReceived(bytes)
        if self.state.receives { self.connection.consume(self.id, bytes.byteCount) }
    }

    private func finish(_ trailers: [FieldLine]) {
        _ = self.exchange.progress.responseEnded()
        self.leave()
        self.exchange.responseFinished(trailers)
    }

    // MARK: Ending

    /// Fails the exchange, and resets the stream.
    func fail(_ failure: ExchangeFailure) {
        guard !self.state.isLeft else { return }
        self.exchange.fail(failure)
    }

    private func leave() {
        let action = self.state.exchangeLeft(isOutputFramed: self.connection.isOutputFramed(of: self.id))
        self.stop()
        switch action {
        case .reset: self.connection.reset(self.id, .cancel)
        case .awaitClose: self.connection.remove(self.id)
        case .free: self.connection.removeClosed(self.id)
        case .ignore: break
        }
    }

    private func stop() {
        self.pending = PendingResponse()
        self.loop.disarm(self.idleTimer)
        self.loop.disarm(self.continueTimer)
    }

    /// - Parameter loss: ends the exchange once the parts that were received are delivered.
    /// - Returns: whether the exchange has to end now.
    private func endsExchangeAsClosed(_ loss: ResponseLoss) -> Bool {
        switch self.state.streamClosed(holdsResponse: !self.pending.isEmpty) {
        case .endExchange:
            self.stop()
            self.connection.remove(self.id)
            return true
        case .endExchangeAfterDelivery:
            self.pending.append(.loss(loss))
            return false
        case .awaitConsumer, .ignore: return false
        }
    }

    /// The stream is closed: both sides ended it, or one reset it.
    /// - Parameter refusal: what REFUSED_STREAM means.
    func closed(_ code: HTTP2ErrorCode, refusal: Repetitions.Unprocessed) {
        guard self.endsExchangeAsClosed(ResponseLoss(HTTP2Error(code))) else { return }
        let exchange = self.exchange
        exchange.phase = .created
        // A request with a response was processed, whatever the server says.
        if code == .refusedStream, exchange.metrics.responseHeadBytes == 0,
            exchange.prepareToRepeat(unprocessed: refusal)
        {
            return exchange.pool.repeatExchange(exchange)
        }
        exchange.fail(.http2(HTTP2Error(code)))
    }

    /// The server does not process the request.
    /// - Returns: the exchange if it is to be sent again; `nil` if it has failed, or ends when the stream is closed.
    func moved(_ cause: Repetitions.Unprocessed) -> Exchange? {
        let exchange = self.exchange
        guard exchange.metrics.responseHeadBytes == 0,
            self.endsExchangeAsClosed(ResponseLoss(HTTP2Error(.refusedStream)))
        else { return nil }
        exchange.phase = .created
        if exchange.prepareToRepeat(unprocessed: cause) { return exchange }
        exchange.fail(.http2(HTTP2Error(.refusedStream)))
        return nil
    }

    /// - Parameter error: of HTTP/2; `nil` if the server closed the connection, or it was lost.
    /// - Returns: the exchange, if it is to be sent again.
    func connectionEnded(_ error: HTTP2Error?, cause: TransportFailure?) -> Exchange? {
        let loss = ResponseLoss(error, cause: cause)
        guard self.endsExchangeAsClosed(loss) else { return nil }
        let exchange = self.exchange
        exchange.phase = .created
        if error == nil, exchange.metrics.responseHeadBytes == 0 {
            // The handshake may have failed because of the early data (RFC 8446 §D.3).
            if !self.connection.isSecured, cause != nil, exchange.prepareToRepeat() {
                exchange.pool.repeatOnFreshConnection(exchange)
                return nil
            }
            let isTLS = ExchangeFailure(tls: cause) != nil
            if self.isReused, !isTLS, exchange.prepareToRepeat() { return exchange }
        }
        self.end(loss)
        return nil
    }

    /// Ends the exchange, whose response is incomplete.
    private func end(_ loss: ResponseLoss) {
        let exchange = self.exchange
        if let error = loss.error { return exchange.fail(.http2(error)) }
        if let failure = ExchangeFailure(tls: loss.cause) { return exchange.fail(failure) }
        switch exchange.progress.loss {
        case .none:
            self.close()
            exchange.responseFinished([])
        case .withinContent(let received, let expected):
            exchange.fail(.truncated(received: received, expected: expected, cause: loss.cause))
        case .beforeHead: exchange.fail(.connectionLost(self.loss(loss.cause, responseBegan: true)))
        case .beforeResponse: exchange.fail(.connectionLost(self.loss(loss.cause, responseBegan: false)))
        }
    }

    private func loss(_ cause: TransportFailure?, responseBegan: Bool) -> ConnectionLoss {
        ConnectionLoss(
            cause: cause, wasReused: self.isReused, responseBegan: responseBegan, wasRepeated: self.exchange.isRepeated)
    }
}

extension HTTP2ClientStream: ExchangeCarrier {
    var metadata: ConnectionMetadata { self.connection.metadata }

    /// Sends the next piece of the body, unless one is still being written.
    func pumpBody() {
        let exchange = self.exchange
        guard self.state.sends, exchange.progress.sending == .body, self.unsentPiece == nil, !exchange.isSuspended,
            let step = exchange.body?.next()
        else { return }
        switch step {
        case .piece(let count): self.send(count)
        case .end:
            self.endBody()
            exchange.metrics.requestEnd = exchange.timestamp
            self.recordActivity()
        case .later: break
        case .failed(let failure): self.fail(.body(failure))
        }
    }

    func updateReading() {
        // The time in which the consumer wanted nothing does not count.
        self.recordActivity()
        self.deliverPending()
    }

    func setPriority(_ priority: Float) {
        guard self.state.sends else { return }
        self.connection.updatePriority(of: self.id, to: RequestUrgency(priority: priority))
    }

    /// The exchange has ended before the stream.
    func close() {
        if !self.state.isLeft { self.leave() }
    }
}

extension HTTP2ClientStream: TurnEndTarget {
    func turnEnded() {
        self.pumpBody()
    }
}

// MARK: Timeouts

extension HTTP2ClientStream: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard !self.state.isLeft else { return }
        if timer === self.idleTimer {
            self.idleTimerFired()
        } else if self.exchange.progress.continueTimedOut() {
            self.pumpBody()
        }
    }

    private func recordActivity() {
        self.lastActivity = self.loop.now
    }

    /// The timer is not moved with every byte: when it fires, `lastActivity` is compared.
    private func idleTimerFired() {
        guard let timeout = self.exchange.request.idleTimeout else { return }
        // The timeout does not run while the caller, not the server, is being waited for.
        if !self.isWaitingForPeer || self.didSendBodyBytes() { self.recordActivity() }
        let deadline = self.lastActivity.advanced(by: timeout)
        guard self.loop.now >= deadline else {
            let next = self.loop.now.advanced(by: self.exchange.idleInterval ?? timeout)
            return self.loop.arm(self.idleTimer, at: min(deadline, next), target: self)
        }
        // A connection on which nothing came at all may be dead: later requests use another.
        if self.connection.lastInput.advanced(by: timeout) <= self.loop.now { self.connection.retire() }
        self.fail(.idle)
    }

    /// Whether bytes of the body moved since the timer last fired: into frames as the server's window opened, or to the
    /// server.
    private func didSendBodyBytes() -> Bool {
        guard self.exchange.body != nil else { return false }
        let unsent = self.connection.unsentBytes(of: self.id, framesEnd: self.framesEnd)
        defer { self.unsentBytes = unsent }
        return unsent != self.unsentBytes
    }

    private var isWaitingForPeer: Bool {
        if self.exchange.isSuspended || !self.pending.isEmpty { return false }
        if self.unsentPiece != nil { return true }
        if self.exchange.progress.sending == .body { return false }
        return self.exchange.wantsBytes
    }
}
