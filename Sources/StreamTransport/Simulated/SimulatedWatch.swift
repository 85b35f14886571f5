/// One entry of a simulated epoll set.
final class SimulatedWatch {
    let socket: OpenSocket
    let descriptor: Descriptor
    let token: UInt64
    var interest: Interest
    /// Whether it stands in its system's list of what may be ready.
    var isQueued = false
    private(set) var isActive = true
    private weak var system: SimulatedSystem?

    init(
        _ socket: OpenSocket, _ descriptor: Descriptor, for interest: Interest, token: UInt64,
        by system: SimulatedSystem
    ) {
        self.socket = socket
        self.descriptor = descriptor
        self.token = token
        self.interest = interest
        self.system = system
    }

    /// What to report now: what was asked for, and hang-up in any case (epoll_ctl(2)).
    var ready: Interest {
        self.isActive ? self.socket.readiness.intersection(self.interest.union(.hangUp)) : []
    }

    func enqueue() {
        self.system?.enqueue(self)
    }

    func end() {
        self.isActive = false
        self.system?.forget(self)
    }
}
