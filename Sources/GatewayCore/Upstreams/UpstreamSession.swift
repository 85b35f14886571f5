import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// An accepted connection while its upstream is being connected: picks endpoints, retries, and joins the two sides; or
/// sends the client an error response.
final class UpstreamSession {
    private(set) var context: ConnectionContext
    private let ticket: AdmissionPermit
    private let route: RoutePlan
    private let gateway: LoopGateway
    private let link: InboundTransport
    /// The accepted connection; `nil` once it has another owner.
    private var transport: (any Transport)?
    private var attempt: UpstreamAttempt?
    /// The endpoint of the current attempt.
    private var currentEndpoint: Int?
    private var plan: RetryPlan
    private var triedEndpoints: [Int] = []
    /// Endpoints that would fail again for the same reason.
    private var permanentlyFailed: [Int] = []
    private let timer: LoopTimer
    private var isOver = false

    init(_ inbound: InboundConnection, link: InboundTransport, route: RoutePlan, gateway: LoopGateway) {
        self.context = inbound.context
        self.ticket = inbound.ticket
        self.timer = inbound.timer
        self.route = route
        self.gateway = gateway
        self.link = link
        switch link {
        case .stream(let transport), .webSocket(let transport, _): self.transport = transport
        }
        if self.context.destination == nil, route.configuration.proxyProtocol != nil {
            self.context.destination = self.transport?.localAddress
        }
        let upstream = route.upstream?.configuration
        let patience = upstream.map { $0.connectTimeout + $0.handshakeTimeout } ?? .zero
        self.plan = RetryPlan(
            upstream?.retry ?? RetryPolicy(), deadline: gateway.loop.now.advanced(by: patience + patience))
    }

    private var loop: Loop { self.gateway.loop }

    func start() {
        // Reading is paused: the client's bytes stay in the kernel. A reset is still detected.
        self.transport?.pauseReading()
        self.transport?.consumer = self
        self.gateway.replace(self)
        self.tryNext()
    }

    private func tryNext() {
        guard !self.isOver, let upstream = self.route.upstream else { return }
        let now = self.loop.now
        let (tried, ruledOut) = (self.triedEndpoints, self.permanentlyFailed)
        let choice = upstream.balancer.withLock { $0.choose(avoiding: tried, excluding: ruledOut, now: now) }
        guard let endpoint = choice else { return self.fail(.unreachable) }
        self.triedEndpoints.append(endpoint)
        self.currentEndpoint = endpoint
        self.context.upstream = upstream.configuration.endpoints[endpoint].url.description
        self.context.upstreamPlan = upstream
        let matched: MatchedRequest? = if case .webSocket(_, let matched) = self.link { matched } else { nil }
        self.attempt = UpstreamAttempt(
            upstream, endpoint: endpoint, route: self.route, matched: matched, context: self.context, on: self.loop
        ) { result in
            self.attempt = nil
            self.finished(endpoint, result)
        }
    }

    private func finished(_ endpoint: Int, _ result: Result<RelayEndpoint, UpstreamAttempt.Failure>) {
        let now = self.loop.now
        self.currentEndpoint = nil
        switch result {
        case .success(let upstream):
            let isBack = self.route.upstream?.balancer.withLock { $0.succeeded(endpoint) }
            if isBack == true { self.publish(.upstreamUp) }
            self.join(upstream, endpoint: endpoint)
        case .failure(let failure):
            let isDown = self.route.upstream?.balancer.withLock { balancer in
                defer { balancer.release(endpoint) }
                return failure.kind.countsAgainstEndpoint && balancer.failed(endpoint, now: now)
            }
            if isDown == true { self.publish(.upstreamDown, detail: failure.detail) }
            if failure.kind.isPermanent { self.permanentlyFailed.append(endpoint) }
            var generator = LoopRandomGenerator(self.loop)
            // A response meant for the client is no reason to try another endpoint.
            guard failure.kind.isRetryable, self.hasEndpointLeft,
                case .retry(let delay) = self.plan.attemptFailed(now: now, using: &generator)
            else { return self.fail(failure.kind, answer: failure.response, detail: failure.detail) }
            self.loop.arm(self.timer, after: delay, target: self)
        }
    }

    private var hasEndpointLeft: Bool {
        guard let count = self.route.upstream?.configuration.endpoints.count else { return false }
        return self.permanentlyFailed.count < count
    }

    /// Publishes an event about the endpoint tried last.
    private func publish(_ kind: GatewayEvent.Kind, detail: String? = nil) {
        var event = GatewayEvent(kind)
        event.route = self.context.route
        event.upstream = self.context.upstreamPlan?.configuration.name
        event.endpoint = self.context.upstream
        event.detail = detail
        self.gateway.shared.eventLog?.publish(event)
    }

    // MARK: Joining

    private func join(_ upstream: RelayEndpoint, endpoint: Int) {
        guard let transport = self.transport, !self.isOver else {
            self.route.upstream?.balancer.withLock { $0.release(endpoint) }
            return upstream.reset()
        }
        self.isOver = true
        self.transport = nil
        let downstream: RelayEndpoint
        switch self.link {
        case .stream: downstream = .stream(StreamTask(adopting: transport))
        case .webSocket(_, let matched):
            let acceptance = self.acceptance(matched, upstream: upstream)
            self.gateway.keepHandshake(self.identifier, matched.head, acceptance.response)
            downstream = .webSocket(self.accept(transport, acceptance))
        }
        let session = TunnelSession(
            self.context, ticket: self.ticket, route: self.route, endpoint: endpoint, gateway: self.gateway)
        session.join(downstream, upstream, timer: self.timer)
    }

    private func acceptance(_ matched: MatchedRequest, upstream: RelayEndpoint) -> HandshakeAcceptance {
        switch upstream {
        // The client gets the subprotocol that the upstream chose: negotiated once, end to end.
        case .webSocket(let task):
            matched.request.acceptance(subprotocol: task.subprotocol, deflate: self.route.deflate)
        case .stream:
            matched.request.acceptance(
                subprotocol: self.route.configuration.subprotocol(towardStream: matched.request.subprotocols),
                deflate: self.route.deflate)
        }
    }

    private func accept(_ transport: any Transport, _ acceptance: HandshakeAcceptance) -> WebSocketTask {
        WebSocketTask(
            accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
            deflate: self.route.negotiated(acceptance), options: self.route.webSocketOptions, startsPaused: true)
    }

    // MARK: Failing

    private func fail(_ failure: UpstreamFailure, answer: ResponseHead? = nil, detail: String? = nil) {
        let reason = TerminationReason(failure.party, .connecting, failure.terminationCause)
        self.refuse(failure.refusal(answer), reason, detail: detail)
    }

    private func refuse(_ refusal: HandshakeRefusal, _ reason: TerminationReason, detail: String? = nil) {
        guard !self.isOver else { return }
        self.isOver = true
        self.loop.disarm(self.timer)
        let transport = self.transport
        self.transport = nil
        transport?.consumer = nil
        switch self.link {
        case .stream: transport?.reset()
        case .webSocket:
            refusal.rendered().withRawSpan { transport?.write($0) }
            transport?.close(linger: .seconds(2))
        }
        self.finish(reason, detail: detail)
    }

    private func cancel(_ reason: TerminationReason) {
        guard !self.isOver else { return }
        self.isOver = true
        self.loop.disarm(self.timer)
        self.giveUpAttempt()
        self.transport?.consumer = nil
        self.transport?.reset()
        self.transport = nil
        self.finish(reason)
    }

    private func giveUpAttempt() {
        self.attempt?.cancel()
        self.attempt = nil
        guard let endpoint = self.currentEndpoint else { return }
        self.currentEndpoint = nil
        self.route.upstream?.balancer.withLock { $0.release(endpoint) }
    }

    private func finish(_ reason: TerminationReason, detail: String? = nil) {
        self.gateway.ended(self.context, reason, detail: detail, downstream: nil, upstream: nil)
        self.ticket.release()
    }
}

extension UpstreamSession: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int { 0 }
    func inputClosed() {}
    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        let cause = TerminationCause(arriving: end.transportFailure ?? .reset)
        self.cancel(TerminationReason(.downstream, .connecting, cause))
    }
}

extension UpstreamSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.tryNext()
    }
}

extension UpstreamSession: LiveConnection {
    var identifier: UInt64 { self.context.identifier }
    var routeName: String? { self.context.route }
    /// Nothing is read before both sides are open.
    var queuedBytes: Int { 0 }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        let kind: ConnectionKind = if case .stream = self.link { .stream } else { .webSocket }
        reports.append(self.context.report(kind, stage: .opening, at: now))
    }

    func drain() {
        guard !self.isOver else { return }
        self.giveUpAttempt()
        self.refuse(.goingAway, TerminationReason(.operator, .connecting, .drained))
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.cancel(TerminationReason(party, .connecting, cause))
    }
}

/// Retry schedule of one connection.
package struct RetryPlan: Sendable {
    package enum Step: Hashable, Sendable {
        /// Try again when this long has passed.
        case retry(after: Duration)
        case giveUp
    }

    private let policy: RetryPolicy
    private let deadline: MonotonicInstant
    private var attemptsLeft: Int
    private var delay: Duration

    /// - Parameter deadline: no attempt begins at or after it.
    package init(_ policy: RetryPolicy, deadline: MonotonicInstant) {
        self.policy = policy
        self.deadline = deadline
        self.attemptsLeft = policy.attempts
        self.delay = min(policy.initialDelay, policy.maximumDelay)
    }

    /// An attempt failed. The waits double from one to the next up to the policy's maximum, and each is shortened by
    /// chance by up to a half, so that clients that failed together do not come back together.
    package mutating func attemptFailed(now: MonotonicInstant, using generator: inout some RandomNumberGenerator)
        -> Step
    {
        guard self.attemptsLeft > 0 else { return .giveUp }
        self.attemptsLeft -= 1
        let full = self.delay.clampedNanoseconds
        let wait = Duration.nanoseconds(full - Int64.random(in: 0...max(full / 2, 0), using: &generator))
        let (double, overflow) = full.multipliedReportingOverflow(by: 2)
        self.delay = overflow ? self.policy.maximumDelay : min(.nanoseconds(double), self.policy.maximumDelay)
        return now.advanced(by: wait) < self.deadline ? .retry(after: wait) : .giveUp
    }
}
