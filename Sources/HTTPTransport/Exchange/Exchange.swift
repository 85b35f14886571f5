import ByteKernels
import SessionTasks
import StreamTransport
import TLSEngine
import WireText

/// One request and its response.
///
/// `package` members may be called from any thread; all others are confined to the pool's loop.
package final class Exchange: @unchecked Sendable {  // Its vars are used on the pool's loop only.
    enum Phase {
        case created
        case waiting(Waiter)
        /// Waits for the connection of its lease.
        case leasing(ConnectionLease)
        /// Suspended before the request was sent: it begins again when it is resumed, and others get its turn.
        case suspended(needsFresh: Bool)
        case connecting(ConnectionAttempt)
        /// Waits until this machine has a way to the server.
        case offline(PathWait)
        /// The request is written behind others of the connection.
        case pipelined(HTTPConnection)
        case running(any ExchangeCarrier)
        /// The response is complete and the connection released, but the consumer has not pulled all of the content.
        case draining(trailers: [FieldLine])
        case ended
    }

    package let request: ExchangeRequest
    let plan: RequestPlan
    let pool: ConnectionPool
    /// `nil` after the end, and once it has abandoned the exchange.
    private(set) var consumer: (any ExchangeConsumer)?
    var phase = Phase.created {
        didSet { if self.blockTimer != nil { self.stopBlockTimerUnlessWaiting() } }
    }
    var progress: ExchangeProgress
    var body: OutgoingBody?
    var metrics: ExchangeMetrics
    var priority: Float
    /// Whether the request may be written behind others.
    var mayBePipelined: Bool
    /// Whether it was.
    var wasPipelined = false
    /// In the order in which the pool got its exchanges.
    var number: UInt64 = 0
    private var isStarted = false
    private var repetitions = Repetitions()
    /// Bytes of content that an abandoned exchange still reads.
    private var drainLeft = 0
    /// Content received beyond the demand.
    private var bufferedContent: [UInt8] = []
    /// `nil` before this machine lacked a way to the server. Not checked for overlapping access, which would cost every
    /// exchange.
    @exclusivity(unchecked) private var pathWait: PathWait?
    private var hasWaited = false
    /// Runs while the exchange waits for a server that allows no streams; otherwise `nil`.
    @exclusivity(unchecked) private var blockTimer: LoopTimer?

    /// Why the request cannot be sent; reported by `start`.
    private let requestFailure: ExchangeFailure?

    init(_ request: ExchangeRequest, consumer: any ExchangeConsumer, pool: ConnectionPool) {
        let plan: RequestPlan
        do throws(RequestError) {
            plan = try RequestPlan(request)
            self.requestFailure = nil
        } catch {
            plan = RequestPlan(unsendable: request.head)
            self.requestFailure = .request(error)
        }
        self.consumer = consumer
        self.pool = pool
        self.priority = request.priority
        self.mayBePipelined = Self.canBePipelined(request, plan)
        self.metrics = ExchangeMetrics(fetchStart: .now)
        let body = Self.makeBody(request.body, plan.framing)
        self.progress = Self.progress(plan, hasBody: body != nil)
        self.body = body
        self.plan = plan
        self.request = request
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

    /// The current time for the metrics; `nil` if the exchange is not measured.
    var timestamp: ContinuousInstant? { self.request.isMeasured ? .now : nil }

    var isEnded: Bool {
        if case .ended = self.phase { true } else { false }
    }

    /// Whether the connection can be used again after the response, as far as the head says. On the loop.
    package var keepsConnection: Bool { self.progress.keepsAlive }

    /// Whether the whole request was given to the connection. On the loop.
    package var isRequestSent: Bool { self.progress.sending == .done }

    /// The connection that the exchange runs on. On the loop.
    package var connection: ConnectionMetadata? {
        if case .running(let carrier) = self.phase { carrier.metadata } else { nil }
    }

    /// Includes the steps of connecting so far. On the loop.
    package var metricsSoFar: ExchangeMetrics {
        guard case .connecting(let attempt) = self.phase else { return self.metrics }
        var metrics = self.metrics
        metrics.timings = attempt.timings
        return metrics
    }

    // MARK: From any thread

    /// Starts; a second call does nothing. The consumer is never called before `start` has returned.
    package func start() {
        let loop = self.pool.loop
        if loop.isCurrent { loop.atTurnEnd(self) } else { loop.execute { self.begin() } }
    }

    private func begin() {
        guard case .created = self.phase, !self.isStarted else { return }
        self.isStarted = true
        if case .source(let source, _) = self.request.body {
            source.whenAvailable { [weak self] in self?.bodyAvailable() }
        }
        if let failure = self.requestFailure { self.fail(failure) } else { self.pool.submit(self) }
    }

    /// Ends the exchange with `.failed(.cancelled)`. Does nothing if it has ended.
    package func cancel() {
        self.onLoop { $0.fail(.cancelled) }
    }

    /// Call when the consumer's `demand` has grown, or is suspended. Without demand nothing is delivered and the TCP window
    /// fills: only the content of one read is buffered, or, once the server has closed, what the system had received.
    ///
    /// `exchangeEnded` follows the delivery of all content. If the end follows the content on the wire, as the last chunk
    /// does, it is only read while there is demand.
    package func demandChanged() {
        if self.pool.loop.isCurrent { self.serveDemand() } else { self.onLoop { $0.serveDemand() } }
    }

    /// Detaches the consumer, which is not called any more. Up to `limit` bytes of content are read so that the connection
    /// can be reused; it is closed if there are more. On the loop.
    package func abandon(drainingUpTo limit: Int) {
        self.consumer = nil
        self.drainLeft = limit
        if limit > 0 { self.serveDemand() } else { self.fail(.cancelled) }
    }

    /// Takes the connection in place of the content: `exchangeEnded` follows with `.detached`, as it does anyway after a 101
    /// response. For a consumer that may take it, before it wants content. On the loop.
    /// - Returns: `false` if the exchange has no HTTP/1.1 connection of its own any more, or content was read from it.
    package func detachConnection() -> Bool {
        guard case .running(let carrier) = self.phase else { return false }
        return self.progress.isUpgraded || carrier.detach()
    }

    /// A body source that answered `.later` has bytes again.
    private func bodyAvailable() {
        self.onLoop { exchange in
            if case .running(let carrier) = exchange.phase { carrier.pumpBody() }
        }
    }

    /// Moves the exchange within the queue for a connection; on HTTP/2, tells the server how urgent the response is
    /// (RFC 9218).
    package func setPriority(_ priority: Float) {
        self.onLoop { $0.pool.reorder($0, priority: priority) }
    }

    private func onLoop(_ work: @escaping @Sendable (Exchange) -> Void) {
        let loop = self.pool.loop
        if loop.isCurrent { work(self) } else { loop.execute { work(self) } }
    }

    // MARK: Content

    private var demand: ContentDemand { self.consumer?.demand ?? .bytes(self.drainLeft) }

    /// While suspended, nothing is read, no more of the body is sent, and the idle timeout of the connection does not run.
    var isSuspended: Bool { self.demand == .suspended }

    /// Time between two checks whether the exchange is idle; `nil` if it may be so for ever. One with a body is looked at
    /// twice within the timeout: whether bytes have left is seen by comparison only.
    var idleInterval: Duration? { self.request.idleTimeout.map { self.body == nil ? $0 : $0 / 2 } }

    /// Whether more may be read from the connection.
    var wantsBytes: Bool {
        guard case .bytes(let demand) = self.demand else { return false }
        return switch self.progress.receiving {
        case .awaitingHead, .complete: true
        case .content(.none, _): !self.holdsConnection
        case .content: demand > 0 && !self.holdsContent
        }
    }

    /// Whether content stays on the connection, because the consumer wants none yet and may take the connection itself.
    var holdsConnection: Bool {
        guard case .content(_, received: 0) = self.progress.receiving, self.progress.sending == .done else {
            return false
        }
        if case .bytes(let demand) = self.demand, demand > 0 { return false }
        return self.consumer?.mayTakeConnection ?? false
    }

    private func serveDemand() {
        guard !self.isEnded else { return }
        switch self.phase {
        case .waiting(let waiter): return self.pool.suspendIfNeeded(self, waiter)
        case .suspended(let needsFresh): return self.pool.resume(self, needsFresh: needsFresh)
        case .connecting(let attempt): return attempt.demandChanged()
        case .created, .leasing, .offline, .pipelined, .running, .draining, .ended: break
        }
        // The task may have been suspended in the middle of its body.
        if case .running(let carrier) = self.phase { carrier.pumpBody() }
        guard !self.isEnded else { return }
        if self.holdsContent, case .bytes(let demand) = self.demand, demand > 0 {
            var held: [UInt8] = []
            swap(&held, &self.bufferedContent)
            held.withRawSpan { self.deliver($0) }
        }
        guard !self.isSuspended, !self.holdsContent else { return }
        switch self.phase {
        case .running(let carrier): carrier.updateReading()
        case .draining(let trailers): self.end(.finished(trailers: trailers))
        case .offline(let wait): wait.resume()
        case .created, .waiting, .leasing, .suspended, .connecting, .pipelined, .ended: break
        }
    }

    func contentReceived(_ bytes: RawSpan) {
        self.metrics.responseContentBytes += Int64(bytes.byteCount)
        if case .bytes(let demand) = self.demand, demand > 0, !self.holdsContent { return self.deliver(bytes) }
        self.bufferedContent.append(bytes)
    }

    private var holdsContent: Bool { !self.bufferedContent.isEmpty }

    private func deliver(_ bytes: RawSpan) {
        if let consumer { return consumer.contentReceived(bytes) }
        self.drainLeft -= bytes.byteCount
        if self.drainLeft <= 0 { self.fail(.cancelled) }
    }

    // MARK: Ending

    /// The response is complete and its connection released.
    func responseFinished(_ trailers: [FieldLine]) {
        guard !self.isEnded else { return }
        if !self.holdsContent {
            self.end(.finished(trailers: trailers))
        } else {
            self.phase = .draining(trailers: trailers)
        }
    }

    /// Ends the exchange and releases its queue entry, its connection attempt or its connection.
    func fail(_ failure: ExchangeFailure) {
        let phase = self.phase
        guard !self.isEnded else { return }
        self.phase = .ended
        switch phase {
        case .created, .suspended, .offline, .draining, .ended: break
        case .waiting(let waiter): self.pool.withdraw(waiter)
        case .leasing(let lease): lease.withdraw(self)
        case .pipelined(let connection): connection.withdraw(self)
        case .connecting(let attempt):
            attempt.cancel()
            self.metrics.timings = attempt.timings
        case .running(let carrier): carrier.close()
        }
        self.end(.failed(failure))
    }

    func end(_ end: ExchangeEnd) {
        self.phase = .ended
        self.stopWaiting()
        self.bufferedContent = []
        self.body = nil
        if let consumer {
            self.consumer = nil
            consumer.exchangeEnded(end, metrics: self.takeMetrics())
        } else if case .detached(let connection) = end {
            connection.close()
        }
        if case .source(let source, _) = self.request.body { source.close() }
    }

    /// Moves the metrics out, which takes less time than a copy; the ended exchange does not need them.
    private func takeMetrics() -> ExchangeMetrics {
        var metrics = ExchangeMetrics(fetchStart: self.metrics.fetchStart)
        swap(&metrics, &self.metrics)
        return metrics
    }

    // MARK: Waiting for a network

    /// - Returns: whether the request is sent when this machine's networks have changed.
    func waits(after failure: TransportFailure) -> Bool {
        guard self.request.waitsForConnectivity, !self.isRepeated, !self.isEnded else { return false }
        let isFirst = !self.hasWaited
        // `serveDemand` follows when the consumer resumes.
        let wait = self.pathWait ?? PathWait(on: self.pool.loop) { [weak self] in self?.isSuspended ?? true }
        let waits = wait.wait(after: failure) {
            self.phase = .created
            self.pool.submit(self)
        }
        guard waits else { return false }
        self.pathWait = wait
        self.hasWaited = true
        self.phase = .offline(wait)
        if isFirst { self.consumer?.waitingForConnectivity() }
        return true
    }

    /// The exchange has a connection, or has ended.
    func stopWaiting() {
        guard let wait = self.pathWait else { return }
        self.pathWait = nil
        wait.end()
    }

    // MARK: Waiting for a server that allows no streams

    /// Of the exchange in the queue for a connection: the idle timeout runs while its server allows no streams, as it would
    /// on an open stream.
    func waits(isBlocked: Bool) {
        guard isBlocked else { return self.stopBlockTimer() }
        guard self.blockTimer == nil, let timeout = self.request.idleTimeout else { return }
        let timer = LoopTimer()
        self.blockTimer = timer
        self.pool.loop.arm(timer, after: timeout, target: self)
    }

    private func stopBlockTimerUnlessWaiting() {
        if case .waiting = self.phase { return }
        self.stopBlockTimer()
    }

    private func stopBlockTimer() {
        guard let timer = self.blockTimer else { return }
        self.blockTimer = nil
        self.pool.loop.disarm(timer)
    }

    // MARK: Repeating

    var isRepeated: Bool { self.repetitions.count > 0 }

    /// Resets the exchange for another attempt. Only an idempotent request is repeated, once (RFC 9110 §9.2.2), unless the
    /// server said that it did not process it (RFC 9113 §8.7).
    /// - Parameter unprocessed: how the server said so; `nil` if the connection was lost.
    func prepareToRepeat(unprocessed: Repetitions.Unprocessed? = nil) -> Bool {
        guard unprocessed != nil || self.plan.head.isIdempotent, self.repetitions.allow(unprocessed),
            !self.request.isBoundToLease, self.body?.rewind() ?? true
        else { return false }
        self.repetitions.add(unprocessed)
        self.progress = Self.progress(self.plan, hasBody: self.body != nil)
        self.metrics = ExchangeMetrics(fetchStart: self.metrics.fetchStart)
        return true
    }
}

/// How often a request was sent again, and why.
struct Repetitions {
    enum Unprocessed {
        /// The server refused the request alone, or all of the connection.
        case refused
        /// It refused the request because fewer streams are allowed than when it was sent.
        case beyondLimit
        /// It ended the connection, on which it processes others.
        case afterOthers
    }

    private static let refusalLimit = 5

    private(set) var count = 0
    private var refusals = 0
    /// At most one for each connection and each change of its limit; many mean that the server closes connections.
    private var limitRefusals = 0
    private var wasLost = false

    func allow(_ cause: Unprocessed?) -> Bool {
        switch cause {
        case nil: !self.wasLost
        case .refused: self.refusals < Self.refusalLimit
        case .beyondLimit: self.limitRefusals < Self.refusalLimit
        // Each time the connection keeps at least one other request.
        case .afterOthers: true
        }
    }

    mutating func add(_ cause: Unprocessed?) {
        self.count += 1
        switch cause {
        case nil: self.wasLost = true
        case .refused: self.refusals += 1
        case .beyondLimit: self.limitRefusals += 1
        case .afterOthers: break
        }
    }
}

extension Exchange: TurnEndTarget {
    package func turnEnded() {
        self.begin()
    }
}

extension Exchange: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.blockTimer = nil
        guard case .waiting(let waiter) = self.phase, self.pool.isBlocked(waiter.key) else { return }
        self.fail(.idle)
    }
}

/// Carries an exchange: an HTTP/1.1 connection or a stream of an HTTP/2 connection.
protocol ExchangeCarrier: AnyObject {
    var metadata: ConnectionMetadata { get }
    /// Sends the next piece of the body, unless one is still being written.
    func pumpBody()
    /// The consumer's demand has changed.
    func updateReading()
    /// The exchange has ended before its response: an HTTP/1.1 connection is closed, because the end of the response cannot
    /// be found any more; an HTTP/2 stream is reset.
    func close()
    /// - Parameter priority: 0 to 1. Default: without effect, because HTTP/1.1 has no priorities.
    func setPriority(_ priority: Float)
    /// The consumer takes the connection in place of the content.
    /// - Returns: `false` if it cannot.
    func detach() -> Bool
}

extension ExchangeCarrier {
    func setPriority(_ priority: Float) {}
    func detach() -> Bool { false }
}

/// Receives the events of an exchange, always on its loop. The exchange retains it until `exchangeEnded`.
///
/// It must not block: other exchanges share the loop.
package protocol ExchangeConsumer: AnyObject, Sendable {
    /// The consumer's current demand. Call `Exchange.demandChanged` when it has grown.
    var demand: ContentDemand { get }

    /// Whether the consumer may call `Exchange.detachConnection`. Asked after a head; while it holds and the demand is zero,
    /// what follows the head is not read as content. Default: `false`.
    var mayTakeConnection: Bool { get }

    /// The request is about to be sent on a new or reused connection. Called again if the request is repeated on a fresh
    /// connection.
    func connectionReady(_ metadata: ConnectionMetadata)

    /// A decision about the server's certificate is needed. `answer` may be called at any time, from any thread; a second
    /// call is ignored. The handshake timeout does not run meanwhile.
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void)

    /// The server requests a client certificate, signed by one of `issuers` (DER names; empty means any). Answer `nil` to
    /// send none.
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void)

    /// This machine has no way to the server, and the exchange waits for one. At most once, and only with
    /// `ExchangeRequest.waitsForConnectivity`.
    func waitingForConnectivity()

    /// The system took `count` bytes of the request's body, without framing.
    func bodySent(_ count: Int)

    /// An informational head (1xx except 101). There may be several.
    func informationalHeadReceived(_ head: ResponseHead)

    /// The final head. Content follows as it is demanded.
    func headReceived(_ head: ResponseHead, framing: ResponseFraming)

    /// The next bytes of content; valid during the call.
    func contentReceived(_ bytes: RawSpan)

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics)
}

extension ExchangeConsumer {
    package var mayTakeConnection: Bool { false }
    package func waitingForConnectivity() {}
}

/// Demand of an exchange's consumer for content.
package enum ContentDemand: Sendable, Hashable {
    /// Nothing is read, not even a head, and the idle timeout does not run.
    case suspended
    /// So many bytes of content, `Int.max` for all; pieces are not cut, so slightly more may be delivered.
    case bytes(Int)
}

/// How an exchange ended. Reported once, last.
package enum ExchangeEnd: Sendable {
    /// The whole response was delivered. `trailers` are those of chunked content, mostly none.
    case finished(trailers: [FieldLine])
    /// The server switched protocols (101), or the consumer took the connection: it owns it and must close it.
    case detached(DetachedConnection)
    case failed(ExchangeFailure)
}

/// Why an exchange ended without a whole response.
package enum ExchangeFailure: Error, Sendable, Hashable {
    /// `Exchange.cancel` was called.
    case cancelled
    /// An error of the caller: the request cannot be sent.
    case request(RequestError)
    /// No connection was established: name lookup, connecting or a deadline of one of the steps, the TLS handshake included.
    case connecting(TransportFailure)
    /// `PoolSettings.admits` refused all addresses.
    case notAdmitted
    /// The TLS handshake or a later record failed.
    case securing(TLSFailure)
    /// No byte was sent or received on the open connection for `ExchangeRequest.idleTimeout`.
    case idle
    /// The connection ended before the response's head.
    case connectionLost(ConnectionLoss)
    /// The request is bound to a lease whose connection is lost. It was not sent.
    case leaseLost
    /// The connection ended within the content.
    /// - Parameters:
    ///   - received: bytes of content.
    ///   - expected: as announced; `nil` if the response was chunked or ended with the connection.
    case truncated(received: Int64, expected: Int64?, cause: TransportFailure?)
    /// The server broke a rule of HTTP; the part of the response received so far must not be trusted.
    case violation(ResponseViolation)
    /// The body could not be sent.
    case body(BodyFailure)
    /// HTTP/2 ended the exchange's stream or connection.
    case http2(HTTP2Error)
    /// The pool was closed.
    case poolClosed
}

/// Times and sizes of an exchange. Of a repeated request, those of the last attempt.
package struct ExchangeMetrics: Sendable, Hashable {
    /// When the exchange was created.
    package var fetchStart: ContinuousInstant
    package var connection: ConnectionMetadata?
    /// The completed steps of connecting, also if it failed.
    package var timings = ConnectTimings()
    package var requestStart: ContinuousInstant?
    package var requestEnd: ContinuousInstant?
    /// First and last byte of the response.
    package var responseStart: ContinuousInstant?
    package var responseEnd: ContinuousInstant?

    // Sizes are bytes on the wire, above TLS; of HTTP/2, heads before compression and bodies without framing.
    package var requestHeadBytes: Int64 = 0
    /// Includes chunk framing.
    package var requestBodyBytes: Int64 = 0
    /// Without chunk framing.
    package var requestContentBytes: Int64 = 0
    /// Includes informational heads.
    package var responseHeadBytes: Int64 = 0
    /// Includes chunk framing and trailers.
    package var responseBodyBytes: Int64 = 0
    /// Without chunk framing, before content decoding.
    package var responseContentBytes: Int64 = 0

    package init(fetchStart: ContinuousInstant) {
        self.fetchStart = fetchStart
    }
}
