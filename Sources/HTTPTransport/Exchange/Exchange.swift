import NIOCore

/// One request with its response, from the order to the end.
///
/// What is `package` may be called from any thread; everything else belongs to the event loop.
package final class Exchange: @unchecked Sendable {
    enum Phase {
        case ordered
        case waiting(WaitingTicket)
        case connecting(ConnectionAttempt)
        case running(ClientConnection)
        /// The response is here, the connection serves others, and the consumer has not pulled everything yet.
        case draining(trailers: [HeaderField])
        case ended
    }

    package let order: ExchangeOrder
    let plan: RequestPlan
    let pool: ConnectionPool
    var consumer: (any ExchangeConsumer)?
    var phase = Phase.ordered
    var progress: ExchangeProgress
    var body: OutgoingBody?
    var metrics: ExchangeMetrics
    var priority: Float
    private var isStarted = false
    /// Whether this is the second try.
    var isRepeated = false
    /// Whether its owner wants nothing to happen for now.
    private(set) var isHeld = false
    /// Bytes of content that the consumer still wants; `Int.max` is without end.
    private var credit = 0
    /// Content that the consumer has not pulled.
    private var held: CircularBuffer<ByteBuffer>?

    /// What makes the order one that cannot be carried out.
    private let fault: ExchangeFailure?

    init(_ order: ExchangeOrder, consumer: any ExchangeConsumer, pool: ConnectionPool) {
        self.order = order
        do throws(RequestFault) {
            self.plan = try RequestPlan(order)
            self.fault = order.proxy == nil ? nil : .proxyUnsupported
        } catch {
            self.plan = RequestPlan(unsendable: order.head)
            self.fault = .request(error)
        }
        self.consumer = consumer
        self.pool = pool
        self.priority = order.priority
        self.metrics = ExchangeMetrics(fetchStart: .now)
        self.body = Self.outgoing(order.body, plan.framing)
        self.progress = Self.progress(plan, hasBody: self.body != nil)
    }

    private static func progress(_ plan: RequestPlan, hasBody: Bool) -> ExchangeProgress {
        ExchangeProgress(plan.head, hasBody: hasBody, expectsContinue: plan.continueTimeout != nil)
    }

    private static func outgoing(_ body: RequestBody, _ framing: RequestPlan.Framing) -> OutgoingBody? {
        let length: Int64? = if case .length(let length) = framing { length } else { nil }
        switch body {
        case .none: return nil
        case .bytes(let bytes): return length == 0 ? nil : OutgoingBody(BytesSource(bytes), length: length)
        case .source(let source, _): return length == 0 ? nil : OutgoingBody(source, length: length)
        }
    }

    /// Now, for metrics that somebody wants.
    var instant: ContinuousClock.Instant? { self.order.isMeasured ? .now : nil }

    var isEnded: Bool {
        if case .ended = self.phase { true } else { false }
    }

    /// What it took until now; on the event loop.
    package var metricsSoFar: ExchangeMetrics {
        guard case .connecting(let attempt) = self.phase else { return self.metrics }
        var metrics = self.metrics
        metrics.timings = attempt.timingsSoFar
        return metrics
    }

    // MARK: From any thread

    /// Begins; a second call does nothing. Everything the consumer is told comes after.
    package func start() {
        self.onLoop(always: true) { exchange in
            guard case .ordered = exchange.phase, !exchange.isStarted else { return }
            exchange.isStarted = true
            if let fault = exchange.fault { exchange.fail(fault) } else { exchange.pool.submit(exchange) }
        }
    }

    /// Ends the exchange with `.failed(.cancelled)`, wherever it is. Nothing happens if it has ended.
    package func cancel() {
        if self.pool.isCurrent { self.fail(.cancelled) } else { self.onLoop { $0.fail(.cancelled) } }
    }

    /// Wants `count` more bytes of content; `Int.max` wants all there will ever be. What is delivered at once may be a
    /// little more, since pieces are not cut. Until it is called nothing is delivered and the server is held back by its
    /// full window: what waits here is what one read gave, or, once the server has closed, what the system had received.
    ///
    /// The end is told when all content was delivered; where it comes behind the content, as that of chunks does, it
    /// takes a pull to be seen.
    package func pull(_ count: Int) {
        if self.pool.isCurrent { self.creditGiven(count) } else { self.onLoop { $0.creditGiven(count) } }
    }

    /// The body source that answered `.later` has something now.
    package func bodyAvailable() {
        self.onLoop { exchange in
            if case .running(let connection) = exchange.phase { connection.pumpBody() }
        }
    }

    /// Holds the exchange back: no clock of its open connection runs, and nothing is read, until it is let go on. A body
    /// source that must not go on answers `.later` by itself.
    package func hold(_ isHeld: Bool) {
        self.onLoop { exchange in
            guard exchange.isHeld != isHeld else { return }
            exchange.isHeld = isHeld
            if !isHeld { exchange.creditGiven(0) }
        }
    }

    /// Changes its place among those that wait for a connection.
    package func setPriority(_ priority: Float) {
        self.onLoop { $0.pool.reorder($0, priority: priority) }
    }

    /// - Parameter always: in another turn also if this is the event loop already.
    private func onLoop(always: Bool = false, _ work: @escaping @Sendable (Exchange) -> Void) {
        let eventLoop = self.pool.eventLoop
        if !always, eventLoop.inEventLoop { work(self) } else { eventLoop.execute { work(self) } }
    }

    // MARK: Content

    /// Whether more may be read from the connection.
    var wantsBytes: Bool {
        guard !self.isHeld else { return false }
        return switch self.progress.receiving {
        case .awaitingHead, .complete: true
        case .content(.none, _): true
        case .content: self.credit > 0 && !self.holdsContent
        }
    }

    private func creditGiven(_ count: Int) {
        guard !self.isEnded, !self.isHeld || count > 0 else { return }
        let (sum, overflow) = self.credit.addingReportingOverflow(count)
        self.credit = overflow ? .max : sum
        guard !self.isHeld else { return }
        while self.credit > 0, let bytes = self.held?.popFirst() { self.deliver(bytes) }
        guard !self.holdsContent else { return }
        switch self.phase {
        case .running(let connection): connection.readIfWanted()
        case .draining(let trailers): self.end(.finished(trailers: trailers))
        case .ordered, .waiting, .connecting, .ended: break
        }
    }

    func contentReceived(_ bytes: ByteBuffer) {
        self.metrics.responseContentBytes += Int64(bytes.readableBytes)
        guard self.credit == 0 || self.holdsContent || self.isHeld else { return self.deliver(bytes) }
        self.held = self.held ?? CircularBuffer()
        self.held?.append(bytes)
    }

    private var holdsContent: Bool { !(self.held?.isEmpty ?? true) }

    private func deliver(_ bytes: ByteBuffer) {
        if self.credit != .max { self.credit = max(0, self.credit - bytes.readableBytes) }
        self.consumer?.contentReceived(bytes.readableBytesSpan)
    }

    // MARK: Ending

    /// The response is complete and its connection no longer ours.
    func responseFinished(_ trailers: [HeaderField]) {
        guard !self.isEnded else { return }
        if !self.holdsContent {
            self.end(.finished(trailers: trailers))
        } else {
            self.phase = .draining(trailers: trailers)
        }
    }

    /// Ends the exchange and whatever it occupies.
    func fail(_ failure: ExchangeFailure) {
        let phase = self.phase
        guard !self.isEnded else { return }
        self.phase = .ended
        switch phase {
        case .ordered, .draining, .ended: break
        case .waiting(let ticket): self.pool.withdraw(ticket)
        case .connecting(let attempt):
            attempt.cancel()
            self.metrics.timings = attempt.timings
        case .running(let connection): connection.abandon()
        }
        self.end(.failed(failure))
    }

    func end(_ end: ExchangeEnd) {
        self.phase = .ended
        self.held = nil
        self.body = nil
        let consumer = self.consumer
        self.consumer = nil
        consumer?.exchangeEnded(end, metrics: self.metrics)
    }

    // MARK: Repeating

    /// Makes ready for a second try, if there may be one: of a request that can be repeated without harm, once (RFC 9110
    /// §9.2.2).
    func prepareToRepeat() -> Bool {
        guard !self.isRepeated, self.plan.head.isIdempotent, self.body?.rewind() ?? true else { return false }
        self.isRepeated = true
        self.progress = Self.progress(self.plan, hasBody: self.body != nil)
        self.metrics = ExchangeMetrics(fetchStart: self.metrics.fetchStart)
        return true
    }
}
