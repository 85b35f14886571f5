import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// A connection on its way from the listener to its endpoint or tunnel: PROXY header, TLS, opening handshake, route.
/// One deadline covers it all.
final class InboundConnection {
    private enum Phase {
        case proxyHeader
        /// Plain or TLS, by the first byte.
        case detectingTLS
        case securing
        case request
        /// The transport has another owner, or is ending.
        case done
    }

    private(set) var context: ConnectionContext
    let plan: ListenerPlan
    let gateway: LoopGateway
    private(set) var transport: any Transport
    private var phase = Phase.detectingTLS
    /// Parser of the phase `request`. Not a payload of the case, so that it is mutated in place.
    private var parser: RequestParser?
    private var isSecure = false
    /// Refused by admission; a WebSocket client gets the status after its request.
    private var refusal: AdmissionRefusal?
    let ticket: AdmissionPermit
    private var securing: SecureTransport?
    /// Handed to the connection's next owner.
    let timer = LoopTimer()

    init(_ context: ConnectionContext, plan: ListenerPlan, transport: any Transport, gateway: LoopGateway) {
        self.context = context
        self.plan = plan
        self.transport = transport
        self.gateway = gateway
        self.ticket = AdmissionPermit(listener: plan.configuration.name, shared: gateway.shared)
    }

    var loop: Loop { self.gateway.loop }

    // MARK: The steps

    func start() {
        self.transport.consumer = self
        self.loop.arm(self.timer, after: self.plan.configuration.limits.handshakeTimeout, target: self)
        if self.readsProxyHeader {
            self.phase = .proxyHeader
            self.ticket.arrive()
            self.transport.resumeReading()
        } else if self.plan.configuration.proxyProtocol.mode == .require {
            self.end(TerminationReason(.downstream, .proxyProtocol, .proxyHeader), reset: true)
        } else {
            self.clientAddressKnown()
        }
    }

    private var readsProxyHeader: Bool {
        let acceptance = self.plan.configuration.proxyProtocol
        guard acceptance.mode != .off else { return false }
        return TrustedPeers(acceptance.trusted).contains(self.context.peer)
    }

    /// The client's address is known: asks admission.
    private func clientAddressKnown() {
        let client = self.context.client.ipAddress
        self.refusal = self.ticket.take(client: client, at: self.loop.now)
        if let refusal = self.refusal {
            self.gateway.shared.counters.count(refusal.rawValue)
            self.gateway.shared.eventLog?.limitHit(refusal.rawValue, listener: self.context.listener)
            guard self.plan.configuration.kind.speaksWebSocket, self.ticket.takeAnswer() else {
                return self.end(TerminationReason(.gateway, .accepting, .refusedAdmission(refusal)), reset: true)
            }
        }
        if self.plan.configuration.kind.speaksTLS {
            self.plan.configuration.acceptsPlain ? self.sniff() : self.secure()
        } else {
            self.plain()
        }
    }

    private func sniff() {
        self.phase = .detectingTLS
        self.transport.resumeReading()
    }

    private func secure() {
        self.phase = .securing
        let queue = self.gateway.handshakeQueue(of: self.context.listener)
        if queue.enter(self.context.identifier, limit: self.plan.configuration.limits.maximumHandshakes) {
            self.beginHandshake()
        }
    }

    func beginHandshake() {
        guard let context = self.plan.context else {
            return self.end(TerminationReason(.gateway, .tls, .system), reset: true)
        }
        var settings = SecureSettings(context: context)
        // The deadline of all steps ends this one too.
        settings.timeout = self.plan.configuration.limits.handshakeTimeout
        settings.handshakeByteLimit = self.plan.configuration.limits.maximumHandshakeSize
        self.securing = SecureTransport.upgrade(self.transport, settings: settings, received: []) { result in
            self.securing = nil
            switch result {
            case .success(let secure):
                self.leaveHandshakeQueue()
                self.isSecure = true
                self.transport = secure
                secure.consumer = self
                self.plain()
            case .failure(let failure):
                self.end(self.reason(for: failure, in: .tls), reset: false, detail: failure.description)
            }
        }
    }

    /// Its handshake exceeded the time allowed while others are queued.
    func handshakeOverdue() {
        self.end(TerminationReason(.downstream, .tls, .timeout(.handshake)), reset: true)
    }

    private func leaveHandshakeQueue() {
        self.gateway.handshakeQueues[self.context.listener]?.leave(self.context.identifier)
    }

    /// Continues with the plaintext, inside TLS or without.
    private func plain() {
        if self.plan.configuration.kind.speaksWebSocket {
            let limits = self.plan.configuration.limits
            self.phase = .request
            self.parser = RequestParser(
                limits: HeadLimits(byteCount: limits.maximumHeaderSize, fieldCount: limits.maximumHeaderCount))
            self.transport.resumeReading()
        } else if let route = self.plan.route {
            self.handOver(to: route)
            self.gateway.begin(.stream(self.transport), of: self, route: route)
        } else {
            self.end(TerminationReason(.gateway, .accepting, .system), reset: true)
        }
    }

    /// The transport gets a new owner; the deadline of these steps no longer matters.
    private func handOver(to route: RoutePlan) {
        self.context.route = route.configuration.name
        self.phase = .done
        self.loop.disarm(self.timer)
        self.transport.pauseReading()
    }

    // MARK: The request

    private func readRequest(_ bytes: RawSpan) -> Int {
        var used = 0
        do throws(HeadViolation) {
            if let head = try self.parser?.parse(bytes, consumed: &used) { self.respond(head) }
        } catch {
            self.refuse(HandshakeRefusal(status: error.status, explanation: error.explanation))
            return bytes.byteCount
        }
        return used
    }

    private func respond(_ head: RequestHead) {
        if let refusal = self.refusal {
            return self.refuse(refusal.handshakeRefusal, as: .refusedAdmission(refusal))
        }
        do throws(HandshakeRefusal) {
            let matched = try self.plan.find(head, isSecure: self.isSecure)
            self.handOver(to: matched.route)
            self.gateway.begin(.webSocket(self.transport, matched), of: self, route: matched.route)
        } catch {
            self.refuse(error)
        }
    }

    /// Answers with a status and ends the connection.
    func refuse(_ refusal: HandshakeRefusal, as cause: TerminationCause? = nil) {
        self.phase = .done
        refusal.rendered().withRawSpan { self.transport.write($0) }
        let fault = cause ?? .refusedRequest(status: UInt16(clamping: refusal.status))
        let party: TerminationParty = if case .refusedAdmission = fault { .gateway } else { .downstream }
        self.end(TerminationReason(party, .openingHandshake, fault), reset: false)
    }

    // MARK: Ending

    private func reason(for failure: TransportFailure, in phase: TerminationPhase) -> TerminationReason {
        TerminationReason(.downstream, phase, TerminationCause(arriving: failure))
    }

    private var phaseName: TerminationPhase {
        switch self.phase {
        case .proxyHeader: .proxyProtocol
        case .detectingTLS, .securing: .tls
        case .request, .done: .openingHandshake
        }
    }

    private var isEnding = false

    private func end(_ reason: TerminationReason, reset: Bool, detail: String? = nil) {
        guard !self.isEnding else { return }
        self.isEnding = true
        self.phase = .done
        self.loop.disarm(self.timer)
        let wasSecuring = self.plan.configuration.kind.speaksTLS && !self.isSecure
        self.securing?.reset()
        self.securing = nil
        self.transport.consumer = nil
        if reset { self.transport.reset() } else { self.transport.close(linger: .seconds(2)) }
        self.gateway.ended(self.context, reason, detail: detail, downstream: nil, upstream: nil)
        self.ticket.release()
        if wasSecuring { self.leaveHandshakeQueue() }
    }
}

extension InboundConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        switch self.phase {
        case .proxyHeader: return self.readProxyHeader(bytes.bytes)
        case .detectingTLS: return self.protocolDetected(bytes.bytes)
        case .request: return self.readRequest(bytes.bytes)
        case .securing: return 0
        case .done: return self.isEnding ? bytes.byteCount : 0
        }
    }

    private func protocolDetected(_ bytes: RawSpan) -> Int {
        self.transport.pauseReading()
        // A TLS record of a handshake begins with 22 (RFC 8446 §5.1); no HTTP method, and no sensible stream protocol,
        // does.
        bytes[byte: 0] == 22 ? self.secure() : self.plain()
        return 0
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
        case .absent where self.plan.configuration.proxyProtocol.mode == .accept:
            self.transport.pauseReading()
            self.clientAddressKnown()
            return 0
        case .absent, .violation:
            self.end(TerminationReason(.downstream, .proxyProtocol, .proxyHeader), reset: true)
            return bytes.byteCount
        }
    }

    func inputClosed() {
        self.end(TerminationReason(.downstream, self.phaseName, .truncated), reset: false)
    }

    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.end(self.reason(for: end.transportFailure ?? .reset, in: self.phaseName), reset: true)
    }
}

extension InboundConnection: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard case .request = self.phase else {
            return self.end(TerminationReason(.downstream, self.phaseName, .timeout(.handshake)), reset: true)
        }
        self.refuse(
            HandshakeRefusal(status: 408, explanation: "The request did not arrive in time; send it faster."),
            as: .timeout(.handshake))
    }
}

extension InboundConnection: LiveConnection {
    var identifier: UInt64 { self.context.identifier }
    var routeName: String? { self.context.route }
    /// Nothing goes anywhere before its route is known.
    var queuedBytes: Int { 0 }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        reports.append(self.context.report(self.plan.configuration.kind.connectionKind, stage: .opening, at: now))
    }

    func drain() {
        self.end(TerminationReason(.operator, self.phaseName, .drained), reset: false)
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.end(TerminationReason(party, self.phaseName, cause), reset: true)
    }
}

extension AdmissionRefusal {
    /// Response to a refused WebSocket client.
    var handshakeRefusal: HandshakeRefusal {
        HandshakeRefusal(
            status: Int(self.status),
            explanation: "Too many connections (\(self.rawValue)); close some or try again later.",
            fields: [HTTPField("Retry-After", "5")])
    }
}

/// An accepted connection, ready for its endpoint.
enum InboundTransport {
    /// A byte stream.
    case stream(any Transport)
    /// An opening request that is not answered yet.
    case webSocket(any Transport, MatchedRequest)
}
