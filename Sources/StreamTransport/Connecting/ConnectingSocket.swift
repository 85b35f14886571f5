/// One socket of a connect attempt, until the system has decided.
final class ConnectingSocket {
    let address: SocketAddress
    private let loop: Loop
    private let descriptor: Descriptor
    private var attempt: ConnectAttempt?
    private var token: UInt64 = 0

    /// - Throws: when the loop cannot watch the descriptor, which is then closed.
    init(_ descriptor: Descriptor, to address: SocketAddress, attempt: ConnectAttempt) throws(SystemError) {
        self.address = address
        self.loop = attempt.loop
        self.descriptor = descriptor
        self.attempt = attempt
        switch self.loop.watch(descriptor, for: .writable, self) {
        case .success(let token): self.token = token
        case .failure(let error):
            self.loop.system.close(descriptor)
            throw error
        }
    }

    func surrender() -> Descriptor {
        self.attempt = nil
        self.loop.unwatch(self.descriptor, token: self.token)
        return self.descriptor
    }

    /// With a reset: if the connection stands already on the other side, its end must not look like a peer that had
    /// nothing to say.
    func abandon() {
        self.loop.system.reset(self.surrender())
    }
}

extension ConnectingSocket: Watchable {
    func ready(_ events: Interest) {
        guard !events.isDisjoint(with: [.writable, .hangUp]) else { return }
        self.attempt?.decided(self, error: self.loop.system.connectError(self.descriptor))
    }
}
