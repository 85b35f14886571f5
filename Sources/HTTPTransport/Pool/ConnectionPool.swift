import SessionTasks
import StreamTransport
import TLSEngine

/// The connections of one session, all on one loop, so that no lock is needed.
///
/// `package` members may be called from any thread.
package final class ConnectionPool: @unchecked Sendable {  // Its vars are used on the loop only.
    package let settings: PoolSettings
    package let loop: Loop
    /// Connections of an earlier generation are not reused.
    private(set) var generation = 0
    private typealias Host = HostConnections<HTTPConnection, HTTP2ClientConnection, Exchange>

    private var hosts: [PoolKey: Host] = [:]
    /// Connections that have carried requests that may be pipelined.
    private var pipelines: [PoolKey: [HTTPConnection]] = [:]
    /// Servers that do not take pipelined requests.
    private var unpipelined: Set<PoolKey> = []
    /// With more, all are tried again.
    private static let unpipelinedLimit = 256
    private var lastNumber: UInt64 = 0
    private var isClosed = false
    private let sweepTimer = LoopTimer()
    private var isSweepScheduled = false

    /// - Parameter loop: runs all connections of the pool.
    package init(settings: PoolSettings = PoolSettings(), on loop: Loop) {
        self.settings = settings
        self.loop = loop
    }

    /// Creates an exchange; call its `start`.
    package func exchange(_ request: consuming ExchangeRequest, consumer: any ExchangeConsumer) -> Exchange {
        Exchange(request, consumer: consumer, pool: self)
    }

    /// Prevents reuse of all current connections; running exchanges continue.
    package func retireConnections() {
        self.loop.execute {
            self.generation += 1
            self.discardIdle()
            self.retireShared()
        }
    }

    /// Fails waiting exchanges, refuses new ones, and closes connections as soon as they are idle. Running exchanges
    /// continue.
    package func close() {
        self.loop.execute {
            self.isClosed = true
            self.generation += 1
            // First, because they would open connections in place of those that are closed.
            for key in self.hosts.keys {
                for exchange in self.hosts[key]?.waitQueue.removeAll() ?? [] {
                    exchange.phase = .created
                    exchange.fail(.poolClosed)
                }
            }
            self.discardIdle()
            self.retireShared()
        }
    }

    // MARK: Assigning connections

    func submit(_ exchange: Exchange) {
        guard !self.isClosed else { return exchange.fail(.poolClosed) }
        self.lastNumber += 1
        exchange.number = self.lastNumber
        self.assign(exchange, needsFresh: exchange.request.needsFreshConnection, inFront: false)
    }

    /// For an exchange whose HTTP/2 stream the server did not process, or whose connection was lost.
    func repeatExchange(_ exchange: Exchange) {
        exchange.phase = .created
        guard !self.isClosed else { return exchange.fail(.poolClosed) }
        self.assign(exchange, needsFresh: false, inFront: true)
    }

    /// For exchanges whose requests a connection did not process; before those that came later.
    func repeatExchanges(_ exchanges: [Exchange], on key: PoolKey) {
        for exchange in exchanges where !exchange.isEnded {
            guard !self.isClosed else {
                exchange.fail(.poolClosed)
                continue
            }
            self.wait(exchange, key, needsFresh: false, inFront: true)
        }
        self.serveWaiting(key) { _ in }
    }

    /// For an exchange whose connection was lost before the response.
    func repeatOnFreshConnection(_ exchange: Exchange) {
        exchange.phase = .created
        self.assign(exchange, needsFresh: true, inFront: true)
    }

    private func assign(_ exchange: Exchange, needsFresh: Bool, inFront: Bool) {
        if let lease = exchange.request.lease {
            switch lease.place(exchange) {
            case .use(let connection): return self.run(exchange, on: connection)
            case .wait:
                exchange.phase = .leasing(lease)
                return
            case .pool where exchange.request.isBoundToLease: return exchange.fail(.leaseLost)
            case .pool: break
            }
        }
        guard !self.leaves(exchange, needsFresh: needsFresh) else { return }
        let key = PoolKey(exchange.request)
        let needsFresh = needsFresh || self.mayLoseUnrepeatable(exchange, key)
        switch self.updateHost(key, { $0.acquire(needsFresh: needsFresh) }) {
        case .wait:
            if exchange.mayBePipelined, let connection = self.pipelining(key) { return connection.pipeline(exchange) }
            self.wait(exchange, key, needsFresh: needsFresh, inFront: inFront)
        case let placement: self.perform(placement, for: exchange)
        }
    }

    private func wait(_ exchange: Exchange, _ key: PoolKey, needsFresh: Bool, inFront: Bool) {
        guard !self.leaves(exchange, needsFresh: needsFresh) else { return }
        let number = exchange.number
        exchange.phase = .waiting(Waiter(key: key, number: number))
        self.updateHost(key) {
            $0.waitQueue.add(
                exchange, number: number, priority: exchange.priority, needsFresh: needsFresh, inFront: inFront)
        }
        exchange.waits(isBlocked: self.isBlocked(key))
    }

    /// Whether the server of `key` allows no HTTP/2 streams now.
    func isBlocked(_ key: PoolKey) -> Bool { self.hosts[key]?.isBlocked ?? false }

    /// - Returns: whether the exchange is suspended, so that it gets no connection until it is resumed.
    private func leaves(_ exchange: Exchange, needsFresh: Bool) -> Bool {
        guard exchange.isSuspended, exchange.request.lease == nil else { return false }
        exchange.phase = .suspended(needsFresh: needsFresh)
        return true
    }

    /// The demand of a waiting exchange has changed.
    func suspendIfNeeded(_ exchange: Exchange, _ waiter: Waiter) {
        guard exchange.isSuspended else { return }
        let removed = self.updateHost(waiter.key) { $0.waitQueue.remove(waiter.number) }
        exchange.phase = .suspended(needsFresh: removed?.needsFresh ?? false)
        self.serveWaiting(waiter.key) { _ in }
    }

    /// The demand of an exchange that left has changed.
    func resume(_ exchange: Exchange, needsFresh: Bool) {
        guard !exchange.isSuspended else { return }
        exchange.phase = .created
        guard !self.isClosed else { return exchange.fail(.poolClosed) }
        self.assign(exchange, needsFresh: needsFresh, inFront: false)
    }

    /// A request that cannot be repeated must not use a connection that the server may close after its first response:
    /// many servers do so without `Connection: close`.
    private func mayLoseUnrepeatable(_ exchange: Exchange, _ key: PoolKey) -> Bool {
        guard !exchange.plan.head.isIdempotent, let connection = self.hosts[key]?.idle.last else { return false }
        return !connection.hasServedResponse
    }

    private func perform(_ placement: Host.Placement, for exchange: Exchange) {
        switch placement {
        case .use(let connection): self.run(exchange, on: connection)
        case .join(let connection): connection.run(exchange)
        case .replace(let old):
            old.discard()
            self.forget(old)
            self.open(exchange)
        case .replaceShared(let old):
            old.discard()
            self.open(exchange)
        case .open: self.open(exchange)
        case .wait: break
        }
    }

    /// Runs an exchange on a connection that has served another.
    func run(_ exchange: Exchange, on connection: HTTPConnection) {
        connection.metadata.isReused = true
        connection.metadata.sendsEarlyData = false
        connection.metadata.timings = ConnectTimings()
        connection.run(exchange)
    }

    private func open(_ exchange: Exchange) {
        let attempt = ConnectionAttempt(for: exchange, in: self)
        exchange.phase = .connecting(attempt)
        attempt.begin()
    }

    /// Changes the state of a host in place, and removes it if it is empty afterwards.
    @discardableResult
    private func updateHost<R>(_ key: PoolKey, _ body: (inout Host) -> R) -> R {
        let (result, isEmpty) = self.withHost(key, body)
        if isEmpty { self.hosts[key] = nil }
        return result
    }

    private func withHost<R>(_ key: PoolKey, _ body: (inout Host) -> R) -> (R, isEmpty: Bool) {
        func run(_ host: inout Host) -> (R, isEmpty: Bool) {
            let result = body(&host)
            return (result, host.isEmpty)
        }
        return run(&self.hosts[key, default: Host(limit: self.settings.connectionsPerHost, sharing: key.sharing)])
    }

    /// Changes the state of a host, and assigns the connections this makes available to waiting exchanges.
    private func serveWaiting(_ key: PoolKey, _ body: (inout Host) -> Void) {
        var served = self.updateHost(key) { host in
            body(&host)
            return host.next()
        }
        while let (exchange, placement) = served {
            self.perform(placement, for: exchange)
            served = self.updateHost(key) { $0.next() }
        }
    }

    /// An exchange waits no more. Those behind it may use a connection that it could not use.
    func withdraw(_ waiter: Waiter) {
        self.serveWaiting(waiter.key) { $0.waitQueue.remove(waiter.number) }
    }

    func reorder(_ exchange: Exchange, priority: Float) {
        exchange.priority = priority
        if case .running(let carrier) = exchange.phase { return carrier.setPriority(priority) }
        guard case .waiting(let waiter) = exchange.phase else { return }
        self.serveWaiting(waiter.key) { host in
            guard let found = host.waitQueue.remove(waiter.number) else { return }
            host.waitQueue.add(exchange, number: waiter.number, priority: priority, needsFresh: found.needsFresh)
        }
    }

    // MARK: Pipelining

    /// The connection of `key` behind whose requests another one can be written.
    private func pipelining(_ key: PoolKey) -> HTTPConnection? {
        guard !self.unpipelined.contains(key) else { return nil }
        return self.pipelines[key]?.first(where: \.acceptsPipelined)
    }

    /// A response has ended, so that one more request can be written.
    func pipelineAdvanced(_ connection: HTTPConnection) {
        while connection.acceptsPipelined, !self.unpipelined.contains(connection.key),
            let exchange = self.updateHost(connection.key, { $0.waitQueue.popFirst { $0.mayBePipelined } })
        {
            connection.pipeline(exchange)
        }
    }

    /// `connection` is closed.
    private func forget(_ connection: any IdleConnection) {
        guard let pipelines = self.pipelines[connection.key] else { return }
        let rest = pipelines.filter { $0 !== connection }
        self.pipelines[connection.key] = rest.isEmpty ? nil : rest
    }

    /// The server does not answer pipelined requests as it should.
    func stopPipelining(_ key: PoolKey) {
        if self.unpipelined.count >= Self.unpipelinedLimit { self.unpipelined = [] }
        self.unpipelined.insert(key)
    }

    // MARK: Connections

    func connectionOpened(_ connection: HTTPConnection, for exchange: Exchange) {
        self.updateHost(connection.key) { $0.opened() }
        if exchange.request.usesPipelining { self.pipelines[connection.key, default: []].append(connection) }
        // Early data must be sent now.
        let needsFresh = exchange.request.needsFreshConnection || exchange.isRepeated
        if !connection.metadata.sendsEarlyData, self.leaves(exchange, needsFresh: needsFresh) {
            connection.updateReading()
            return self.release(connection)
        }
        connection.run(exchange)
        self.serveWaiting(connection.key) { _ in }
    }

    /// Exchanges that waited for the connection join it.
    func connectionOpened(_ connection: HTTP2ClientConnection, for exchange: Exchange) {
        self.updateHost(connection.key) { $0.opened(connection) }
        let isLeft = !connection.metadata.sendsEarlyData && self.leaves(exchange, needsFresh: false)
        if !isLeft { connection.run(exchange) }
        self.serveWaiting(connection.key) { _ in }
        if isLeft, connection.isIdle { self.enforceIdleLimit() }
        if self.isClosed { connection.retire() }
    }

    /// The server has said how many streams it allows at a time.
    func streamLimitReceived(_ connection: HTTP2ClientConnection) {
        self.streamCapacityChanged(connection)
        let isBlocked = self.isBlocked(connection.key)
        for exchange in self.hosts[connection.key]?.waitQueue.elements ?? [] { exchange.waits(isBlocked: isBlocked) }
    }

    /// A stream has ended, or the server has said how many it allows at a time.
    func streamCapacityChanged(_ connection: HTTP2ClientConnection) {
        self.serveWaiting(connection.key) { _ in }
        if connection.isIdle { self.enforceIdleLimit() }
    }

    /// The connection accepts no more requests. It no longer counts, although its streams continue.
    /// - Parameter exchanges: that it did not process, in their order. They go before all that wait.
    func connectionRetired(_ connection: HTTP2ClientConnection, moving exchanges: [Exchange] = []) {
        self.updateHost(connection.key) { $0.closed(connection) }
        self.repeatExchanges(exchanges, on: connection.key)
    }

    func connectionFreed(_ connection: HTTPConnection) {
        guard !self.isClosed, connection.generation == self.generation else { return connection.close() }
        connection.exchangesServed += 1
        if let lease = connection.lease, lease.freed(connection) { return }
        self.release(connection)
    }

    /// Makes an idle connection available to all.
    func release(_ connection: HTTPConnection) {
        guard !self.isClosed, connection.generation == self.generation else { return connection.close() }
        self.serveWaiting(connection.key) { $0.freed(connection) }
        self.enforceIdleLimit()
    }

    func connectionClosed(_ connection: HTTPConnection) {
        self.forget(connection)
        self.serveWaiting(connection.key) { $0.closed(connection) }
        let lease = connection.lease
        connection.lease = nil
        lease?.lost(connection)
    }

    func openingFailed(_ key: PoolKey) {
        self.serveWaiting(key) { $0.openingFailed() }
    }

    /// The exchange of an opening was suspended, or resumed.
    func openingHeld(_ isHeld: Bool, _ key: PoolKey) {
        self.serveWaiting(key) { $0.openingHeld(isHeld) }
    }

    /// The exchange that opened the connection was cancelled.
    func openingCancelled(_ key: PoolKey) {
        self.serveWaiting(key) { $0.openingCancelled() }
    }

    // MARK: Idle connections

    private var idle: [any IdleConnection] { self.hosts.values.flatMap(\.unused) }

    private var longestIdleFirst: [any IdleConnection] { self.idle.sorted { $0.idleSince < $1.idleSince } }

    private func retireShared() {
        for connection in self.hosts.values.flatMap(\.shared) { connection.retire() }
    }

    private func discardIdle() {
        for connection in self.longestIdleFirst { self.discard(connection) }
        self.loop.disarm(self.sweepTimer)
        self.isSweepScheduled = false
    }

    private func discard(_ connection: any IdleConnection) {
        let key = connection.key
        let hasWaiting = self.updateHost(key) { host in
            if let connection = connection as? HTTPConnection { _ = host.removeIdle(connection) }
            if let connection = connection as? HTTP2ClientConnection { host.closed(connection, isDiscarded: true) }
            return !host.waitQueue.isEmpty
        }
        self.forget(connection)
        connection.discard()
        // In another turn: a caller may hold further connections to discard.
        if hasWaiting { self.loop.execute { self.serveWaiting(key) { _ in } } }
    }

    private func enforceIdleLimit() {
        if self.hosts.count > 1 {
            let idle = self.idle
            if idle.count > self.settings.idleLimit, let oldest = idle.min(by: { $0.idleSince < $1.idleSince }) {
                self.discard(oldest)
            }
        }
        if !self.isSweepScheduled { self.scheduleSweep(at: self.loop.now.advanced(by: self.settings.idleTimeout)) }
    }

    /// One timer for all connections; scheduled again while any is idle.
    private func scheduleSweep(at deadline: MonotonicInstant) {
        self.isSweepScheduled = true
        self.loop.arm(self.sweepTimer, at: deadline, target: self)
    }
}

extension ConnectionPool: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.isSweepScheduled = false
        let (now, timeout) = (self.loop.now, self.settings.idleTimeout)
        let awaited = self.hosts.values.flatMap(\.awaited)
        if !awaited.isEmpty { self.scheduleSweep(at: now.advanced(by: timeout)) }
        for connection in awaited { connection.probeIfSilent() }
        for connection in self.longestIdleFirst {
            let deadline = connection.idleSince.advanced(by: timeout)
            guard deadline <= now else { return self.scheduleSweep(at: deadline) }
            self.discard(connection)
        }
    }
}

/// A connection that carries no exchange.
protocol IdleConnection: AnyObject {
    var key: PoolKey { get }
    var idleSince: MonotonicInstant { get }
    /// Closes without notifying the pool, which has already removed the connection.
    func discard()
}

extension HTTPConnection: IdleConnection {}
extension HTTP2ClientConnection: IdleConnection {}

extension HostConnections where Connection == HTTPConnection, Shared == HTTP2ClientConnection {
    /// Those that exchanges wait for, because their server allows no streams now.
    fileprivate var awaited: [HTTP2ClientConnection] { self.waitQueue.isEmpty ? [] : self.shared.filter(\.isBlocked) }

    fileprivate var unused: [any IdleConnection] {
        let isAwaited = !self.waitQueue.isEmpty
        return self.idle + self.shared.filter { $0.isIdle && !($0.isBlocked && isAwaited) }
    }
}

/// Connections with equal keys are interchangeable.
struct PoolKey: Sendable, Hashable {
    let origin: ServerEndpoint
    let proxy: ProxyKey?
    /// Retained, because it is compared by identity.
    let context: TLSContext?
    let serverName: String?
    /// HTTP/2 without negotiation.
    let assumesHTTP2: Bool
    /// `nil` for connections that are not authenticated.
    let identity: ConnectionIdentity?
    let proxyIdentity: ConnectionIdentity?
    /// Interfaces that the connection does not use.
    let forbiddenClasses: InterfaceClasses
    /// Whether the address comes from an authenticated answer.
    let hasAuthenticatedName: Bool

    /// Whether requests can share a connection, as far as that is known before one is open.
    var sharing: ConnectionSharing {
        if self.assumesHTTP2 { return .multiplexed }
        let offersHTTP2 = self.context?.configuration.applicationProtocols.contains("h2") ?? false
        return offersHTTP2 ? .unknown : .exclusive
    }

    init(_ request: ExchangeRequest) {
        self.origin = request.origin
        self.proxy = request.proxy.map { ProxyKey($0) }
        self.context = request.origin.scheme == .https ? request.secure?.context : nil
        self.serverName = self.context == nil ? nil : request.secure?.serverName
        self.assumesHTTP2 = request.assumesHTTP2 && self.context == nil
        self.identity = request.identity
        self.proxyIdentity = request.proxyIdentity
        self.forbiddenClasses = request.path.forbidden
        self.hasAuthenticatedName = request.needsAuthenticatedName
    }

    static func == (left: PoolKey, right: PoolKey) -> Bool {
        left.origin == right.origin && left.context === right.context && left.serverName == right.serverName
            && left.assumesHTTP2 == right.assumesHTTP2 && left.proxy == right.proxy
            && left.identity == right.identity && left.proxyIdentity == right.proxyIdentity
            && left.forbiddenClasses == right.forbiddenClasses
            && left.hasAuthenticatedName == right.hasAuthenticatedName
    }

    func hash(into hasher: inout Hasher) {
        // The rest rarely differs, and hashing it takes longer than comparing it.
        hasher.combine(self.origin.host)
        hasher.combine(self.origin.port)
    }
}

/// Identifies the proxy that connections go through. Requests to be forwarded have their own
/// credentials, and all tunnels of a pool have those of its session.
struct ProxyKey: Sendable, Hashable {
    private let place: ConnectTarget
    private let method: ProxyServer.Method
    private let resolvesNames: Bool
    private let isSecure: Bool

    init(_ proxy: ProxyServer) {
        self.place = proxy.place
        self.method = proxy.method
        self.resolvesNames = proxy.resolvesNames
        self.isSecure = proxy.secure != nil
    }
}

package struct PoolSettings: Sendable {
    /// Largest number of connections to one server, including those being opened; upgraded ones do not count. At least 1.
    /// An HTTP/2 connection counts as one; a further one is opened only if the server's limit of streams is reached, or
    /// 128 streams. Exchanges wait for one whose server allows no streams, up to their idle timeout, and open no other.
    /// One that its server ends no longer counts, while its last streams continue. Default: 6.
    package var connectionsPerHost = 6
    /// How long a connection may be idle before it is closed. Default: 60 seconds.
    package var idleTimeout: Duration = .seconds(60)
    /// Largest number of idle connections to all servers; above it the one idle for longest is closed. Default: 64.
    package var idleLimit = 64
    package var limits = MessageLimits()
    /// How long the SETTINGS of an HTTP/2 server may take after the connection is open. Default: 30 seconds.
    package var settingsTimeout: Duration = .seconds(30)
    /// Resolves a name. Default: `nil`, the system's resolver.
    package var resolve: ConnectAttempt.Resolve?
    /// Resolves a name with authenticated answers only. Default: the system's name servers, with DNSSEC.
    package var resolveAuthenticated: ConnectAttempt.Resolve = { host, port, answer in
        ResolverThreads.shared.lookUpAuthenticated(host, port: port, answer)
    }
    /// Whether an address may be connected to on behalf of the URL's host. Called for each address before it is tried,
    /// resolved or literal, on the loop. Default: all addresses.
    package var admits: @Sendable (SocketAddress, _ host: String) -> Bool = { _, _ in true }

    package init() {}
}
