import NIOCore
import NIOPosix
import StreamTransport
import TLSEngine

/// The connections of one session, all on one event loop, so that no lock is needed.
///
/// `package` members may be called from any thread.
package final class ConnectionPool: @unchecked Sendable {
    package let settings: PoolSettings
    let eventLoop: any EventLoop
    /// Shared by all TLS connections: each empties it before it returns to the loop.
    let records = CiphertextBuffer()
    /// Connections of an earlier generation are not reused.
    private(set) var generation = 0
    private var hosts: [PoolKey: HostConnections<ClientConnection, Exchange>] = [:]
    private var lastWaiterNumber: UInt64 = 0
    private var isClosed = false
    private var sweep: Scheduled<Void>?

    package convenience init(settings: PoolSettings = PoolSettings()) {
        self.init(settings: settings, on: SharedEventLoops.next())
    }

    /// - Parameter eventLoop: runs all channels of the pool.
    package init(settings: PoolSettings, on eventLoop: any EventLoop) {
        self.settings = settings
        self.eventLoop = eventLoop
    }

    /// Runs `work` on the pool's event loop, which serializes the loads of a session; immediately if the caller is on it.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        if self.eventLoop.inEventLoop { work() } else { self.eventLoop.execute(work) }
    }

    /// Whether the caller is on the pool's event loop.
    package var isCurrent: Bool { self.eventLoop.inEventLoop }

    /// Like `execute`, but never immediately.
    package func executeLater(_ work: @escaping @Sendable () -> Void) {
        self.eventLoop.execute(work)
    }

    /// Runs `work` on the pool's event loop after `delay`.
    package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> PoolTimer {
        PoolTimer(self.eventLoop.scheduleTask(in: .bounded(delay), work))
    }

    /// Creates an exchange; call its `start`.
    package func exchange(_ request: consuming ExchangeRequest, consumer: any ExchangeConsumer) -> Exchange {
        Exchange(request, consumer: consumer, pool: self)
    }

    /// Prevents reuse of all current connections; running exchanges continue.
    package func retireConnections() {
        self.eventLoop.execute {
            self.generation += 1
            self.discardIdle()
        }
    }

    /// Fails waiting exchanges, refuses new ones, and closes connections as soon as they are idle. Running exchanges
    /// continue.
    package func close() {
        self.eventLoop.execute {
            self.isClosed = true
            self.generation += 1
            self.discardIdle()
            for key in self.hosts.keys {
                for exchange in self.hosts[key]?.waitQueue.removeAll() ?? [] {
                    exchange.phase = .created
                    exchange.fail(.poolClosed)
                }
            }
        }
    }

    /// Runs an exchange on a channel that is already connected, for bytes that do not come from a network. On the event
    /// loop, with an exchange that was not started.
    /// - Throws: if the pool is closed or at its limit, or the channel accepts no handlers.
    package func run(_ exchange: Exchange, on channel: any Channel) throws {
        guard !self.isClosed, case .open = self.updateHost(PoolKey(exchange.request), { $0.acquire(needsFresh: true) })
        else {
            throw ExchangeFailure.poolClosed
        }
        let attempt = ConnectionAttempt(for: exchange, in: self)
        exchange.phase = .connecting(attempt)
        try attempt.adopt(channel)
    }

    // MARK: Assigning connections

    func submit(_ exchange: Exchange) {
        guard !self.isClosed else { return exchange.fail(.poolClosed) }
        self.assign(exchange, needsFresh: exchange.request.needsFreshConnection, inFront: false)
    }

    /// For an exchange whose connection was lost before the response.
    func repeatOnFreshConnection(_ exchange: Exchange) {
        exchange.phase = .created
        self.assign(exchange, needsFresh: true, inFront: true)
    }

    private func assign(_ exchange: Exchange, needsFresh: Bool, inFront: Bool) {
        let key = PoolKey(exchange.request)
        let needsFresh = needsFresh || self.mayLoseUnrepeatable(self.hosts[key]?.idle.last, for: exchange)
        switch self.updateHost(key, { $0.acquire(needsFresh: needsFresh) }) {
        case .wait:
            self.lastWaiterNumber += 1
            let number = self.lastWaiterNumber
            exchange.phase = .waiting(Waiter(key: key, number: number))
            self.updateHost(key) {
                $0.waitQueue.add(
                    exchange, number: number, priority: exchange.priority, needsFresh: needsFresh, inFront: inFront)
            }
        case let placement: self.perform(placement, for: exchange)
        }
    }

    /// A request that cannot be repeated must not use a connection that the server may close after its first response:
    /// many servers do so without `Connection: close`.
    private func mayLoseUnrepeatable(_ connection: ClientConnection?, for exchange: Exchange) -> Bool {
        guard let connection, !exchange.plan.head.isIdempotent else { return false }
        return !connection.hasServedResponse
    }

    private func perform(_ placement: HostConnections<ClientConnection, Exchange>.Placement, for exchange: Exchange) {
        switch placement {
        case .use(let connection):
            connection.metadata.isReused = true
            connection.metadata.timings = ConnectTimings()
            connection.run(exchange)
        case .replace(let old):
            old.discard()
            self.open(exchange)
        case .open: self.open(exchange)
        case .wait: break
        }
    }

    private func open(_ exchange: Exchange) {
        let attempt = ConnectionAttempt(for: exchange, in: self)
        exchange.phase = .connecting(attempt)
        attempt.begin()
    }

    /// Changes the state of a host in place, and removes it if it is empty afterwards.
    @discardableResult
    private func updateHost<R>(
        _ key: PoolKey, _ body: (inout HostConnections<ClientConnection, Exchange>) -> R
    ) -> R {
        let (result, isEmpty) = self.withHost(key, body)
        if isEmpty { self.hosts[key] = nil }
        return result
    }

    private func withHost<R>(
        _ key: PoolKey, _ body: (inout HostConnections<ClientConnection, Exchange>) -> R
    ) -> (R, isEmpty: Bool) {
        func run(_ host: inout HostConnections<ClientConnection, Exchange>) -> (R, isEmpty: Bool) {
            let result = body(&host)
            return (result, host.isEmpty)
        }
        return run(&self.hosts[key, default: HostConnections(limit: self.settings.connectionsPerHost)])
    }

    /// Changes the state of a host, and assigns the connections this makes available to waiting exchanges.
    private func serveWaiting(_ key: PoolKey, _ body: (inout HostConnections<ClientConnection, Exchange>) -> Void) {
        var served = self.updateHost(key) { host in
            body(&host)
            return host.next()
        }
        while let (exchange, placement) = served {
            self.perform(placement, for: exchange)
            served = self.updateHost(key) { $0.next() }
        }
    }

    func withdraw(_ waiter: Waiter) {
        self.updateHost(waiter.key) { _ = $0.waitQueue.remove(waiter.number) }
    }

    func reorder(_ exchange: Exchange, priority: Float) {
        exchange.priority = priority
        guard case .waiting(let waiter) = exchange.phase else { return }
        self.updateHost(waiter.key) { host in
            guard let found = host.waitQueue.remove(waiter.number) else { return }
            host.waitQueue.add(exchange, number: waiter.number, priority: priority, needsFresh: found.needsFresh)
        }
    }

    // MARK: Connections

    func connectionFreed(_ connection: ClientConnection) {
        guard !self.isClosed, connection.generation == self.generation else { return connection.close() }
        connection.exchangesServed += 1
        self.serveWaiting(connection.key) { $0.freed(connection) }
        self.enforceIdleLimit()
    }

    func connectionClosed(_ connection: ClientConnection) {
        self.serveWaiting(connection.key) { $0.closed(connection) }
    }

    func openingFailed(_ key: PoolKey) {
        self.serveWaiting(key) { $0.openingFailed() }
    }

    // MARK: Idle connections

    private var idle: [ClientConnection] { self.hosts.values.flatMap(\.idle) }

    private func discardIdle() {
        for connection in self.idle { self.discard(connection) }
    }

    private func discard(_ connection: ClientConnection) {
        self.updateHost(connection.key) { _ = $0.removeIdle(connection) }
        connection.discard()
    }

    private func enforceIdleLimit() {
        if self.hosts.count > 1 {
            let idle = self.idle
            if idle.count > self.settings.idleLimit, let oldest = idle.min(by: { $0.idleSince < $1.idleSince }) {
                self.discard(oldest)
            }
        }
        if self.sweep == nil { self.scheduleSweep(at: .now() + .bounded(self.settings.idleTimeout)) }
    }

    private func scheduleSweep(at deadline: NIODeadline) {
        self.sweep = self.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
            self?.sweepIdle()
        }
    }

    /// One timer for all connections; scheduled again while any is idle.
    private func sweepIdle() {
        self.sweep = nil
        let timeout = TimeAmount.bounded(self.settings.idleTimeout)
        let now = NIODeadline.now()
        for connection in self.idle where connection.idleSince + timeout <= now { self.discard(connection) }
        guard let oldest = self.idle.map(\.idleSince).min() else { return }
        self.scheduleSweep(at: oldest + timeout)
    }
}

/// Connections with equal keys are interchangeable.
struct PoolKey: Sendable, Hashable {
    let origin: ServerEndpoint
    /// Retained, because it is compared by identity.
    let context: TLSContext?
    let serverName: String?

    init(_ request: ExchangeRequest) {
        self.origin = request.origin
        self.context = request.origin.scheme == .https ? request.secure?.context : nil
        self.serverName = self.context == nil ? nil : request.secure?.serverName
    }

    static func == (left: PoolKey, right: PoolKey) -> Bool {
        left.origin == right.origin && left.context === right.context && left.serverName == right.serverName
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.origin)
        hasher.combine(self.context.map { ObjectIdentifier($0) })
    }
}

package struct PoolSettings: Sendable {
    package typealias Resolve =
        @Sendable (
            String, UInt16, @escaping @Sendable (Result<[StreamTransport.SocketAddress], ResolutionFailure>) -> Void
        ) -> Void

    /// Largest number of connections to one server, including those being opened; upgraded ones do not count. At least 1.
    /// Default: 6.
    package var connectionsPerHost = 6
    /// How long a connection may be idle before it is closed. Default: 60 seconds.
    package var idleTimeout: Duration = .seconds(60)
    /// Largest number of idle connections to all servers; above it the one idle for longest is closed. Default: 64.
    package var idleLimit = 64
    package var limits = MessageLimits()
    /// Resolves a name; calls back once, from any thread. Default: the system's resolver, on threads of its own.
    package var resolve: Resolve = { ResolverThreads.shared.resolve($0, port: $1, answer: $2) }
    /// Whether an address may be connected to on behalf of the URL's host. Called for each address before it is tried,
    /// resolved or literal, from any thread. Default: all addresses.
    package var admits: @Sendable (StreamTransport.SocketAddress, _ host: String) -> Bool = { _, _ in true }

    package init() {}
}

/// Work scheduled on a pool's event loop.
package struct PoolTimer: Sendable {
    private let scheduled: Scheduled<Void>

    init(_ scheduled: Scheduled<Void>) {
        self.scheduled = scheduled
    }

    /// From any thread; does nothing if the work has run.
    package func cancel() {
        self.scheduled.cancel()
    }
}

/// The event loops of all HTTP exchanges of the process. Their threads start with first use and are never stopped.
private enum SharedEventLoops {
    /// More loops would only move packets between CPU caches.
    private static let limit = 4

    private static let group = MultiThreadedEventLoopGroup(
        numberOfThreads: min(System.coreCount, SharedEventLoops.limit))

    static func next() -> any EventLoop {
        self.group.next()
    }
}
