import ByteKernels
import DequeModule
import HTTP2Engine
import StreamTransport
import WireText

/// One exchange on an HTTP/2 connection. It performs what `ExchangeProgress` decides.
///
/// What the consumer does not take yet is held here, at most one window and the informational heads; the stream's window
/// opens again as it is taken, so that a slow consumer stops its own stream only. Confined to its loop.
final class HTTP2ClientStream {
    /// Received, and not taken by the consumer yet.
    private enum Held {
        case head(ResponseHead)
        case content([UInt8])
        case end(trailers: [FieldLine])
    }

    static let initialWindow: Int32 = 256 << 10
    private static let largestWindow: Int32 = 4 << 20

    private let connection: HTTP2ClientConnection
    private let exchange: Exchange
    private var id: HTTP2StreamID = 0
    private var held: Deque<Held> = []
    private var isDelivering = false
    /// The exchange has left the stream, or the stream is closed and everything delivered.
    private var isOver = false
    /// The stream is closed on the wire, or was never opened.
    private var isClosed = true
    private var hasInputEnded = false
    /// Whether the connection had carried another exchange before.
    private var isReused = false
    private var window = HTTP2ClientStream.initialWindow
    /// Bytes taken since the window was last made larger.
    private var takenBytes = 0
    /// Length of the piece of the body that is not in frames yet.
    private var unsentPiece: Int?
    private var lastActivity: MonotonicInstant
    private let idleTimer = LoopTimer()
    private let continueTimer = LoopTimer()

    init(_ exchange: Exchange, on connection: HTTP2ClientConnection) {
        self.exchange = exchange
        self.connection = connection
        self.lastActivity = connection.loop.now
    }

    private var loop: Loop { self.connection.loop }

    // MARK: Sending

    func begin(_ metadata: ConnectionMetadata) {
        self.isReused = metadata.isReused
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
        self.isClosed = false
        let exchange = self.exchange
        exchange.metrics.requestStart = exchange.timestamp
        exchange.metrics.requestHeadBytes = Int64(headBytes)
        if let timeout = exchange.request.idleTimeout { self.loop.arm(self.idleTimer, after: timeout, target: self) }
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
        // A stream that takes nothing is about to be closed, which ends the exchange.
        guard isTaken, self.exchange.body?.isExhausted ?? true else { return }
        self.endBody()
    }

    private func endBody() {
        self.exchange.progress.bodyEnded()
        self.connection.endOutput(self.id)
    }

    /// Everything given to the engine is in frames.
    func outputDrained() {
        guard !self.isOver, let count = self.unsentPiece else { return }
        self.unsentPiece = nil
        self.recordActivity()
        let exchange = self.exchange
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes += Int64(count)
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.timestamp }
        exchange.consumer?.bodySent(count)
        if exchange.progress.sending == .body { self.loop.inNextTurn(self) }
    }

    // MARK: Receiving

    func headReceived(_ block: HTTP2FieldBlock, isInformational: Bool) {
        guard !self.isOver else { return }
        self.recordActivity()
        let exchange = self.exchange
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.timestamp }
        exchange.metrics.responseHeadBytes += Int64(block.bytes.count)
        guard let head = ResponseHead(block), head.isInterim == isInformational else {
            return self.fail(.violation(.upgrade))
        }
        guard self.held.count < self.informationalLimit else {
            return self.fail(.violation(.tooManyInformationalHeads))
        }
        guard self.held.isEmpty, exchange.wantsBytes else { return self.held.append(.head(head)) }
        self.deliver(head)
    }

    private var informationalLimit: Int { self.exchange.pool.settings.limits.informationalHeads + 1 }

    func contentReceived(_ bytes: RawSpan) {
        guard !self.isOver else { return }
        self.recordActivity()
        self.exchange.metrics.responseBodyBytes += Int64(bytes.byteCount)
        guard self.held.isEmpty, self.exchange.wantsBytes else {
            // Pieces grow, so that many small frames do not cost an array each.
            if case .content(var last)? = self.held.last {
                self.held.removeLast()
                last.append(bytes)
                return self.held.append(.content(last))
            }
            return self.held.append(.content([UInt8](bytes)))
        }
        self.deliver(bytes)
    }

    func inputEnded(_ trailers: [FieldLine]) {
        guard !self.isOver, !self.hasInputEnded else { return }
        self.hasInputEnded = true
        self.recordActivity()
        self.exchange.metrics.responseEnd = self.exchange.timestamp
        guard self.held.isEmpty, !self.exchange.isSuspended else { return self.held.append(.end(trailers: trailers)) }
        self.finish(trailers)
    }

    /// Gives the consumer what it takes of what was received.
    private func deliverHeld() {
        guard !self.isDelivering else { return }
        self.isDelivering = true
        defer { self.isDelivering = false }
        while !self.isOver, let next = self.held.first {
            if case .end(let trailers) = next {
                guard !self.exchange.isSuspended else { return }
                return self.finish(trailers)
            }
            guard self.exchange.wantsBytes else { return }
            self.held.removeFirst()
            self.recordActivity()
            switch next {
            case .head(let head): self.deliver(head)
            case .content(let bytes): bytes.withRawSpan { self.deliver($0) }
            case .end: break
            }
        }
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
        guard !self.isOver, !self.hasInputEnded else { return }
        self.connection.consume(self.id, bytes.byteCount)
        // A consumer that keeps up gets a larger window: a small one would hold a distant server back.
        self.takenBytes += bytes.byteCount
        guard self.takenBytes >= self.window, self.window < Self.largestWindow else { return }
        self.takenBytes = 0
        self.window = min(self.window * 2, Self.largestWindow)
        self.connection.setWindow(of: self.id, to: self.window)
    }

    private func finish(_ trailers: [FieldLine]) {
        _ = self.exchange.progress.responseEnded()
        self.leave(resetting: .cancel)
        self.exchange.responseFinished(trailers)
    }

    // MARK: Ending

    /// Fails the exchange, and resets the stream.
    func fail(_ failure: ExchangeFailure) {
        guard !self.isOver else { return }
        self.exchange.fail(failure)
    }

    /// - Parameter code: for a stream that is not over on the wire.
    private func leave(resetting code: HTTP2ErrorCode) {
        self.isOver = true
        self.held = []
        self.loop.disarm(self.idleTimer)
        self.loop.disarm(self.continueTimer)
        let isComplete = self.hasInputEnded && self.exchange.progress.sending == .done
        if !self.isClosed, !isComplete { self.connection.reset(self.id, code) }
    }

    /// The stream is over on the wire: complete, or reset by the server or by this side.
    func closed(_ code: HTTP2ErrorCode) {
        self.isClosed = true
        // The server needs no more of the body (RFC 9113 §8.1).
        guard !self.isOver, !self.hasInputEnded else { return }
        self.leave(resetting: code)
        let exchange = self.exchange
        exchange.phase = .created
        if code == .refusedStream, exchange.prepareToRepeat(wasUnprocessed: true) {
            return exchange.pool.repeatExchange(exchange)
        }
        exchange.fail(.http2(HTTP2Fault(code)))
    }

    /// - Parameter fault: of HTTP/2; `nil` if the server closed the connection, or it was lost.
    func connectionEnded(_ fault: HTTP2Fault?, cause: TransportFailure?) {
        self.isClosed = true
        guard !self.isOver, !self.hasInputEnded else { return }
        let exchange = self.exchange
        self.leave(resetting: .cancel)
        exchange.phase = .created
        if let fault { return exchange.fail(.http2(fault)) }
        if let failure = ExchangeFailure(tls: cause) { return exchange.fail(failure) }
        switch exchange.progress.loss {
        case .none: exchange.responseFinished([])
        case .withinContent(let received, let expected):
            exchange.fail(.truncated(received: received, expected: expected, cause: cause))
        case .beforeHead: exchange.fail(.connectionLost(self.loss(cause, responseBegan: true)))
        case .beforeResponse:
            let failure = ExchangeFailure.connectionLost(self.loss(cause, responseBegan: false))
            guard self.isReused, exchange.metrics.responseHeadBytes == 0, exchange.prepareToRepeat() else {
                return exchange.fail(failure)
            }
            exchange.pool.repeatExchange(exchange)
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
        guard !self.isOver, !self.isClosed, exchange.progress.sending == .body, self.unsentPiece == nil,
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
        self.deliverHeld()
    }

    func setPriority(_ priority: Float) {
        guard !self.isOver, !self.isClosed else { return }
        self.connection.updatePriority(of: self.id, to: RequestUrgency(priority: priority))
    }

    /// The exchange has ended before the stream.
    func close() {
        guard !self.isOver else { return }
        self.leave(resetting: .cancel)
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
        guard !self.isOver else { return }
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
        if !self.isWaitingForPeer { self.recordActivity() }
        let deadline = self.lastActivity.advanced(by: timeout)
        guard self.loop.now >= deadline else { return self.loop.arm(self.idleTimer, at: deadline, target: self) }
        // A connection on which nothing came at all may be dead: later requests use another.
        if self.connection.lastInput.advanced(by: timeout) <= self.loop.now { self.connection.retire() }
        self.fail(.idle)
    }

    private var isWaitingForPeer: Bool {
        if self.exchange.isSuspended || !self.held.isEmpty { return false }
        if self.unsentPiece != nil { return true }
        if self.exchange.progress.sending == .body { return false }
        return self.exchange.wantsBytes
    }
}
