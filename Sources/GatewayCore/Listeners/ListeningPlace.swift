import StreamTransport

/// One listener on one loop.
final class ListeningPlace: SocketListenerOwner {
    var plan: ListenerPlan
    var socket: SocketListener?
    private let gateway: LoopGateway

    init(_ plan: ListenerPlan, gateway: LoopGateway) {
        self.plan = plan
        self.gateway = gateway
    }

    func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        self.gateway.accepted(socket, by: self.plan)
    }

    func acceptingPaused(by listener: SocketListener, _ error: SystemError) {
        self.gateway.shared.counters.acceptingPaused()
        self.gateway.shared.log.acceptingPaused(self.plan.configuration.name, error)
    }

    func acceptingResumed(by listener: SocketListener) {}
}
