import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol
import WireText

/// An accepted connection that carries plain HTTP: requests one after another, each answered before the next is read.
/// Ends with the connection, or with a request that opens a WebSocket.
final class HTTPConnection {
    private enum Phase: Hashable {
        /// Between two requests.
        case idle
        /// A part of a head has arrived.
        case head
        case body
        case responding
        /// The last response is being sent.
        case finishing
        /// The transport has another owner, or is closed.
        case ended
    }

    /// A request whose body is arriving.
    private struct Arriving {
        var request: PlainRequest
        let responder: any HTTPResponder
        var decoder: RequestBodyDecoder
    }

    let context: ConnectionContext
    private var plan: ListenerPlan
    private let transport: any Transport
    private let isSecure: Bool
    private let record = TaskRecord(state: .running)
    private var phase = Phase.idle
    private var parser: RequestParser
    private var arriving: Arriving?
    private var exchange: PlainExchange?
    /// Whether another request may follow this one.
    private(set) var persists = true
    /// The client finished sending.
    private var isInputClosed = false
    /// Why the gateway ends the connection; the first cause counts.
    private var termination: TerminationReason?
    private var detail: String?
    /// Bytes that the kernel had taken when the stall timer was armed.
    private var sentBefore: UInt64 = 0
    /// Checks in a row since then that found no progress.
    private var stalledChecks = 0

    init(_ context: ConnectionContext, plan: ListenerPlan, transport: any Transport, isSecure: Bool) {
        self.context = context
        self.plan = plan
        self.transport = transport
        self.isSecure = isSecure
        self.parser = RequestParser(limits: plan.configuration.limits.headLimits)
        self.record.update {
            $0.localAddress = transport.localAddress
            $0.peerAddress = transport.peerAddress
            $0.tls = (transport as? SecureTransport)?.metadata
        }
    }

    private var gateway: LoopGateway { self.context.gateway }
    private var loop: Loop { self.context.loop }
    var maximumHeaderSize: Int { self.plan.configuration.limits.maximumHeaderSize }

    /// Takes over with the connection's first request.
    /// - Parameter received: bytes of its head.
    func start(_ head: RequestHead, _ match: RouteMatch, route: RoutePlan, grant: AccessGrant?, received: Int) {
        self.transport.consumer = self
        self.context.route = route
        self.context.user = grant?.subject
        self.record.markOpened(at: self.loop.now)
        self.record.countReceived(bytes: received, at: self.loop.now)
        self.gateway.opened(self)
        self.answer(head, match, route: route, grant: grant)
        self.transport.resumeReading()
    }

    // MARK: Requests

    private func parse(_ bytes: RawSpan, _ used: inout Int) {
        do throws(HeadViolation) {
            if let head = try self.parser.parse(bytes, consumed: &used) { return self.received(head) }
        } catch {
            self.forgetRequest()
            return self.refuse(HandshakeRefusal(error))
        }
        // A client that sends an empty line after its request has not begun the next one.
        guard self.phase == .idle, self.parser.hasBegun else { return }
        self.phase = .head
        self.arm(self.plan.configuration.limits.handshakeTimeout)
    }

    private func received(_ head: RequestHead) {
        self.context.user = nil
        // A reload changes the routes of open connections too. Requests in progress of a removed listener are answered.
        if let plan = self.gateway.plan(ofListener: self.plan.configuration.name) {
            self.plan = plan
        } else {
            self.persists = false
        }
        guard self.plan.configuration.limits.allows(self.context.client) else {
            let refusal = AdmissionRefusal.clientAddress
            self.gateway.shared.counters.count(refusal.rawValue)
            self.gateway.shared.eventLog?.limitHit(refusal.rawValue, listener: self.plan.configuration.name)
            self.use(nil)
            return self.refuse(refusal.handshakeRefusal, isHead: head.method == "HEAD")
        }
        do throws(HandshakeRefusal) {
            let now = self.gateway.loop.system.wallClockMilliseconds()
            switch try self.plan.find(head, isSecure: self.isSecure, now: now) {
            case .webSocket(let matched):
                try self.gateway.shared.hub.checkName(matched)
                self.upgrade(matched, to: try self.gateway.route(of: matched))
            case .http(let route, let match, let grant):
                self.answer(head, match, route: route, grant: grant)
            }
        } catch {
            self.use(nil)
            self.refuse(error, isHead: head.method == "HEAD")
        }
    }

    /// The connection's latest request is one that cannot be read.
    private func forgetRequest() {
        self.context.user = nil
        self.use(nil)
    }

    /// The connection belongs to the route of its latest request; `nil` for one that matched none.
    private func use(_ route: RoutePlan?) {
        if route?.configuration.name != self.context.routeName {
            self.gateway.countTraffic(of: self.record, self.context)
        }
        self.context.route = route
    }

    /// The same connection becomes a WebSocket.
    private func upgrade(_ matched: MatchedRequest, to route: RoutePlan) {
        self.phase = .ended
        self.loop.disarm(self.context.timer)
        self.transport.pauseReading()
        // The WebSocket counts from zero.
        self.gateway.countTraffic(of: self.record, self.context)
        self.context.countedTraffic = nil
        self.gateway.begin(self.context, self.transport, matched, route: route)
    }

    private func answer(_ head: RequestHead, _ match: RouteMatch, route: RoutePlan, grant: AccessGrant?) {
        self.use(route)
        self.context.user = grant?.subject
        self.record.countReceived(bytes: 0, messages: 1, at: self.loop.now)
        let request = PlainRequest(
            head, match, route: route, isSecure: self.isSecure, client: self.context.client,
            isFromProxy: self.plan.trustsFields(of: self.context.client), grant: grant)
        if head.version < .http11 || head.fields.list("Connection", contains: "close") { self.persists = false }
        guard let responder = route.responder else { return self.refuse(.noRoute, isHead: head.method == "HEAD") }
        do throws(HandshakeRefusal) {
            try self.begin(request, responder)
        } catch {
            self.refuse(error, of: request, responder)
        }
    }

    private func begin(_ request: PlainRequest, _ responder: any HTTPResponder) throws(HandshakeRefusal) {
        let head = request.head
        guard head.version.major < 2 else { throw .wrongHTTPVersion }
        let framing = try RequestBodyFraming(head)
        guard responder.methods.contains(head.method) else {
            throw HandshakeRefusal(
                status: 405, explanation: "Use \(responder.methods.joined(separator: " or ")) here.",
                fields: [HTTPField("Allow", responder.methods.joined(separator: ", "))])
        }
        let expectations = head.fields.list("Expect")
        guard expectations.allSatisfy({ $0.matchesIgnoringCase("100-continue") }) else {
            throw HandshakeRefusal(status: 417, explanation: "Only 100-continue may be expected.")
        }
        guard framing != .empty else { return self.respond(to: request, responder) }
        // A client that waits may send its body or not: nothing can follow.
        let isWaiting = !expectations.isEmpty && head.version >= .http11
        if isWaiting, responder.bodyLimit == 0 {
            self.persists = false
            return self.respond(to: request, responder)
        }
        try self.awaitBody(of: request, framing, responder)
        if isWaiting { Array("HTTP/1.1 100 Continue\r\n\r\n".utf8).withRawSpan { _ = self.write($0) } }
    }

    private func awaitBody(
        of request: PlainRequest, _ framing: RequestBodyFraming, _ responder: any HTTPResponder
    ) throws(HandshakeRefusal) {
        let limit = responder.bodyLimit > 0 ? responder.bodyLimit : HTTPBounds.droppedBody
        do throws(RequestBodyDecoder.Violation) {
            self.arriving = Arriving(
                request: request, responder: responder, decoder: try RequestBodyDecoder(framing, limit: limit))
        } catch {
            throw error.refusal
        }
        self.phase = .body
        self.arm(HTTPBounds.bodyTimeout)
    }

    private func readBody(_ bytes: RawSpan, _ used: inout Int) {
        guard var arriving = self.arriving.take() else { return }
        do throws(RequestBodyDecoder.Violation) {
            try arriving.decoder.decode(
                bytes, consumed: &used, keeps: arriving.responder.bodyLimit > 0, into: &arriving.request.body)
        } catch {
            return self.refuse(error.refusal, of: arriving.request, arriving.responder)
        }
        guard arriving.decoder.isComplete else { return self.arriving = arriving }
        self.respond(to: arriving.request, arriving.responder)
    }

    private func respond(to request: PlainRequest, _ responder: any HTTPResponder) {
        let exchange = PlainExchange(request, on: self)
        self.exchange = exchange
        self.phase = .responding
        self.armStallTimer()
        responder.respond(to: request, exchange)
    }

    private func refuse(_ refusal: HandshakeRefusal, of request: PlainRequest, _ responder: any HTTPResponder) {
        let fields = responder.refusalFields(request.head, of: request.route)
        self.refuse(refusal.adding(fields), isHead: request.head.method == "HEAD")
    }

    /// Answers with an error and closes: what follows in the input cannot be read reliably.
    /// - Parameter isHead: whether the response has no body.
    private func refuse(_ refusal: HandshakeRefusal, isHead: Bool = false) {
        self.persists = false
        if refusal.status == 401 { self.gateway.shared.counters.count("unauthenticated") }
        self.detail = self.detail ?? refusal.detail
        self.recordTermination(.downstream, .refusedRequest(status: UInt16(clamping: refusal.status)))
        refusal.rendered(isHead: isHead, date: self.loop.responseDate).withRawSpan { _ = self.write($0) }
        self.finish()
    }

    // MARK: Responses

    func closeAfterResponse() { self.persists = false }

    @discardableResult
    func write(_ bytes: RawSpan) -> Int {
        self.record.countSent(bytes: bytes.byteCount, at: self.loop.now)
        self.loop.spend(bytes.byteCount)
        return self.transport.write(bytes)
    }

    var queuedBytes: Int { self.transport.queuedBytes }
    var sentBytes: UInt64 { self.transport.sentBytes }
    var isPlainSocket: Bool { self.transport.socket != nil }

    func awaitProgress() { self.transport.awaitProgress() }

    /// Of what the kernel does not take directly, at most one piece is read.
    func writeFile(_ file: OpenFile, from offset: Int64, atMost count: Int) -> Int {
        if let sent = self.transport.socket?.sendFile(file, from: offset, atMost: count) {
            self.countFileBytes(sent)
            return sent
        }
        // Where output is broken, nothing asks for bytes.
        var result = -Int(SystemError.brokenPipe.number)
        self.transport.write(reserving: min(count, Self.filePiece)) { buffer in
            result = file.read(into: &buffer, at: offset)
            return max(0, result)
        }
        self.countFileBytes(result)
        return result
    }

    private static let filePiece = 64 << 10

    private func countFileBytes(_ count: Int) {
        guard count > 0 else { return }
        self.record.countSent(bytes: count, at: self.loop.now)
        self.loop.spend(count)
    }

    func exchangeFinished(_ exchange: PlainExchange) {
        guard self.exchange === exchange else { return }
        self.record.countSent(bytes: 0, messages: 1, at: self.loop.now)
        self.release()
        guard self.phase == .responding else { return }
        guard self.persists, !self.isInputClosed else { return self.finish() }
        self.phase = .idle
        self.armIdleTimer()
        self.transport.resumeReading()
    }

    func exchangeAborted(_ exchange: PlainExchange, detail: String) {
        guard self.exchange === exchange else { return }
        self.detail = detail
        self.end(.gateway, .system, reset: true)
    }

    private func release() {
        let exchange = self.exchange
        self.exchange = nil
        exchange?.detach()
    }

    // MARK: Ending

    /// Closes once everything is sent.
    private func finish() {
        guard self.phase != .ended else { return }
        self.phase = .finishing
        self.arriving = nil
        self.armStallTimer()
        self.transport.resumeReading()
        self.transport.awaitProgress()
    }

    private func recordTermination(_ party: TerminationParty, _ cause: TerminationCause) {
        self.termination = self.termination ?? TerminationReason(party, .relaying, cause)
    }

    private func end(_ party: TerminationParty, _ cause: TerminationCause, reset: Bool) {
        guard self.phase != .ended else { return }
        self.phase = .ended
        self.recordTermination(party, cause)
        self.loop.disarm(self.context.timer)
        self.arriving = nil
        self.transport.consumer = nil
        if reset { self.transport.reset() } else { self.transport.close(linger: .seconds(2)) }
        self.release()
        let reason = self.termination ?? TerminationReason(party, .relaying, cause)
        self.gateway.ended(self.context, reason, detail: self.detail, downstream: self.record)
    }

    private func arm(_ timeout: Duration) {
        self.loop.arm(self.context.timer, after: timeout, target: self)
    }

    private func armIdleTimer() {
        self.sentBefore = self.transport.sentBytes
        self.arm(HTTPBounds.keepAlive)
    }

    private func armStallTimer() {
        self.sentBefore = self.transport.sentBytes
        self.stalledChecks = 0
        self.arm(HTTPBounds.stallTimeout / HTTPBounds.stallChecks)
    }

    /// Resets a client that has taken nothing for the timeout.
    private func checkStall() {
        guard self.transport.queuedBytes > 0, self.transport.sentBytes == self.sentBefore else {
            return self.armStallTimer()
        }
        self.stalledChecks += 1
        guard self.stalledChecks >= HTTPBounds.stallChecks else {
            return self.arm(HTTPBounds.stallTimeout / HTTPBounds.stallChecks)
        }
        self.end(.downstream, .timeout(.closing), reset: true)
    }
}

extension HTTPConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var used = 0
        while used < bytes.byteCount {
            switch self.phase {
            case .idle, .head:
                guard !self.loop.budgetIsSpent else { return self.count(used) }
                // Pipelined requests wait until the client has read the responses before them.
                guard self.transport.queuedBytes <= HTTPBounds.highWatermark else {
                    self.transport.pauseReading()
                    self.transport.awaitProgress()
                    return self.count(used)
                }
                let start = used
                self.parse(bytes.bytes, &used)
                self.loop.spend(TurnBudget.frame + used - start)
            case .body:
                let start = used
                self.readBody(bytes.bytes, &used)
                self.loop.spend(used - start)
            case .responding:
                self.transport.pauseReading()
                return self.count(used)
            case .finishing: return bytes.byteCount
            case .ended: return self.count(used)
            }
        }
        return self.count(used)
    }

    private func count(_ used: Int) -> Int {
        if used > 0 { self.record.countReceived(bytes: used, at: self.loop.now) }
        return used
    }

    func inputClosed() {
        self.isInputClosed = true
        switch self.phase {
        // A client may close its side before it has read its last response.
        case .idle: self.finish()
        case .head, .body: self.end(.downstream, .truncated, reset: false)
        case .responding: self.exchange?.inputClosed()
        case .finishing, .ended: break
        }
    }

    func outputProgressed() {
        switch self.phase {
        case .responding: self.exchange?.outputProgressed()
        case .finishing where self.transport.queuedBytes == 0:
            self.end(.downstream, .clean(closeCode: nil), reset: false)
        case .idle, .head: self.transport.resumeReading()
        case .body, .finishing, .ended: break
        }
    }

    func transportEnded(_ end: TransportEnd) {
        let failure = end.transportFailure.map { ConnectionFailure($0) } ?? .reset
        self.end(.downstream, TerminationCause(failure), reset: true)
    }
}

extension HTTPConnection: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        switch self.phase {
        // It is not idle while it still reads its last response.
        case .idle where self.transport.queuedBytes > 0 && self.transport.sentBytes != self.sentBefore:
            self.armIdleTimer()
        case .idle: self.end(.gateway, .timeout(.idle), reset: self.transport.queuedBytes > 0)
        case .head, .body:
            if case .head = self.phase { self.forgetRequest() }
            self.recordTermination(.downstream, .timeout(.handshake))
            self.refuse(
                HandshakeRefusal(status: 408, explanation: "The request did not arrive in time; send it faster."))
        case .responding, .finishing: self.checkStall()
        case .ended: break
        }
    }
}

extension HTTPConnection: LiveConnection {
    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        var report = self.context.report(.http, stage: self.phase == .finishing ? .closing : .open, at: now)
        report.read(self.record)
        report.queuedSendBytes = self.transport.queuedBytes
        report.writtenBytes = self.transport.writtenBytes
        report.isInputClosed = self.isInputClosed
        report.isRelayed = true
        let stall = self.transport.outputStall
        report.sendStalled = stall.total(at: now)
        report.isStalled = stall.since != nil
        reports.append(report)
    }

    func drain() { self.end(after: .drained) }

    func stop(_ signal: CloseSignal) { self.end(after: .stopped) }

    /// Ends after the current response.
    private func end(after cause: TerminationCause) {
        self.recordTermination(.operator, cause)
        self.persists = false
        switch self.phase {
        case .idle: self.finish()
        case .responding: self.exchange?.drain()
        case .head, .body, .finishing, .ended: break
        }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.end(party, cause, reset: true)
    }
}
