import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// An accepted connection until it has its endpoint, tunnel or responder: PROXY header, TLS, opening handshake, route.
/// One deadline covers it all.
final class InboundConnection {
    let context: ConnectionContext
    private let plan: ListenerPlan
    private var transport: any Transport
    private var phase = InboundPhase.arriving
    /// Parser of the phase `request`. Not a payload of the case, so that it is mutated in place.
    private var parser: RequestParser?
    /// Bytes of the request so far.
    private var requestBytes = 0
    /// TLS handshake of the phase `securing`; `nil` while it is queued.
    private var handshake: SecureTransport?

    init(_ context: ConnectionContext, plan: ListenerPlan, transport: any Transport) {
        self.context = context
        self.plan = plan
        self.transport = transport
    }

    private var gateway: LoopGateway { self.context.gateway }
    private var configuration: ListenerConfiguration { self.plan.configuration }

    // MARK: The steps

    func start() {
        self.transport.consumer = self
        self.context.loop.arm(self.context.timer, after: self.configuration.limits.handshakeTimeout, target: self)
        let proxyProtocol = self.configuration.proxyProtocol
        if proxyProtocol.mode != .off, AddressSet(proxyProtocol.trusted).contains(self.context.client) {
            self.context.permit.arrive(self.context)
            self.transport.resumeReading()
        } else if proxyProtocol.mode == .require {
            self.end(.downstream, .proxyHeader, reset: true)
        } else {
            self.clientAddressKnown()
        }
    }

    /// Asks admission.
    private func clientAddressKnown() {
        let refusal = self.context.permit.request(self.context, self.configuration.limits)
        if let refusal {
            self.gateway.shared.counters.count(refusal.rawValue)
            self.gateway.shared.eventLog?.limitHit(refusal.rawValue, listener: self.configuration.name)
            guard self.configuration.kind.speaksWebSocket, self.context.permit.requestAnswer(self.context) else {
                return self.end(.gateway, .refusedAdmission(refusal), in: .accepting, reset: true)
            }
        }
        self.perform(
            self.phase.clientAddressKnown(
                self.configuration.kind, acceptsPlain: self.configuration.acceptsPlain, refusal: refusal))
    }

    private func perform(_ step: InboundPhase.Step) {
        switch step {
        case .detectTLS: self.transport.resumeReading()
        case .beginTLS: self.enterHandshakeQueue()
        case .readRequest: self.readRequest()
        case .handOver: self.handOver()
        case .reset: self.end(.gateway, .refusedAdmission(.clientAddress), in: .accepting, reset: true)
        case .ignore: break
        }
    }

    private func readRequest() {
        self.parser = RequestParser(limits: self.configuration.limits.headLimits)
        self.transport.resumeReading()
    }

    /// Hands a byte stream to the listener's route.
    private func handOver() {
        guard let route = self.plan.route else {
            self.context.loop.disarm(self.context.timer)
            assertionFailure("listener \(self.configuration.name) has no route")
            self.transport.consumer = nil
            self.transport.reset()
            return self.gateway.ended(self.context, TerminationReason(.gateway, .accepting, .system))
        }
        self.handOver(nil, to: route)
    }

    /// The transport gets a new owner; the deadline of these steps no longer matters.
    private func handOver(_ matched: MatchedRequest?, to route: RoutePlan) {
        self.context.loop.disarm(self.context.timer)
        self.transport.pauseReading()
        self.gateway.begin(self.context, self.transport, matched, route: route)
    }

    /// The connection carries plain HTTP from here on.
    private func serve(
        _ head: RequestHead, _ match: RouteMatch, route: RoutePlan, isSecure: Bool, grant: AccessGrant?
    ) {
        self.context.loop.disarm(self.context.timer)
        self.transport.pauseReading()
        let connection = HTTPConnection(
            self.context, plan: self.plan, transport: self.transport, isSecure: isSecure)
        connection.start(head, match, route: route, grant: grant, received: self.requestBytes)
    }

    // MARK: TLS

    private func enterHandshakeQueue() {
        let queue = self.gateway.handshakeQueue(of: self.configuration.name)
        if queue.enter(self.identifier, limit: self.configuration.limits.maximumHandshakes) { self.beginHandshake() }
    }

    func beginHandshake() {
        guard let context = self.plan.context else { return self.end(.gateway, .system, in: .tls, reset: true) }
        var settings = SecureSettings(context: context)
        // The deadline of all steps ends this one too.
        settings.timeout = self.configuration.limits.handshakeTimeout
        settings.handshakeByteLimit = self.configuration.limits.maximumHandshakeSize
        self.handshake = SecureTransport.upgrade(self.transport, settings: settings, received: []) { result in
            self.handshake = nil
            switch result {
            case .success(let secure):
                self.leaveHandshakeQueue()
                self.transport = secure
                secure.consumer = self
                self.perform(self.phase.secured(self.configuration.kind))
            case .failure(let failure):
                self.end(.downstream, TerminationCause(arriving: failure), in: .tls, detail: failure.description)
            }
        }
    }

    /// Its handshake exceeded the time allowed while others are queued.
    func handshakeOverdue() {
        self.end(.downstream, .timeout(.handshake), reset: true)
    }

    private func leaveHandshakeQueue() {
        self.gateway.handshakeQueues[self.configuration.name]?.leave(self.identifier)
    }

    // MARK: The request

    private func parseRequest(_ bytes: RawSpan) -> Int {
        var used = 0
        do throws(HeadViolation) {
            let head = try self.parser?.parse(bytes, consumed: &used)
            self.requestBytes += used
            if let head { self.respond(head) }
        } catch {
            self.refuse(HandshakeRefusal(status: error.status, explanation: error.explanation))
            return bytes.byteCount
        }
        return used
    }

    private func respond(_ head: RequestHead) {
        switch self.phase.requestReceived() {
        case .refuse(let refusal):
            self.refuse(
                refusal.handshakeRefusal, isHead: head.method == "HEAD", by: .gateway, as: .refusedAdmission(refusal))
        case .findRoute(let isSecure):
            do throws(HandshakeRefusal) {
                let now = self.gateway.loop.system.wallClockMilliseconds()
                switch try self.plan.find(head, isSecure: isSecure, now: now) {
                case .webSocket(let matched):
                    try self.gateway.shared.hub.checkName(matched)
                    let route = try self.gateway.route(of: matched)
                    self.phase.routeFound()
                    self.handOver(matched, to: route)
                case .http(let route, let match, let grant):
                    self.phase.routeFound()
                    self.serve(head, match, route: route, isSecure: isSecure, grant: grant)
                }
            } catch {
                self.refuse(error, isHead: head.method == "HEAD")
            }
        case .ignore:
            break
        }
    }

    /// Answers with a status and ends the connection.
    /// - Parameter isHead: whether the response has no body.
    private func refuse(
        _ refusal: HandshakeRefusal, isHead: Bool = false, by party: TerminationParty = .downstream,
        as cause: TerminationCause? = nil
    ) {
        let date = self.context.loop.responseDate
        refusal.rendered(isHead: isHead, date: date).withRawSpan { self.transport.write($0) }
        if refusal.status == 401 { self.gateway.shared.counters.count("unauthenticated") }
        self.end(
            party, cause ?? .refusedRequest(status: UInt16(clamping: refusal.status)), detail: refusal.detail)
    }

    // MARK: Ending

    /// - Parameters:
    ///   - phase: the current one by default.
    ///   - reset: whether to reset instead of closing after the bytes already written.
    private func end(
        _ party: TerminationParty, _ cause: TerminationCause, in phase: TerminationPhase? = nil, reset: Bool = false,
        detail: String? = nil
    ) {
        let reason = TerminationReason(party, phase ?? self.phase.terminationPhase, cause)
        let action = self.phase.ended()
        guard action != .ignore else { return }
        self.context.loop.disarm(self.context.timer)
        self.handshake?.reset()
        self.handshake = nil
        self.transport.consumer = nil
        if reset { self.transport.reset() } else { self.transport.close(linger: .seconds(2)) }
        self.gateway.ended(self.context, reason, detail: detail)
        if action == .endHandshake { self.leaveHandshakeQueue() }
    }
}

extension InboundConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        switch self.phase {
        case .arriving: return self.readProxyHeader(bytes.bytes)
        case .detectingTLS:
            self.transport.pauseReading()
            self.perform(self.phase.firstByteReceived(bytes.bytes[byte: 0], self.configuration.kind))
            return 0
        case .request: return self.parseRequest(bytes.bytes)
        case .securing, .handedOver: return 0
        case .ended: return bytes.byteCount
        }
    }

    private func readProxyHeader(_ bytes: RawSpan) -> Int {
        switch ProxyHeaderDecoder().decode(bytes) {
        case .incomplete:
            return 0
        case .header(let header, let length):
            self.transport.pauseReading()
            if case .proxied(let source, let destination) = header {
                self.context.client = source
                self.context.destination = destination
            }
            self.clientAddressKnown()
            return length
        case .absent where self.configuration.proxyProtocol.mode == .accept:
            self.transport.pauseReading()
            self.clientAddressKnown()
            return 0
        case .absent, .violation:
            self.end(.downstream, .proxyHeader, reset: true)
            return bytes.byteCount
        }
    }

    func inputClosed() {
        self.end(.downstream, .truncated)
    }

    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.end(.downstream, TerminationCause(arriving: end.transportFailure ?? .reset), reset: true)
    }
}

extension InboundConnection: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        switch self.phase.timedOut() {
        case .refuse:
            let explanation = "The request did not arrive in time; send it faster."
            self.refuse(HandshakeRefusal(status: 408, explanation: explanation), as: .timeout(.handshake))
        case .reset: self.end(.downstream, .timeout(.handshake), reset: true)
        case .ignore: break
        }
    }
}

extension InboundConnection: LiveConnection {
    /// Nothing is forwarded before the route is known.
    var queuedBytes: Int { 0 }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        reports.append(self.context.report(self.configuration.kind.connectionKind, stage: .opening, at: now))
    }

    func drain() {
        self.end(.operator, .drained)
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.end(party, cause, reset: true)
    }
}

extension AdmissionRefusal {
    /// Response to a refused WebSocket client.
    var handshakeRefusal: HandshakeRefusal {
        guard self != .clientAddress else {
            return HandshakeRefusal(status: 403, explanation: "Clients of your address may not connect here.")
        }
        return HandshakeRefusal(
            status: Int(self.status),
            explanation: "Too many connections (\(self.rawValue)); close some or try again later.",
            fields: [HTTPField("Retry-After", "5")])
    }
}

extension ListenerLimits {
    /// Limits of a request's head.
    var headLimits: HeadLimits {
        HeadLimits(byteCount: self.maximumHeaderSize, fieldCount: self.maximumHeaderCount)
    }
}
