import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection whose endpoint is the gateway itself: echo, or a chat room.
final class EndpointSession {
    let context: ConnectionContext
    private let ticket: AdmissionPermit
    private let route: RoutePlan
    private let gateway: LoopGateway
    private var stream: StreamTask?
    private var webSocket: WebSocketTask?
    /// Set when the gateway initiated the end.
    private var termination: TerminationReason?
    private let timer: LoopTimer

    init(_ inbound: InboundConnection, route: RoutePlan, gateway: LoopGateway) {
        self.context = inbound.context
        self.ticket = inbound.ticket
        self.timer = inbound.timer
        self.route = route
        self.gateway = gateway
    }

    /// A byte stream whose endpoint takes over once the session is known.
    func begin(_ transport: any Transport, _ start: (StreamTask) -> Void) {
        let task = StreamTask(adopting: transport)
        self.stream = task
        self.begun()
        task.whenEnded { failure in
            self.over(failure.map { TerminationReason(.downstream, .relaying, TerminationCause($0)) })
        }
        start(task)
    }

    func accept(_ transport: any Transport, _ matched: MatchedRequest, relay: any EndpointRelay) {
        let acceptance = matched.request.acceptance(
            subprotocols: self.route.configuration.subprotocols, deflate: self.route.deflate)
        let task = WebSocketTask(
            accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
            deflate: self.route.negotiated(acceptance), options: self.route.webSocketOptions, relay: relay)
        self.webSocket = task
        self.gateway.keepHandshake(self.identifier, matched.head, acceptance.response)
        self.begun()
        task.whenEnded { end in self.over(TerminationReason(endpoint: end)) }
        relay.start(task)
        task.resumeReading()
    }

    private func begun() {
        self.gateway.opened(self, self.context, isWebSocket: self.webSocket != nil)
        self.armLife()
    }

    private func over(_ reason: TerminationReason?) {
        self.gateway.loop.disarm(self.timer)
        let clean = TerminationReason(.downstream, .relaying, .clean(closeCode: nil))
        self.gateway.ended(self.context, self.termination ?? reason ?? clean, downstream: self.record, upstream: nil)
        self.ticket.release()
        self.stream = nil
        self.webSocket = nil
    }

    private var record: TaskRecord? {
        self.stream?.record ?? self.webSocket?.record
    }

    // MARK: Deadlines

    private func armLife() {
        let settings = self.route.configuration.tunnel
        let active = self.record?.lastActivityAt ?? self.context.acceptedAt
        var next: MonotonicInstant?
        if let idle = settings.idleTimeout { next = active.advanced(by: idle) }
        if let age = settings.maximumAge {
            let end = self.context.acceptedAt.advanced(by: age)
            next = next.map { min($0, end) } ?? end
        }
        guard let next else { return }
        self.gateway.loop.arm(self.timer, at: next, target: self)
    }

    private func end(_ reason: TerminationReason, _ code: CloseCode, _ text: String) {
        self.termination = self.termination ?? reason
        self.webSocket?.close(code, reason: Array(text.utf8))
        self.stream?.reset()
    }
}

extension EndpointSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let settings = self.route.configuration.tunnel
        let now = self.gateway.loop.now
        let active = self.record?.lastActivityAt ?? self.context.acceptedAt
        if let age = settings.maximumAge, self.context.acceptedAt.advanced(by: age) <= now {
            self.end(TerminationReason(.gateway, .relaying, .timeout(.maximumAge)), .goingAway, "maximum age")
        } else if let idle = settings.idleTimeout, active.advanced(by: idle) <= now {
            self.end(TerminationReason(.gateway, .relaying, .timeout(.idle)), .goingAway, "idle timeout")
        } else {
            self.armLife()
        }
    }
}

extension EndpointSession: LiveConnection {
    var identifier: UInt64 { self.context.identifier }
    var routeName: String? { self.context.route }

    func link(_ side: TunnelSide) -> RelayEndpoint? {
        guard side == .downstream else { return nil }
        return self.stream.map { .stream($0) } ?? self.webSocket.map { .webSocket($0) }
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        let kind: ConnectionKind = self.stream == nil ? .webSocket : .stream
        // Mutated in place: a report is large.
        reports.append(self.context.report(kind, stage: .open, at: now))
        let place = reports.endIndex - 1
        if let link = self.link(.downstream) { reports[place].read(link) }
        reports[place].sendStalled = reports[place].receiveStalled
    }

    func stop(_ signal: CloseSignal) {
        self.termination = self.termination ?? TerminationReason(.operator, .relaying, .stopped)
        self.webSocket?.close(signal.closeCode, reason: signal.reason)
        self.stream?.close(linger: Tunnel.closingTimeout)
    }

    var queuedBytes: Int {
        self.stream?.queuedBytes ?? self.webSocket?.queuedBytes ?? 0
    }

    func drain() {
        self.termination = self.termination ?? TerminationReason(.operator, .relaying, .drained)
        self.webSocket?.close(.goingAway, reason: [])
        self.stream?.finishOutput()
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.termination = self.termination ?? TerminationReason(party, .relaying, cause)
        self.webSocket?.reset()
        self.stream?.reset()
    }
}

/// Relay of an endpoint inside the gateway.
protocol EndpointRelay: WebSocketRelay {
    func start(_ task: WebSocketTask)
}

extension WebSocketEcho: EndpointRelay {}
extension ChatMember: EndpointRelay {}
