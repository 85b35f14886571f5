/// Opens one connection: looks the name up, tries its addresses at short intervals (RFC 8305), and returns the first
/// connection that is established. The others are closed.
package final class ConnectAttempt {
    /// Delay before the next address is tried concurrently (RFC 8305 §5).
    package static let attemptDelay = Duration.milliseconds(250)
    /// Maximum number of addresses tried; further ones are ignored.
    package static let addressLimit = 16

    package typealias Completion = (Result<SocketConnection, TransportFailure>) -> Void
    /// Whether an address may be connected to.
    package typealias Permission = @Sendable (SocketAddress) -> Bool
    /// Resolves a name; answers once, from any thread.
    package typealias Resolve =
        @Sendable (String, UInt16, @escaping @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void) -> Void

    let loop: Loop
    private let options: SocketOptions
    private let path: PathOptions
    private let permits: Permission?
    private var completion: Completion?
    private let didResolve: (() -> Void)?
    private var isResolving = false
    private var ticket: ResolutionToken?
    private var waiting: [SocketAddress] = []
    private var racing: [ConnectingSocket] = []
    private var lastFailure: TransportFailure?
    private let delayTimer = LoopTimer()
    private var deadlineTimer = HoldableTimer()

    /// Whether the timeout is paused; the attempt itself continues.
    package var isHeld: Bool {
        get { self.deadlineTimer.isHeld }
        set { self.deadlineTimer.setHeld(newValue, on: self.loop, target: self) }
    }

    /// Begins. `completion` is called once, in a later turn, unless the attempt is cancelled. The connection it gets is
    /// paused: no byte is read before its owner is in place and resumes it.
    /// - Parameters:
    ///   - timeout: for all steps together; ends in `.deadlinePassed`.
    ///   - resolve: looks the name up; `nil` asks the system.
    ///   - permits: asked of each address before it is tried; without one that may be, it ends in `.notPermitted`.
    ///   - didResolve: called once the name is resolved; not at all for an address.
    package init(
        _ target: ConnectTarget, on loop: Loop, options: SocketOptions = SocketOptions(),
        path: PathOptions = PathOptions(), timeout: Duration, resolve: Resolve? = nil, permits: Permission? = nil,
        didResolve: (() -> Void)? = nil, completion: @escaping Completion
    ) {
        self.loop = loop
        self.options = options
        self.path = path
        self.permits = permits
        self.didResolve = didResolve
        self.completion = completion
        self.deadlineTimer.arm(after: timeout, on: loop, target: self)
        switch target {
        case .address(let address): self.waiting = [address]
        case .host(let host, let port):
            if let literal = SocketAddress(literal: host, port: port) {
                self.waiting = [literal]
            } else {
                self.resolve(host, port: port, by: resolve)
                return
            }
        }
        loop.inNextTurn(self)
    }

    private func resolve(_ host: String, port: UInt16, by resolve: Resolve?) {
        guard self.loop.system.hasDescriptors else {
            self.lastFailure = .ownResources(.processDescriptorsExhausted)
            return self.loop.inNextTurn(self)
        }
        self.isResolving = true
        if let resolve {
            let attempt = LoopIsolated(self, on: self.loop)
            return resolve(host, port) { result in attempt.execute { $0.resolved(result) } }
        }
        self.ticket = self.loop.system.resolve(host, port: port) { self.resolved($0) }
    }

    private func resolved(_ result: Result<[SocketAddress], ResolutionFailure>) {
        self.ticket = nil
        guard self.isResolving, self.completion != nil else { return }
        self.isResolving = false
        switch result {
        case .success(let addresses):
            self.didResolve?()
            self.waiting = Array(AddressOrder.interleaved(addresses).prefix(Self.addressLimit))
            // Answers come while the loop still waits, when its own time is that of the turn before.
            self.loop.inNextTurn(self)
        case .failure(let failure):
            self.finish(.failure(.nameResolution(failure)))
        }
    }

    /// Gives the attempt up; the completion is not called.
    package func cancel() {
        self.loop.assertOnLoop()
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
            switch self.connect(to: address) {
            case .success(let descriptor):
                do throws(SystemError) {
                    self.racing.append(try ConnectingSocket(descriptor, to: address, attempt: self))
                } catch {
                    self.recordFailure(.ownResources(error))
                    continue
                }
                if !self.waiting.isEmpty { self.loop.arm(self.delayTimer, after: Self.attemptDelay, target: self) }
                return
            case .failure(let failure): self.recordFailure(failure)
            }
        }
    }

    private func connect(to address: SocketAddress) -> Result<Descriptor, TransportFailure> {
        var options = ConnectOptions()
        options.usesMultipath = self.path.usesMultipath
        switch PathChoice(to: address, forbidding: self.path.forbidden, on: self.loop) {
        case .any: break
        case .through(let interface): options.interface = interface
        case .refused(let classes): return .failure(.offline(.forbidden(classes)))
        case .noRoute(let error): return .failure(TransportFailure(beginning: error, address))
        }
        return self.loop.system.connect(address, options).mapError { TransportFailure(beginning: $0, address) }
    }

    /// Keeps the failure to report: the latest, unless a local lack of resources kept an address from being tried; then
    /// the target is not to blame. That there is no way to an address counts only if no other one was tried: a network
    /// often lacks IPv6 or IPv4.
    private func recordFailure(_ failure: TransportFailure) {
        guard let last = self.lastFailure else { return self.lastFailure = failure }
        guard !last.isLocalResourceFailure else { return }
        if case .offline(let cause) = failure {
            guard case .offline(.noRoute) = last, case .forbidden = cause else { return }
        }
        self.lastFailure = failure
    }

    private func failIfAllFailed() {
        guard self.racing.isEmpty else { return }
        self.finish(.failure(self.lastFailure ?? .nameResolution(.nameNotFound)))
    }

    fileprivate func connectCompleted(_ socket: ConnectingSocket, error: SystemError?) {
        self.racing.removeAll { $0 === socket }
        if let error {
            socket.abandon()
            self.recordFailure(self.failure(error, at: socket.address))
            self.loop.disarm(self.delayTimer)
            return self.tryNext()
        }
        let descriptor = socket.releaseDescriptor()
        do throws(SystemError) {
            let connection = try SocketConnection(
                adopting: descriptor, peer: socket.address, on: self.loop, options: self.options, paused: true)
            self.finish(.success(connection))
        } catch {
            self.finish(.failure(.ownResources(error)))
        }
    }

    /// A neighbour that does not answer may mean that our own link is gone: its routes can stay.
    private func failure(_ error: SystemError, at address: SocketAddress) -> TransportFailure {
        if error == .hostUnreachable, case .success(let route) = self.loop.system.route(to: address, through: nil),
            route.interface > 0, !self.loop.system.isUsable(interface: route.interface)
        {
            return .offline(.noRoute(.networkDown))
        }
        return TransportFailure(connecting: error, isSocketFile: address.isSocketFile)
    }

    private func finish(_ result: Result<SocketConnection, TransportFailure>) {
        let completion = self.completion.take()
        self.stop()
        completion?(result)
    }

    private func stop() {
        if let ticket = self.ticket.take() { self.loop.system.cancelResolution(ticket) }
        self.loop.disarm(self.delayTimer)
        self.deadlineTimer.disarm(on: self.loop)
        for socket in self.racing { socket.abandon() }
        self.racing = []
    }
}

extension ConnectAttempt: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        if timer === self.delayTimer { return self.tryNext() }
        self.finish(.failure(.deadlinePassed(self.isResolving ? .resolving : .connecting)))
    }
}

extension ConnectAttempt: TurnEndTarget {
    package func turnEnded() {
        guard self.dependsOnCost else { return self.tryNext() }
        PathMonitor.shared(on: self.loop).metered.whenKnown { self.tryNext() }
    }

    /// Whether it must be known which interfaces are metered: some must not be used, or are reported in a process in which
    /// that matters to others.
    private var dependsOnCost: Bool {
        guard self.path.forbidden.contains(.expensive) || self.path.isReported && MeteredMonitor.wasUsed else {
            return false
        }
        return self.waiting.contains { !$0.isSocketFile && !$0.isLoopback }
    }
}

/// Target of a connection.
package enum ConnectTarget: Hashable, Sendable {
    /// A name to look up, or an address in digits.
    case host(String, port: UInt16)
    case address(SocketAddress)
}

/// The steps of opening a connection, in order.
package enum ConnectPhase: String, Hashable, Sendable {
    case resolving
    case connecting
    case securing
}

/// One socket of a connect attempt, until the system has decided.
private final class ConnectingSocket {
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

    func releaseDescriptor() -> Descriptor {
        self.attempt = nil
        self.loop.unwatch(self.descriptor, token: self.token)
        return self.descriptor
    }

    /// Closes with a reset: a peer that has accepted already would take a FIN for an empty request.
    func abandon() {
        self.loop.system.reset(self.releaseDescriptor())
    }
}

extension ConnectingSocket: Watchable {
    func ready(_ events: Interest) {
        guard !events.isDisjoint(with: [.writable, .hangUp]) else { return }
        self.attempt?.connectCompleted(self, error: self.loop.system.connectError(self.descriptor))
    }
}

/// The order in which addresses are tried (RFC 8305 §4): the resolver's own order, with the families taking turns from
/// the first on.
package enum AddressOrder {
    package static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let leading = addresses.filter { $0.isSameFamily(as: first) }
        let others = addresses.filter { !$0.isSameFamily(as: first) }
        var order: [SocketAddress] = []
        for index in 0..<max(leading.count, others.count) {
            if index < leading.count { order.append(leading[index]) }
            if index < others.count { order.append(others[index]) }
        }
        return order
    }
}

extension SocketAddress {
    fileprivate func isSameFamily(as other: SocketAddress) -> Bool {
        switch (self, other) {
        case (.ipv4, .ipv4), (.ipv6, .ipv6), (.unix, .unix): true
        case (.ipv4, _), (.ipv6, _), (.unix, _): false
        }
    }
}

/// Identifies a lookup in progress, so that it can be cancelled.
package struct ResolutionToken: Hashable, Sendable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// Why a name gave no address.
package enum ResolutionFailure: Error, Hashable, Sendable {
    /// The name does not exist, or has no address.
    case nameNotFound
    /// The name service did not answer, or asked to try again.
    case temporarilyUnavailable
    /// Too many lookups wait already; try again later.
    case tooManyLookups
    /// This machine has no route to a name server.
    case noRoute
    /// The answer is not authenticated (RFC 4035 §4.9.3), which was required.
    /// - Parameter reason: why, in words.
    case notAuthenticated(String)
    /// Anything else, in the resolver's words.
    case failed(String)
}

extension TransportFailure {
    /// Maps an error number of `connect`.
    /// - Parameter isSocketFile: whether the address is that of a Unix socket.
    package init(connecting error: SystemError, isSocketFile: Bool) {
        switch error {
        case .refused: self = .refused
        case .noSuchFile: self = .noSuchFile
        case .timedOut, .hostUnreachable, .networkUnreachable, .networkDown: self = .unreachable(error)
        case .reset: self = .reset
        // EAGAIN: a Unix socket's listen queue is full; for TCP our system lacks routing cache entries (connect(2)).
        case .wouldBlock: self = isSocketFile ? .unusableEndpoint(error) : .ownResources(error)
        case .addressNotAvailable: self = .ownResources(error)
        case _ where error.isExhaustion: self = .ownResources(error)
        default: self = .unusableEndpoint(error)
        }
    }

    /// Of an error with which connecting began: the system has sent nothing.
    fileprivate init(beginning error: SystemError, _ address: SocketAddress) {
        switch error {
        case .networkUnreachable, .hostUnreachable, .networkDown: self = .offline(.noRoute(error))
        default: self.init(connecting: error, isSocketFile: address.isSocketFile)
        }
    }

    /// Whether this process or this machine, and not the endpoint, caused the failure to connect.
    package var isLocalResourceFailure: Bool {
        switch self {
        case .ownResources, .nameResolution(.tooManyLookups): true
        case .reset, .peerUnresponsive, .truncated, .deadlinePassed, .nameResolution, .refused, .noSuchFile,
            .notPermitted, .unreachable, .offline, .unusableEndpoint, .tls, .proxy, .system:
            false
        }
    }

    /// The error number of the system; `nil` where none was given.
    package var systemError: SystemError? {
        switch self {
        case .reset: .reset
        case .refused: .refused
        case .noSuchFile: .noSuchFile
        case .peerUnresponsive: .timedOut
        case .unreachable(let error), .offline(.noRoute(let error)), .unusableEndpoint(let error),
            .ownResources(let error), .system(let error):
            error
        case .truncated, .deadlinePassed, .nameResolution, .notPermitted, .offline(.forbidden), .tls, .proxy: nil
        }
    }
}

extension TransportFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .reset: "connection reset by the peer"
        case .peerUnresponsive: "the peer stopped answering"
        case .truncated: "the connection was cut without close_notify"
        case .deadlinePassed(let phase): "timed out while \(phase.rawValue)"
        case .nameResolution(.nameNotFound): "the name has no address"
        case .nameResolution(.temporarilyUnavailable): "the name service does not answer"
        case .nameResolution(.tooManyLookups): "too many names are being looked up"
        case .nameResolution(.failed(let text)): "the name could not be looked up: \(text)"
        case .nameResolution(.noRoute): "there is no route to a name server"
        case .nameResolution(.notAuthenticated(let text)): "the name's addresses are not authenticated: \(text)"
        case .refused: "connection refused"
        case .noSuchFile: "no such file"
        case .notPermitted(let address): "\(address) is none of the permitted targets"
        case .unreachable(let error): "unreachable: \(error)"
        case .offline(.noRoute(let error)): "there is no route to the address: \(error)"
        case .offline(.forbidden): "the networks that lead to the address may not be used"
        case .unusableEndpoint(let error): Self.text(ofEndpoint: error)
        case .ownResources(.addressNotAvailable): "no local port is free"
        case .ownResources(let error): "this machine lacks resources for a connection: \(error)"
        case .tls(let failure): "TLS failed: \(failure)"
        case .proxy(let failure): failure.description
        case .system(let error): error.description
        }
    }

    private static func text(ofEndpoint error: SystemError) -> String {
        switch error {
        case .wouldBlock: "the socket's queue of connections is full"
        case .accessDenied: "permission denied: connecting needs write permission on the socket's file"
        case .wrongSocketType: "the socket is not a stream socket"
        case .notSocket: "the file is not a socket"
        default: error.description
        }
    }
}
