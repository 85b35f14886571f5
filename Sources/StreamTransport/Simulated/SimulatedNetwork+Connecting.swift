/// How connections come about.
extension SimulatedNetwork {
    /// Repetitions of a connection request that nobody answers, after 1, 2, 4… s (`tcp_syn_retries`).
    private static let connectRetries = 6

    func listen(_ address: SocketAddress, options: ListenOptions) throws(SystemError) -> SimulatedListener {
        let bound = try self.bind(address)
        let listener = SimulatedListener(bound, options: options, on: self)
        try self.listeners.add(listener)
        self.note(.listening, listener.number, Int(bound.port ?? 0))
        return listener
    }

    private func bind(_ address: SocketAddress) throws(SystemError) -> SocketAddress {
        if case .unix(let path) = address, path.isEmpty || path.utf8.count > 107 { throw .nameTooLong }
        guard address.port == 0 else { return address }
        guard let port = self.nextListenPort() else { throw .addressInUse }
        return address.with(port: port)
    }

    func connect(_ address: SocketAddress, from source: UInt32) throws(SystemError) -> SimulatedStream {
        if case .unix(let path) = address { return try self.connectUnix(path) }
        let script = self.connectScripts[address] ?? self.drawConnectFault()
        if script == .noRoute { throw .networkUnreachable }
        if script == .noLocalPort { throw .addressNotAvailable }
        let remote = address.reachable
        let client = SimulatedStream(
            .tcp, local: remote.source(source).with(port: self.nextClientPort()), remote: remote, life: .connecting,
            on: self, latency: self.chance.duration(in: self.faults.latency))
        self.note(.connecting, client.number, Int(remote.port ?? 0))
        self.begin(client, script)
        return client
    }

    private func drawConnectFault() -> ConnectScript? {
        if self.chance.happens(self.faults.refusedConnect) { return .refused }
        if self.chance.happens(self.faults.hangingConnect) { return .hangs }
        if self.chance.happens(self.faults.unreachableConnect) { return .unreachable }
        return nil
    }

    private func begin(_ client: SimulatedStream, _ script: ConnectScript?) {
        let oneWay = client.latency
        switch script {
        case .refused: self.plan(after: oneWay * 2) { client.refuseConnect(.refused) }
        case .unreachable: self.plan(after: oneWay * 2) { client.refuseConnect(.hostUnreachable) }
        case .hangs: self.hang(client)
        case .delayed(let delay): self.plan(after: oneWay + delay) { self.requestArrived(client, retry: 0) }
        case .noRoute, .noLocalPort, nil: self.plan(after: oneWay) { self.requestArrived(client, retry: 0) }
        }
    }

    private func hang(_ client: SimulatedStream) {
        self.note(.connectHangs, client.number, 0)
        self.planPatiently(at: self.now.advanced(by: .seconds(127))) { client.refuseConnect(.timedOut) }
    }

    /// A connection request reached the address: somebody listens, or a reset goes back, or the queue is full and
    /// nothing does.
    private func requestArrived(_ client: SimulatedStream, retry: Int) {
        guard client.life == .connecting else { return }
        let candidates = self.listeners.listeners(for: client.remoteAddress)
        let chosen = candidates.count > 1 ? candidates.randomElement(using: &self.chance) : candidates.first
        guard let listener = chosen else {
            return self.plan(after: client.latency) { client.refuseConnect(.refused) }
        }
        guard !listener.isFull else {
            self.note(.queueFull, listener.number, retry)
            guard retry < Self.connectRetries else { return client.refuseConnect(.timedOut) }
            return self.planPatiently(at: self.now.advanced(by: .seconds(1 << retry))) {
                self.requestArrived(client, retry: retry + 1)
            }
        }
        listener.promise()
        self.plan(after: client.latency) { self.answerArrived(client, listener) }
    }

    /// The listener's answer is back: the client is connected, and its confirmation puts the other end into the queue.
    private func answerArrived(_ client: SimulatedStream, _ listener: SimulatedListener) {
        guard client.life == .connecting else { return listener.withdrawPromise() }
        let server = SimulatedStream(
            .tcp, local: client.remoteAddress, remote: client.localAddress, life: .established, on: self,
            latency: client.latency)
        client.join(server)
        client.life = .established
        self.drawReset(client, server)
        self.note(.established, client.number, server.number)
        client.watchers.notify()
        let confirmed = self.now.advanced(by: client.latency)
        client.lastArrival = confirmed
        self.plan(at: confirmed) {
            listener.withdrawPromise()
            guard !listener.isClosed else { return server.reset() }
            listener.enqueue(server)
        }
    }

    private func drawReset(_ client: SimulatedStream, _ server: SimulatedStream) {
        guard self.chance.happens(self.faults.reset) else { return }
        let budget = self.chance.count(in: self.faults.resetAfter)
        let end = Bool.random(using: &self.chance) ? client : server
        end.bytesUntilReset = budget
    }

    /// Unix sockets connect at once or not at all.
    private func connectUnix(_ path: String) throws(SystemError) -> SimulatedStream {
        let listener = try self.listeners.unixListener(path)
        guard !listener.isFull else { throw .wouldBlock }
        let client = SimulatedStream(
            .unix, local: .unix(path: ""), remote: listener.address, life: .established, on: self, latency: .zero)
        let server = SimulatedStream(
            .unix, local: listener.address, remote: .unix(path: ""), life: .established, on: self, latency: .zero)
        client.join(server)
        self.note(.established, client.number, server.number)
        listener.enqueue(server)
        return client
    }
}

extension SimulatedStream {
    fileprivate func join(_ other: SimulatedStream) {
        self.peer = other
        other.peer = self
    }

    fileprivate func refuseConnect(_ error: SystemError) {
        guard self.life == .connecting else { return }
        self.network.note(error == .refused ? .connectRefused : .connectFailed, self.number, Int(error.number))
        self.fail(error)
    }
}
