import GatewayConfiguration
import StreamTransport

/// One listener on one loop.
final class LoopListener: SocketListenerOwner {
    var plan: ListenerPlan
    var socket: SocketListener?
    /// Of the Unix socket that this process has bound; `nil` for another.
    var file: SocketFile?
    private let gateway: LoopGateway
    /// Least time between two log lines about paused accepting: a gateway at its limit pauses and resumes all the time.
    private static let logInterval = Duration.seconds(10)
    private var nextLogTime = MonotonicInstant(nanoseconds: .min)

    init(_ plan: ListenerPlan, gateway: LoopGateway) {
        self.plan = plan
        self.gateway = gateway
    }

    func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        self.gateway.accepted(socket, by: self.plan)
    }

    func acceptingPaused(by listener: SocketListener, _ error: SystemError) {
        self.gateway.shared.counters.acceptingPaused()
        guard self.gateway.loop.now >= self.nextLogTime else { return }
        self.nextLogTime = self.gateway.loop.now.advanced(by: Self.logInterval)
        self.gateway.shared.log.acceptingPaused(self.plan.configuration.name, error)
    }

    func acceptingResumed(by listener: SocketListener) {}
}
