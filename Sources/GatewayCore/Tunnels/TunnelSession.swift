import SessionTasks
import StreamTransport
import Synchronization

/// A running tunnel as the gateway keeps it: its name, its place in the balancer, its log lines.
final class TunnelSession {
    let passport: ConnectionPassport
    private let ticket: AdmissionTicket
    private let route: RoutePlan
    private let endpoint: Int
    private let gateway: LoopGateway
    private var tunnel: Tunnel?

    init(_ passport: ConnectionPassport, ticket: AdmissionTicket, route: RoutePlan, endpoint: Int, gateway: LoopGateway)
    {
        self.passport = passport
        self.ticket = ticket
        self.route = route
        self.endpoint = endpoint
        self.gateway = gateway
    }

    func join(_ downstream: TunnelLink, _ upstream: TunnelLink) {
        let tunnel = Tunnel(
            downstream: downstream, upstream: upstream, route: self.route, on: self.gateway.loop
        ) { reason in
            self.over(reason, downstream: downstream.record, upstream: upstream.record)
        }
        self.tunnel = tunnel
        self.gateway.shared.log.opened(self.passport)
        self.gateway.replace(self)
        tunnel.start()
    }

    private func over(_ reason: TerminationReason, downstream: TaskRecord, upstream: TaskRecord) {
        self.tunnel = nil
        self.route.upstream?.balancer.withLock { $0.release(self.endpoint) }
        self.gateway.ended(self.passport, reason, downstream: downstream, upstream: upstream)
        self.ticket.release()
    }
}

extension TunnelSession: LiveConnection {
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
}
