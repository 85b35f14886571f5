import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// An accepted connection while its upstream is being connected: tries endpoints, and joins the two sides; or sends the
/// client an error response.
final class UpstreamSession {
    let context: ConnectionContext
    private let request: UpstreamRequest
    /// The accepted connection; `nil` once it has another owner, or has ended.
    private var transport: (any Transport)?
    private var attempts: UpstreamAttempts
    /// The task of the current attempt.
    private var attempt: RelayEndpoint?
    private var attemptBegan: MonotonicInstant

    /// - Parameter matched: the client's opening request; `nil` for a byte stream.
    init(
        _ context: ConnectionContext, _ transport: any Transport, _ matched: MatchedRequest?, route: RoutePlan,
        upstream: UpstreamPlan
    ) {
        self.context = context
        self.attemptBegan = context.loop.now
        self.transport = transport
        if context.destination == nil, route.configuration.proxyProtocol != nil {
            context.destination = transport.localAddress
        }
        self.request = UpstreamRequest(
            route: route, upstream: upstream, matched: matched, client: context.client,
            destination: context.destination)
        let configuration = upstream.configuration
        let timeout = configuration.connectTimeout + configuration.handshakeTimeout
        self.attempts = UpstreamAttempts(
            endpointCount: configuration.endpoints.count,
            plan: RetryPlan(configuration.retry, deadline: context.loop.now.advanced(by: timeout + timeout)))
    }

    private var upstream: UpstreamPlan { self.request.upstream }
    private var loop: Loop { self.context.loop }

    func start() {
        // Reading is paused: the client's bytes stay in the kernel. A reset is still detected.
        self.transport?.pauseReading()
        self.transport?.consumer = self
        self.context.gateway.replace(self)
        self.tryNext()
    }

    private func tryNext() {
        let (upstream, now) = (self.upstream, self.loop.now)
        let action = self.attempts.attemptDue { tried, excluded in
            upstream.choose(avoiding: tried, excluding: excluded, now: now)
        }
        switch action {
        case .connect(let endpoint): self.connect(endpoint)
        case .giveUp: self.refuse(.unreachable)
        case .ignore: break
        }
    }

    private func connect(_ endpoint: Int) {
        self.context.endpoint = Int32(clamping: endpoint)
        let attempt = self.request.endpoint(endpoint, on: self.loop)
        self.attempt = attempt
        self.attemptBegan = self.loop.now
        attempt.task.open {
            self.connected(attempt)
        } ended: {
            self.attemptFailed(
                UpstreamFailure($0.failure, of: attempt), attempt.response, detail: self.detail($0.failure))
        }
    }

    private func detail(_ failure: TaskFailure?) -> String? {
        guard case .cannotConnect(let error)? = failure, error.kind == .proxy,
            let proxy = self.upstream.configuration.proxy
        else { return failure?.description }
        return "\(proxy.url): \(error)"
    }

    private func attemptFailed(_ failure: UpstreamFailure, _ response: ResponseHead?, detail: String?) {
        self.attempt = nil
        let now = self.loop.now
        var generator = LoopRandomGenerator(self.loop)
        switch self.attempts.attemptFailed(failure, now: now, using: &generator) {
        case .retry(let endpoint, let delay):
            self.recordFailure(failure, of: endpoint, detail: detail)
            self.loop.arm(self.context.timer, after: delay, target: self)
        case .giveUp(let endpoint):
            self.recordFailure(failure, of: endpoint, detail: detail)
            self.refuse(failure, response: response, detail: detail)
        case .ignore:
            break
        }
    }

    private func recordFailure(_ failure: UpstreamFailure, of endpoint: Int, detail: String?) {
        let now = self.loop.now
        let isDown = failure.countsAgainstEndpoint && self.upstream.failed(endpoint, now: now)
        self.upstream.release(endpoint)
        if isDown { self.publish(.upstreamDown, detail: detail) }
    }

    /// Publishes an event about the endpoint tried last.
    private func publish(_ kind: GatewayEvent.Kind, detail: String? = nil) {
        var event = GatewayEvent(kind)
        event.route = self.context.routeName
        event.upstream = self.context.upstreamName
        event.endpoint = self.context.endpointURL
        event.detail = detail
        self.context.gateway.shared.eventLog?.publish(event)
    }

    // MARK: Joining

    private func connected(_ upstream: RelayEndpoint) {
        upstream.task.forgetEndObservers()
        self.attempt = nil
        guard case .join(let endpoint) = self.attempts.connected(), let transport = self.transport else {
            return upstream.task.reset()
        }
        self.transport = nil
        let wasEjected = self.upstream.connected(endpoint, after: self.attemptBegan.duration(to: self.loop.now))
        if wasEjected { self.publish(.upstreamUp) }
        let tunnel = Tunnel(
            self.context, downstream: self.accept(transport, upstream: upstream), upstream: upstream,
            relaySettings: self.request.route.relaySettings)
        self.context.gateway.opened(tunnel)
        tunnel.start()
    }

    private func accept(_ transport: any Transport, upstream: RelayEndpoint) -> RelayEndpoint {
        guard let matched = self.request.matched else { return .stream(StreamTask(adopting: transport)) }
        let route = self.request.route
        let acceptance =
            switch upstream {
            // The client gets the subprotocol that the upstream chose: negotiated once, end to end.
            case .webSocket(let task):
                matched.acceptance(subprotocol: task.subprotocol)
            case .stream:
                matched.acceptance(
                    subprotocol: route.configuration.subprotocol(towardStream: matched.subprotocols))
            }
        self.context.gateway.keepHandshake(self.context.key, matched.head, acceptance.response)
        return .webSocket(
            WebSocketTask(
                accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
                deflate: route.negotiated(acceptance), options: route.webSocketOptions, startsPaused: true))
    }

    // MARK: Ending

    private func refuse(_ failure: UpstreamFailure, response: ResponseHead? = nil, detail: String? = nil) {
        self.end(TerminationReason(failure), detail: detail, refusal: failure.refusal(response))
    }

    /// - Returns: whether it had not ended before.
    private func endAttempts() -> Bool {
        switch self.attempts.ended() {
        case .cancelAttempt(let endpoint):
            self.attempt?.task.forgetEndObservers()
            self.attempt.take()?.task.cancelOnLoop()
            self.upstream.release(endpoint)
            return true
        case .stopWaiting:
            self.loop.disarm(self.context.timer)
            return true
        case .ignore:
            return false
        }
    }

    /// - Parameter refusal: response to a WebSocket client; a byte stream, or a client without one, is reset.
    private func end(_ reason: TerminationReason, detail: String? = nil, refusal: HandshakeRefusal? = nil) {
        let transport = self.transport.take()
        transport?.consumer = nil
        if let refusal, self.request.matched != nil {
            refusal.rendered(isHead: false, date: self.loop.responseDate).withRawSpan { transport?.write($0) }
            transport?.close(linger: .seconds(2))
        } else {
            transport?.reset()
        }
        self.context.gateway.ended(self.context, reason, detail: detail)
    }
}

extension UpstreamSession: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int { 0 }
    func inputClosed() {}
    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        self.abandon(.downstream, TerminationCause(arriving: end.transportFailure ?? .reset))
    }
}

extension UpstreamSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.tryNext()
    }
}

extension UpstreamSession: LiveConnection {
    /// Nothing is read before both sides are open.
    var queuedBytes: Int { 0 }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        let kind: ConnectionKind = self.request.matched == nil ? .stream : .webSocket
        reports.append(self.context.report(kind, stage: .opening, at: now))
    }

    func drain() {
        guard self.endAttempts() else { return }
        self.end(TerminationReason(.operator, .connecting, .drained), refusal: .goingAway)
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        guard self.endAttempts() else { return }
        self.end(TerminationReason(party, .connecting, cause))
    }
}
