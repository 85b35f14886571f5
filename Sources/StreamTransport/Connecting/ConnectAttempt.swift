/// Opens one connection: looks the name up, tries its addresses one after the other without waiting long for any (RFC
/// 8305), and gives the first that answers. The others are closed.
package final class ConnectAttempt {
    /// How long one address is given before the next is tried beside it (RFC 8305 §5).
    package static let attemptDelay = Duration.milliseconds(250)
    /// Addresses tried at most; the rest of a longer list is passed over.
    package static let addressLimit = 16

    package typealias Completion = (Result<SocketConnection, TransportFailure>) -> Void
    /// Whether an address may be connected to.
    package typealias Permission = @Sendable (SocketAddress) -> Bool

    let loop: Loop
    private let options: SocketOptions
    private let permits: Permission?
    private var completion: Completion?
    private var ticket: ResolutionTicket?
    private var waiting: [SocketAddress] = []
    private var racing: [ConnectingSocket] = []
    private var lastFailure: TransportFailure?
    private let delayTimer = LoopTimer()
    private let deadlineTimer = LoopTimer()
    /// When the name was known, and when the connection stood: for metrics.
    package private(set) var resolvedAt: MonotonicInstant?

    /// Begins. `completion` is called once, in a later turn, unless the attempt is cancelled. The connection it gets is
    /// paused: no byte is read before its owner is in place and resumes it.
    /// - Parameters:
    ///   - timeout: for all steps together; ends in `.deadlinePassed`.
    ///   - permits: asked of each address before it is tried; without one that may be, it ends in `.notPermitted`.
    package init(
        _ target: ConnectTarget, on loop: Loop, options: SocketOptions = SocketOptions(), timeout: Duration,
        permits: Permission? = nil, completion: @escaping Completion
    ) {
        self.loop = loop
        self.options = options
        self.permits = permits
        self.completion = completion
        loop.arm(self.deadlineTimer, after: timeout, target: self)
        switch target {
        case .address(let address): self.waiting = [address]
        case .host(let host, let port):
            if let literal = SocketAddress(literal: host, port: port) {
                self.waiting = [literal]
            } else {
                self.resolve(host, port: port)
                return
            }
        }
        loop.inNextTurn(self)
    }

    private func resolve(_ host: String, port: UInt16) {
        guard self.loop.system.hasDescriptors else {
            self.lastFailure = .ownResources(.processDescriptorsExhausted)
            return self.loop.inNextTurn(self)
        }
        self.ticket = self.loop.system.resolve(host, port: port) { result in
            self.ticket = nil
            switch result {
            case .success(let addresses):
                self.resolvedAt = self.loop.system.now()
                self.waiting = Array(AddressOrder.interleaved(addresses).prefix(Self.addressLimit))
                // Answers come while the loop still waits, when its own time is that of the turn before.
                self.loop.inNextTurn(self)
            case .failure(let failure):
                self.finish(.failure(.nameResolution(failure)))
            }
        }
    }

    /// Gives the attempt up; the completion is not called.
    package func cancel() {
        self.completion = nil
        self.stop()
    }

    private func tryNext() {
        while self.completion != nil {
            guard !self.waiting.isEmpty else { return self.failIfAllFailed() }
            let address = self.waiting.removeFirst()
            guard self.permits?(address) ?? true else {
                self.lastFailure = self.lastFailure ?? .notPermitted(address)
                continue
            }
            switch self.loop.system.connect(address) {
            case .success(let descriptor):
                do throws(SystemError) {
                    self.racing.append(try ConnectingSocket(descriptor, to: address, attempt: self))
                } catch {
                    self.note(.ownResources(error))
                    continue
                }
                if !self.waiting.isEmpty { self.loop.arm(self.delayTimer, after: Self.attemptDelay, target: self) }
                return
            case .failure(let error):
                self.note(TransportFailure(connecting: error, isSocketFile: address.isSocketFile))
            }
        }
    }

    /// The last failure is the one told, unless our own lack kept us from trying an address: then the target is not to
    /// blame.
    private func note(_ failure: TransportFailure) {
        guard self.lastFailure?.isOwnLack != true else { return }
        self.lastFailure = failure
    }

    private func failIfAllFailed() {
        guard self.racing.isEmpty else { return }
        self.finish(.failure(self.lastFailure ?? .nameResolution(.nameNotFound)))
    }

    func decided(_ socket: ConnectingSocket, error: SystemError?) {
        self.racing.removeAll { $0 === socket }
        if let error {
            socket.abandon()
            self.note(TransportFailure(connecting: error, isSocketFile: socket.address.isSocketFile))
            self.loop.disarm(self.delayTimer)
            return self.tryNext()
        }
        let descriptor = socket.surrender()
        do throws(SystemError) {
            let connection = try SocketConnection(
                adopting: descriptor, peer: socket.address, on: self.loop, options: self.options, paused: true)
            self.finish(.success(connection))
        } catch {
            self.finish(.failure(.ownResources(error)))
        }
    }

    private func finish(_ result: Result<SocketConnection, TransportFailure>) {
        let completion = self.completion
        self.completion = nil
        self.stop()
        completion?(result)
    }

    private func stop() {
        if let ticket = self.ticket { self.loop.system.cancelResolution(ticket) }
        self.ticket = nil
        self.loop.disarm(self.delayTimer)
        self.loop.disarm(self.deadlineTimer)
        for socket in self.racing { socket.abandon() }
        self.racing = []
    }
}

extension ConnectAttempt: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        if timer === self.delayTimer { return self.tryNext() }
        self.finish(.failure(.deadlinePassed(self.ticket == nil ? .connecting : .resolving)))
    }
}

extension ConnectAttempt: TurnEndTarget {
    package func turnEnded() {
        self.tryNext()
    }
}
