import SessionTasks
import StreamTransport
import Synchronization

/// A running tunnel in the gateway: its identity, its balancer slot, its log lines.
final class TunnelSession {
    let context: ConnectionContext
    private let ticket: AdmissionPermit
    private let route: RoutePlan
    private let endpoint: Int
    private let gateway: LoopGateway
    private var tunnel: Tunnel?

    init(_ context: ConnectionContext, ticket: AdmissionPermit, route: RoutePlan, endpoint: Int, gateway: LoopGateway) {
        self.context = context
        self.ticket = ticket
        self.route = route
        self.endpoint = endpoint
        self.gateway = gateway
    }

    /// - Parameter timer: the connection's timer, reused.
    func join(_ downstream: RelayEndpoint, _ upstream: RelayEndpoint, timer: LoopTimer) {
        let tunnel = Tunnel(
            downstream: downstream, upstream: upstream, relaySettings: self.route.relaySettings, on: self.gateway.loop,
            timer: timer
        ) { reason in
            self.over(reason, downstream: downstream.record, upstream: upstream.record)
        }
        self.tunnel = tunnel
        self.gateway.opened(self, self.context, isWebSocket: downstream.kind == .webSocket)
        tunnel.start()
    }

    private func over(_ reason: TerminationReason, downstream: TaskRecord, upstream: TaskRecord) {
        self.route.upstream?.balancer.withLock { $0.release(self.endpoint) }
        self.gateway.ended(self.context, reason, downstream: downstream, upstream: upstream)
        self.tunnel = nil
        self.ticket.release()
    }
}

extension TunnelSession: LiveConnection {
    var identifier: UInt64 { self.context.identifier }
    var routeName: String? { self.context.route }

    var queuedBytes: Int {
        guard let tunnel = self.tunnel else { return 0 }
        return tunnel.downstream.link.queuedBytes + tunnel.upstream.link.queuedBytes
    }

    func drain() {
        self.tunnel?.drain()
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.tunnel?.abandon(party, cause)
    }

    func stop(_ signal: CloseSignal) {
        self.tunnel?.stop(signal)
    }

    func link(_ side: TunnelSide) -> RelayEndpoint? {
        switch side {
        case .downstream: self.tunnel?.downstream.link
        case .upstream: self.tunnel?.upstream.link
        }
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        guard let downstream = self.link(.downstream), let upstream = self.link(.upstream) else { return }
        var first = self.context.report(downstream.kind.connectionKind, stage: .open, at: now)
        first.partner = ConnectionKey(self.identifier, .upstream)
        first.read(downstream)
        var second = ConnectionReport(
            ConnectionKey(self.identifier, .upstream), upstream.kind.connectionKind, isAccepted: false, stage: .open,
            createdAt: self.context.acceptedAt, takenAt: now)
        second.listener = self.context.listener
        second.route = self.context.route
        second.upstream = first.upstream
        second.endpoint = first.endpoint
        second.partner = ConnectionKey(self.identifier)
        second.read(upstream)
        // Reading of this side is paused because the other side's output is full: that side is the stalled one.
        first.sendStalled = second.receiveStalled
        second.sendStalled = first.receiveStalled
        reports.append(first)
        reports.append(second)
    }
}

extension SideKind {
    var connectionKind: ConnectionKind {
        switch self {
        case .stream: .stream
        case .webSocket: .webSocket
        }
    }
}
