import NIOCore
import StreamTransport
import TLSEngine

/// One request with its response, from the order to the end.
///
/// What is `package` may be called from any thread; everything else belongs to the event loop.
package final class Exchange: @unchecked Sendable {
    enum Phase {
        case created
        case waiting(Waiter)
        case connecting(ConnectionAttempt)
        case running(ClientConnection)
        /// The response is here, the connection serves others, and the consumer has not pulled everything yet.
        case draining(trailers: [HeaderField])
        case ended
    }

    package let request: ExchangeRequest
    let plan: RequestPlan
    let pool: ConnectionPool
    var consumer: (any ExchangeConsumer)?
    var phase = Phase.created
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
    private var demand = 0
    /// Content that the consumer has not pulled.
    private var bufferedContent: CircularBuffer<ByteBuffer>?

    /// What makes the order one that cannot be carried out.
    private let requestFailure: ExchangeFailure?

    init(_ request: ExchangeRequest, consumer: any ExchangeConsumer, pool: ConnectionPool) {
        self.request = request
        do throws(RequestError) {
            self.plan = try RequestPlan(request)
            self.requestFailure = request.proxy == nil ? nil : .proxyUnsupported
        } catch {
            self.plan = RequestPlan(unsendable: request.head)
            self.requestFailure = .request(error)
        }
        self.consumer = consumer
        self.pool = pool
        self.priority = request.priority
        self.metrics = ExchangeMetrics(fetchStart: .now)
        self.body = Self.makeBody(request.body, plan.framing)
        self.progress = Self.progress(plan, hasBody: self.body != nil)
    }

    private static func progress(_ plan: RequestPlan, hasBody: Bool) -> ExchangeProgress {
        ExchangeProgress(plan.head, hasBody: hasBody, expectsContinue: plan.continueTimeout != nil)
    }

    private static func makeBody(_ body: RequestBody, _ framing: RequestPlan.Framing) -> OutgoingBody? {
        let length: Int64? = if case .length(let length) = framing { length } else { nil }
        switch body {
        case .none: return nil
        case .bytes(let bytes): return length == 0 ? nil : OutgoingBody(BytesSource(bytes), length: length)
        case .source(let source, _): return length == 0 ? nil : OutgoingBody(source, length: length)
        }
    }

    /// Now, for metrics that somebody wants.
    var timestamp: ContinuousClock.Instant? { self.request.isMeasured ? .now : nil }

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
            guard case .created = exchange.phase, !exchange.isStarted else { return }
            exchange.isStarted = true
            if let fault = exchange.requestFailure { exchange.fail(fault) } else { exchange.pool.submit(exchange) }
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
        if self.pool.isCurrent { self.demandAdded(count) } else { self.onLoop { $0.demandAdded(count) } }
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
            if !isHeld { exchange.demandAdded(0) }
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
        case .content: self.demand > 0 && !self.holdsContent
        }
    }

    private func demandAdded(_ count: Int) {
        guard !self.isEnded, !self.isHeld || count > 0 else { return }
        let (sum, overflow) = self.demand.addingReportingOverflow(count)
        self.demand = overflow ? .max : sum
        guard !self.isHeld else { return }
        while self.demand > 0, let bytes = self.bufferedContent?.popFirst() { self.deliver(bytes) }
        guard !self.holdsContent else { return }
        switch self.phase {
        case .running(let connection): connection.readIfWanted()
        case .draining(let trailers): self.end(.finished(trailers: trailers))
        case .created, .waiting, .connecting, .ended: break
        }
    }

    func contentReceived(_ bytes: ByteBuffer) {
        self.metrics.responseContentBytes += Int64(bytes.readableBytes)
        guard self.demand == 0 || self.holdsContent || self.isHeld else { return self.deliver(bytes) }
        self.bufferedContent = self.bufferedContent ?? CircularBuffer()
        self.bufferedContent?.append(bytes)
    }

    private var holdsContent: Bool { !(self.bufferedContent?.isEmpty ?? true) }

    private func deliver(_ bytes: ByteBuffer) {
        if self.demand != .max { self.demand = max(0, self.demand - bytes.readableBytes) }
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
        case .created, .draining, .ended: break
        case .waiting(let waiter): self.pool.withdraw(waiter)
        case .connecting(let attempt):
            attempt.cancel()
            self.metrics.timings = attempt.timings
        case .running(let connection): connection.abandon()
        }
        self.end(.failed(failure))
    }

    func end(_ end: ExchangeEnd) {
        self.phase = .ended
        self.bufferedContent = nil
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

/// How far one request and its response are: two directions, each with its own end. Decides; the connection performs.
package struct ExchangeProgress: Equatable {
    package enum Sending: Equatable {
        /// The head is out, and the server may say whether it wants the body.
        case awaitingContinue
        case body
        case done
        /// The response came first: the body is not sent, or not to its end.
        case abandoned
    }

    package enum Receiving: Equatable {
        case awaitingHead(informational: Int)
        case content(ResponseFraming, received: Int64)
        case complete(ResponseFraming)
    }

    package private(set) var sending: Sending
    package private(set) var receiving = Receiving.awaitingHead(informational: 0)
    /// Whether the server switched protocols.
    package private(set) var isUpgraded = false
    private let method: String
    private let offersUpgrade: Bool
    private var keepsAlive: Bool

    package init(_ head: RequestHead, hasBody: Bool, expectsContinue: Bool) {
        self.sending = hasBody ? (expectsContinue ? .awaitingContinue : .body) : .done
        self.method = head.method
        self.offersUpgrade = head.first("upgrade") != nil
        self.keepsAlive = !head.fields.contains {
            $0.isNamed("connection") && ASCIIText.list($0.value, has: "close")
        }
    }

    // MARK: Sending

    /// - Returns: whether the body is to be sent now, unasked.
    package mutating func continueTimedOut() -> Bool {
        guard self.sending == .awaitingContinue else { return false }
        self.sending = .body
        return true
    }

    package mutating func bodyEnded() {
        guard self.sending == .body else { return }
        self.sending = .done
    }

    // MARK: Receiving

    package enum InformationalAction: Equatable {
        case deliver(startsBody: Bool)
        case refuse(ResponseViolation)
    }

    package mutating func informationalReceived(_ head: ResponseHead, limit: Int) -> InformationalAction {
        guard case .awaitingHead(let count) = self.receiving else { return .refuse(.unsolicited) }
        guard count < limit else { return .refuse(.tooManyInformationalHeads) }
        self.receiving = .awaitingHead(informational: count + 1)
        guard head.status == 100, self.sending == .awaitingContinue else { return .deliver(startsBody: false) }
        self.sending = .body
        return .deliver(startsBody: true)
    }

    package enum HeadAction: Equatable {
        case deliver(ResponseFraming)
        case upgrade
        case refuse(ResponseViolation)
    }

    package mutating func headReceived(_ head: ResponseHead) -> HeadAction {
        guard case .awaitingHead = self.receiving else { return .refuse(.unsolicited) }
        if head.status == 101 { return self.upgradeReceived(head) }
        do throws(ResponseViolation) {
            let framing = try ResponseFraming.of(head, method: self.method)
            self.receiving = .content(framing, received: 0)
            if self.sending == .awaitingContinue { self.sending = .abandoned }
            self.keepsAlive = self.keepsAlive && framing != .untilClose && Self.keepsAlive(head)
            return .deliver(framing)
        } catch {
            return .refuse(error)
        }
    }

    /// RFC 9110 §7.8: only to what was offered, and only once the request was sent whole.
    private mutating func upgradeReceived(_ head: ResponseHead) -> HeadAction {
        guard self.offersUpgrade, self.sending == .done, head.first("upgrade") != nil,
            head.lists("upgrade", in: "connection")
        else { return .refuse(.upgrade) }
        self.receiving = .complete(.none)
        self.isUpgraded = true
        return .upgrade
    }

    /// RFC 9112 §9.3.
    private static func keepsAlive(_ head: ResponseHead) -> Bool {
        if head.lists("close", in: "connection") { return false }
        return head.minorVersion > 0 || head.lists("keep-alive", in: "connection")
    }

    package mutating func contentReceived(_ count: Int) {
        guard case .content(let framing, let received) = self.receiving else { return }
        self.receiving = .content(framing, received: received + Int64(count))
    }

    /// The response is complete.
    /// - Returns: whether the connection can serve another request, as far as the messages say.
    package mutating func responseEnded() -> Bool {
        guard case .content(let framing, _) = self.receiving else { return false }
        self.receiving = .complete(framing)
        guard self.sending == .done else {
            self.sending = .abandoned
            return false
        }
        return self.keepsAlive
    }

    package enum Loss: Equatable {
        /// Nothing of the response had come.
        case beforeResponse
        case beforeHead
        case withinContent(received: Int64, expected: Int64?)
        /// The response was complete.
        case none
    }

    /// What a connection that ends now takes with it.
    package var loss: Loss {
        switch self.receiving {
        case .awaitingHead(informational: 0): .beforeResponse
        case .awaitingHead: .beforeHead
        case .content(.length(let expected), let received): .withinContent(received: received, expected: expected)
        case .content(_, let received): .withinContent(received: received, expected: nil)
        case .complete: .none
        }
    }
}

/// Whoever ordered an exchange: told what happens, always on the exchange's event loop. It is held until
/// `exchangeEnded`, then dropped.
///
/// It must not block: other exchanges share the loop.
package protocol ExchangeConsumer: AnyObject, Sendable {
    /// A connection was opened or found, and the request begins to leave on it. Comes a second time when the request is
    /// repeated on a fresh connection.
    func connectionReady(_ facts: ConnectionMetadata)

    /// The TLS context asks for a decision over the server's certificate. `answer` may be called at any time, from any
    /// thread; a second answer is ignored, and no clock runs meanwhile.
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void)

    /// The server asks for a certificate of ours, signed by one of `issuers` (DER names; none means any). `nil` shows
    /// none.
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void)

    /// `count` bytes of the request's body, without framing, were taken by the system.
    func bodySent(_ count: Int)

    /// An informational head (1xx, not 101). There may be several.
    func informationalHeadReceived(_ head: ResponseHead)

    /// The final head. Content follows as far as it is pulled.
    func headReceived(_ head: ResponseHead, framing: ResponseFraming)

    /// The next bytes of content; valid during the call.
    func contentReceived(_ bytes: RawSpan)

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics)
}

/// One request to be made, and under which terms.
package struct ExchangeRequest: Sendable {
    package var origin: ServerEndpoint
    /// Needed for `https`.
    package var secure: SecureSetup?
    package var proxy: ProxyHop?
    package var head: RequestHead
    package var body: RequestBody = .none

    /// Who waits for a connection is served in the order of priority, 0 to 1, then of arrival. Default: 0.5.
    package var priority: Float = 0.5
    /// Opens a connection of its own, though an idle one waits. Default: false.
    package var needsFreshConnection = false
    /// For name resolution and connecting together. Default: 60 seconds.
    package var connectTimeout: Duration = .seconds(60)
    /// Longest time on an open connection without a byte either way. It does not run while the consumer pulls nothing
    /// or the body source has nothing. Default: 60 seconds; `nil`: none.
    package var idleTimeout: Duration? = .seconds(60)
    /// Sends the head with `Expect: 100-continue` and waits so long for the server's word before the body is sent
    /// (RFC 9110 §10.1.1). Default: `nil`, the body follows at once.
    package var continueTimeout: Duration?
    /// What packets are marked with while the connection is this exchange's; what opens the connection is not marked.
    /// Default: `.standard`.
    package var trafficClass = TrafficClass.standard
    /// Whether the metrics that the end brings are to have the instants and the connection's facts: reading clocks takes
    /// its time. Default: true.
    package var isMeasured = true

    package init(_ origin: ServerEndpoint, head: RequestHead = RequestHead()) {
        self.origin = origin
        self.head = head
    }
}

/// How an exchange ended. Told once, last.
package enum ExchangeEnd: Sendable {
    /// The whole response has come. `trailers` are the fields behind a chunked content, mostly none.
    case finished(trailers: [HeaderField])
    /// The server switched protocols (101): the connection is the consumer's, who must close it.
    case upgraded(UpgradedConnection)
    case failed(ExchangeFailure)
}

/// Why an exchange ended without a whole response.
package enum ExchangeFailure: Error, Sendable, Hashable {
    /// `Exchange.cancel` was called.
    case cancelled
    /// The caller's fault: the request cannot be sent.
    case request(RequestError)
    /// No connection came about: the name, the address, or a deadline in one of the phases, TLS's included.
    case connecting(TransportFailure)
    /// `PoolSettings.admits` refused every address that there is.
    case notAdmitted
    /// The handshake failed, or a record of the open connection.
    case securing(TLSFailure)
    /// The connection was open, and for `ExchangeRequest.idleTimeout` no byte went either way though we waited for one.
    case idle
    /// The connection ended before the response's head.
    case connectionLost(ConnectionLoss)
    /// The connection ended within the content: never passed off as a short success.
    /// - Parameters:
    ///   - received: bytes of content.
    ///   - expected: as announced; `nil` if the response was chunked or ended with the connection.
    case truncated(received: Int64, expected: Int64?, cause: TransportFailure?)
    /// The server broke a rule; what came of the response must not be trusted.
    case violation(ResponseViolation)
    /// The body could not be sent.
    case body(BodyFailure)
    /// The order names a proxy, which is not spoken to yet.
    case proxyUnsupported
    /// The pool was closed.
    case poolClosed
}

/// What an exchange took. Of a request that was repeated, only the second try.
package struct ExchangeMetrics: Sendable, Hashable {
    /// When the exchange was ordered.
    package var fetchStart: ContinuousClock.Instant
    package var connection: ConnectionMetadata?
    /// The steps of opening, as far as they came; also if that failed.
    package var timings = ConnectTimings()
    package var requestStart: ContinuousClock.Instant?
    package var requestEnd: ContinuousClock.Instant?
    /// First and last byte of the response.
    package var responseStart: ContinuousClock.Instant?
    package var responseEnd: ContinuousClock.Instant?

    /// Bytes on the wire, above TLS.
    package var requestHeadBytes: Int64 = 0
    /// Of the body, with the framing of its chunks.
    package var requestBodyBytes: Int64 = 0
    /// Of the body, without framing.
    package var requestContentBytes: Int64 = 0
    /// Of all heads, the informational ones included.
    package var responseHeadBytes: Int64 = 0
    /// Of the content, with the framing of its chunks and the trailers.
    package var responseBodyBytes: Int64 = 0
    /// Of the content, without framing; its content coding is untouched.
    package var responseContentBytes: Int64 = 0

    package init(fetchStart: ContinuousClock.Instant) {
        self.fetchStart = fetchStart
    }
}
