import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection whose endpoint is the gateway itself: echo, or a chat room.
final class EndpointSession {
    let context: ConnectionContext
    private let relaySettings: RelaySettings
    private(set) var endpoint: RelayEndpoint?
    private weak var relay: (any EndpointRelay)?
    var termination: TerminationReason?

    init(_ context: ConnectionContext, route: RoutePlan) {
        self.context = context
        self.relaySettings = route.relaySettings
    }

    /// A byte stream whose endpoint takes over once the session is known.
    func begin(_ transport: any Transport, _ start: (StreamTask) -> Void) {
        let task = StreamTask(adopting: transport)
        self.begin(.stream(task))
        start(task)
    }

    /// - Parameter subprotocols: supported ones; `nil` are those of the route.
    func accept(
        _ transport: any Transport, _ matched: MatchedRequest, relay: any EndpointRelay, subprotocols: [String]? = nil
    ) {
        let route = matched.route
        let supported = subprotocols ?? route.configuration.subprotocols
        let acceptance = matched.acceptance(
            subprotocol: matched.subprotocols.first { supported.contains($0) })
        let task = WebSocketTask(
            accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
            deflate: route.negotiated(acceptance), options: route.webSocketOptions, relay: relay)
        self.context.gateway.keepHandshake(self.context.key, matched.head, acceptance.response)
        self.relay = relay
        self.begin(.webSocket(task))
        task.resumeReading()
        // It may pause reading until it is ready.
        relay.start(task)
    }

    private func begin(_ endpoint: RelayEndpoint) {
        self.endpoint = endpoint
        self.context.gateway.opened(self)
        self.armTimer()
        endpoint.task.observeEnd { self.ended(TerminationReason($0, of: .downstream, .relaying)) }
    }

    private func ended(_ reason: TerminationReason) {
        self.context.loop.disarm(self.context.timer)
        self.context.gateway.ended(self.context, self.termination ?? reason, downstream: self.endpoint?.task.record)
        self.endpoint = nil
    }

    // MARK: Deadlines

    private var lastActivity: MonotonicInstant {
        self.endpoint?.task.record.lastActivityAt ?? self.context.createdAt
    }

    private func armTimer() {
        let deadline = self.relaySettings.deadline(
            openedAt: self.context.createdAt, lastActivity: self.lastActivity,
            tokenTimeLeft: self.context.tokenTimeLeft, now: self.context.loop.now)
        guard let deadline else { return }
        self.context.loop.arm(self.context.timer, at: deadline, target: self)
    }

    private func end(_ cause: TerminationCause, _ signal: CloseSignal) {
        self.recordTermination(cause, by: .gateway)
        self.close(signal) { $0.reset() }
    }
}

extension EndpointSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let passed = self.relaySettings.passedTimeout(
            openedAt: self.context.createdAt, lastActivity: self.lastActivity,
            tokenTimeLeft: self.context.tokenTimeLeft, now: self.context.loop.now)
        switch passed {
        case .maximumAge: self.end(.timeout(.maximumAge), .maximumAge)
        case .idle: self.end(.timeout(.idle), .idleTimeout)
        case .tokenExpiry: self.end(.tokenExpired, .tokenExpired)
        case nil: self.armTimer()
        }
    }
}

extension EndpointSession: TaskSession {
    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        // Mutated in place: a report is large.
        reports.append(self.context.report(self.kind, stage: .open, at: now))
        let index = reports.endIndex - 1
        if let endpoint = self.endpoint { reports[index].read(endpoint) }
        reports[index].sendStalled = reports[index].receiveStalled
    }

    func stop(_ signal: CloseSignal) {
        self.recordTermination(.stopped)
        self.close(signal) { $0.close(linger: Tunnel.closingTimeout) }
    }

    func drain() {
        self.recordTermination(.drained)
        if self.relay?.drain() == true { return }
        self.close(.goingAway) { $0.finishOutput() }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.recordTermination(cause, by: party)
        self.endpoint?.task.reset()
    }
}

/// Relay of an endpoint inside the gateway.
protocol EndpointRelay: WebSocketRelay {
    func start(_ task: WebSocketTask)
    /// Closes the WebSocket because the gateway shuts down, if its protocol has another code for that than 1001.
    /// - Returns: whether it did.
    func drain() -> Bool
}

extension EndpointRelay {
    func drain() -> Bool { false }
}

extension WebSocketEcho: EndpointRelay {}
extension PlainWebSocketMember: EndpointRelay {}
