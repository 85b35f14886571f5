import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection whose endpoint is the gateway itself: echo, or a chat room.
final class EndpointSession {
    let context: ConnectionContext
    private let relaySettings: RelaySettings
    /// `nil` once it has ended.
    private var task: RelayEndpoint?
    /// Set when the gateway initiated the end.
    private var termination: TerminationReason?

    init(_ context: ConnectionContext, route: RoutePlan) {
        self.context = context
        self.relaySettings = route.relaySettings
    }

    private var settings: TunnelSettings { self.relaySettings.settings }

    /// A byte stream whose endpoint takes over once the session is known.
    func begin(_ transport: any Transport, _ start: (StreamTask) -> Void) {
        let task = StreamTask(adopting: transport)
        self.begin(.stream(task))
        start(task)
    }

    func accept(_ transport: any Transport, _ matched: MatchedRequest, relay: any EndpointRelay) {
        let route = matched.route
        let acceptance = matched.request.acceptance(
            subprotocols: route.configuration.subprotocols, deflate: route.deflate)
        let task = WebSocketTask(
            accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
            deflate: route.negotiated(acceptance), options: route.webSocketOptions, relay: relay)
        self.context.gateway.keepHandshake(self.context.key, matched.head, acceptance.response)
        self.begin(.webSocket(task))
        relay.start(task)
        task.resumeReading()
    }

    private func begin(_ task: RelayEndpoint) {
        self.task = task
        self.context.gateway.opened(self)
        self.armLife()
        task.whenEnded { self.ended(TerminationReason($0, of: .downstream, .relaying)) }
    }

    private func ended(_ reason: TerminationReason) {
        self.context.loop.disarm(self.context.timer)
        self.context.gateway.ended(self.context, self.termination ?? reason, downstream: self.task?.record)
        self.task = nil
    }

    // MARK: Deadlines

    private var lastActivity: MonotonicInstant { self.task?.record.lastActivityAt ?? self.context.createdAt }

    private func armLife() {
        let idle = self.settings.idleTimeout.map { self.lastActivity.advanced(by: $0) }
        let age = self.settings.maximumAge.map { self.context.createdAt.advanced(by: $0) }
        guard let next = [idle, age].compactMap(\.self).min() else { return }
        self.context.loop.arm(self.context.timer, at: next, target: self)
    }

    private func end(_ timeout: TerminationTimeout, _ text: String) {
        self.termination = self.termination ?? TerminationReason(.gateway, .relaying, .timeout(timeout))
        switch self.task {
        case .webSocket(let task): task.close(.goingAway, reason: Array(text.utf8))
        case .stream(let task): task.reset()
        case nil: break
        }
    }
}

extension EndpointSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let now = self.context.loop.now
        if let age = self.settings.maximumAge, self.context.createdAt.advanced(by: age) <= now {
            self.end(.maximumAge, "maximum age")
        } else if let idle = self.settings.idleTimeout, self.lastActivity.advanced(by: idle) <= now {
            self.end(.idle, "idle timeout")
        } else {
            self.armLife()
        }
    }
}

extension EndpointSession: LiveConnection {
    func link(_ side: TunnelSide) -> RelayEndpoint? {
        side == .downstream ? self.task : nil
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        let kind: ConnectionKind = self.task?.webSocket == nil ? .stream : .webSocket
        // Mutated in place: a report is large.
        reports.append(self.context.report(kind, stage: .open, at: now))
        let index = reports.endIndex - 1
        if let task = self.task { reports[index].read(task) }
        reports[index].sendStalled = reports[index].receiveStalled
    }

    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }

    func stop(_ signal: CloseSignal) {
        self.begins(.stopped)
        switch self.task {
        case .webSocket(let task): task.close(signal.closeCode, reason: signal.reason)
        case .stream(let task): task.close(linger: Tunnel.closingTimeout)
        case nil: break
        }
    }

    func drain() {
        self.begins(.drained)
        switch self.task {
        case .webSocket(let task): task.close(.goingAway, reason: [])
        case .stream(let task): task.finishOutput()
        case nil: break
        }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.begins(cause, by: party)
        self.task?.reset()
    }

    private func begins(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        self.termination = self.termination ?? TerminationReason(party, .relaying, cause)
    }
}

/// Relay of an endpoint inside the gateway.
protocol EndpointRelay: WebSocketRelay {
    func start(_ task: WebSocketTask)
}

extension WebSocketEcho: EndpointRelay {}
extension ChatMember: EndpointRelay {}
