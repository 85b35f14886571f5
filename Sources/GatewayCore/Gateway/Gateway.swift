import Cluster
import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization

/// The gateway: loops, listeners, reload and drain. Callable from any thread.
package final class Gateway: Sendable {
    /// A listener with the address that its sockets are bound to.
    package struct BoundListener: Sendable {
        package let listener: ListenerConfiguration
        package let address: SocketAddress
    }

    struct State {
        var plan: GatewayPlan?
        /// By the listener's name.
        var boundAddresses: [String: SocketAddress] = [:]
        var certificates: [PresentedCertificate] = []
        /// Called with the token sources of each later plan.
        var tokenSourceObserver: (@Sendable ([TokenSource]) -> Void)?
    }

    package let loops: [Loop]
    let shared: GatewayShared
    let loopGateways: [LoopIsolated<LoopGateway>]
    /// Identifies the process: positions of another one say nothing about this one's events.
    package let instance: String
    private let turn = Atomic<Int>(0)
    let state = Mutex(State())
    private let passedSockets: [ActivatedSocket]
    /// The other nodes; `nil` without a cluster.
    package let cluster: GatewayCluster?
    /// In the cluster of the configuration; `nil` without one.
    private let membership: ClusterMembership?

    /// - Parameters:
    ///   - loops: running already; connections stay on the loop that accepted them.
    ///   - passedSockets: listening sockets from the service manager.
    ///   - bus: connects the gateway with the other nodes of its cluster, instead of the configured Redis.
    ///   - version: shown to other nodes, and to clients of the rooms.
    /// - Throws: if a file of the cluster's settings cannot be used.
    package init(
        loops: [Loop], log: TunnelLog, configuration: Configuration, passedSockets: [ActivatedSocket] = [],
        bus: (any ClusterBus)? = nil, clusterLimits: GatewayCluster.Limits = .init(), version: String = ""
    ) throws(GatewayPlanError) {
        self.loops = loops
        self.passedSockets = passedSockets
        let control = configuration.control
        var cluster: RoomCluster?
        if let settings = configuration.cluster { cluster = try RoomCluster(settings, log: log) }
        cluster?.report = { isAway, text in log.redis(isAway: isAway, text) }
        cluster?.warn = { text in log.log(text, level: .warning) }
        let shared = GatewayShared(
            log: log,
            hub: RoomHub(loops: loops, settings: configuration.rooms, cluster: cluster, version: version),
            admission: Admission(configuration),
            closedLimit: control.address == nil ? 0 : control.closedConnections,
            keepsHandshakes: control.address != nil && control.keepsHandshakes,
            eventLog: control.address == nil ? nil : EventLog(), returnsMemory: true)
        self.shared = shared
        let loopGateways = loops.enumerated().map { index, loop in
            LoopIsolated(LoopGateway(loop: loop, index: index, shared: shared), on: loop)
        }
        self.loopGateways = loopGateways
        let instance = RoomHub.text(Machine.randomWords(1))
        self.instance = instance
        if let cluster, let loop = loops.first {
            self.membership = ClusterMembership(
                cluster, limits: clusterLimits, instance: instance, version: version, log: log, loop: loop,
                load: { shared.load })
        } else {
            self.membership = nil
        }
        self.cluster = (bus ?? self.membership?.bus).map {
            GatewayCluster(
                $0, limits: clusterLimits, instance: instance,
                rooms: RoomOperations(hub: shared.hub, loopGateways: loopGateways))
        }
        shared.hub.commandForwarder = self.cluster?.makeCommandForwarder()
        for loopGateway in self.loopGateways { loopGateway.execute { $0.start() } }
    }

    /// By the clock of its loops.
    package var now: MonotonicInstant { self.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0) }

    package var counters: GatewayCounters { self.shared.counters }

    /// The loop for the next requested connection.
    private func nextLoopGateway() -> LoopIsolated<LoopGateway>? {
        guard !self.loopGateways.isEmpty else { return nil }
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return self.loopGateways[Int(UInt(bitPattern: turn) % UInt(self.loopGateways.count))]
    }

    // MARK: Starting and reloading

    /// Opens all listeners.
    /// - Returns: their addresses, in the configuration's order.
    /// - Throws: `GatewayPlanError`; nothing listens then.
    package func start(_ plan: GatewayPlan) async throws(GatewayPlanError) -> [BoundListener] {
        var opened: [(ListenerPlan, [Descriptor])] = []
        do throws(GatewayPlanError) {
            for listener in plan.listeners { opened.append((listener, try self.openSockets(listener.configuration))) }
        } catch {
            for (_, descriptors) in opened { for descriptor in descriptors { descriptor.close() } }
            throw error
        }
        self.shared.withAdmission { $0.prepare(plan.configuration) }
        self.shared.hub.tokenVerifier = plan.roomVerifier
        self.state.withLock { $0.plan = plan }
        try await self.serve(opened)
        return self.boundListeners
    }

    /// The open listeners, in the configuration's order.
    package var boundListeners: [BoundListener] {
        self.state.withLock { state in
            (state.plan?.listeners ?? []).compactMap { plan in
                state.boundAddresses[plan.configuration.name].map {
                    BoundListener(listener: plan.configuration, address: $0)
                }
            }
        }
    }

    /// Replaces the running configuration. Listeners whose address did not change keep listening; open connections keep
    /// the routes they were matched to.
    ///
    /// Settings apply before a listener accepts, and are withdrawn only after it accepts nothing more: no client is
    /// refused because of a reload.
    /// - Throws: `GatewayPlanError`; nothing is changed then.
    package func reload(_ configuration: Configuration) async throws(GatewayPlanError) {
        let former = self.state.withLock { $0.plan }
        let plan = try GatewayPlan(configuration, former: former, log: self.shared.log)
        var opened: [(ListenerPlan, [Descriptor])] = []
        let kept = plan.listeners.filter { listener in
            let before = former?.listener(named: listener.configuration.name)?.configuration.address
            return before.map { listener.configuration.address.sharesSocket(with: $0) } ?? false
        }
        let keptNames = Set(kept.map(\.configuration.name))
        do throws(GatewayPlanError) {
            for listener in plan.listeners where !keptNames.contains(listener.configuration.name) {
                try self.refuseTaken(listener.configuration, by: kept)
                let joins = self.isBound(listener.configuration.address, by: former?.listeners ?? [])
                opened.append((listener, try self.openSockets(listener.configuration, joins: joins)))
            }
            for listener in kept { try self.setMode(listener.configuration) }
        } catch {
            for (_, descriptors) in opened { for descriptor in descriptors { descriptor.close() } }
            throw error
        }
        self.shared.withAdmission { $0.prepare(configuration) }
        do throws(GatewayPlanError) {
            try await self.serve(opened)
        } catch {
            if let former { self.shared.withAdmission { $0.reload(former.configuration) } }
            throw error
        }
        for listener in kept { await self.onEachLoop { $0.replace(listener) } }
        let observer = self.state.withLock { state in
            state.plan = plan
            return state.tokenSourceObserver
        }
        self.shared.hub.apply(configuration.rooms)
        self.shared.hub.tokenVerifier = plan.roomVerifier
        observer?(plan.tokenSources)
        await self.closeAll(of: former, but: plan)
        self.shared.withAdmission { $0.retire(allBut: configuration) }
        self.shared.eventLog?.publish(GatewayEvent(.reloaded))
    }

    /// - Parameter observer: called after each reload with the token sources that it made.
    package func observeTokenSources(_ observer: @escaping @Sendable ([TokenSource]) -> Void) {
        self.state.withLock { $0.tokenSourceObserver = observer }
    }

    /// Closes listeners that were removed, or replaced by one of the same name.
    private func closeAll(of former: GatewayPlan?, but plan: GatewayPlan) async {
        await self.onEachLoop { $0.closeReplaced() }
        for old in former?.listeners ?? [] where plan.listener(named: old.configuration.name) == nil {
            await self.closeListener(old.configuration.name)
        }
    }

    /// Publishes an event for a rejected configuration.
    package func reloadFailed(_ detail: String) {
        var event = GatewayEvent(.reloadFailed)
        event.detail = String(detail.prefix(1024))
        self.shared.eventLog?.publish(event)
    }

    /// `nil` without a control plane.
    package var eventLog: EventLog? { self.shared.eventLog }

    /// Applies the configured permission bits to the file of a Unix socket that stays open.
    private func setMode(_ listener: ListenerConfiguration) throws(GatewayPlanError) {
        guard case .unix(let path, let mode) = listener.address,
            let error = self.loops.first?.system.setMode(mode, ofSocketFile: path)
        else { return }
        throw GatewayPlanError(.mode(path: path, error), at: .listener(listener.name))
    }

    /// One socket for each loop: TCP listeners share the port, others the socket.
    /// - Parameter joins: a listener to be closed after this reload still uses the address.
    private func openSockets(
        _ listener: ListenerConfiguration, joins: Bool = false
    ) throws(GatewayPlanError) -> [Descriptor] {
        var descriptors: [Descriptor] = []
        do throws(SystemError) {
            for (index, loop) in self.loops.enumerated() {
                if index > 0, let first = descriptors.first, !listener.address.opensOnEachLoop {
                    descriptors.append(try first.duplicated().get())
                    continue
                }
                descriptors.append(try self.openSocket(listener, like: descriptors.first, joins: joins, on: loop))
            }
            return descriptors
        } catch {
            for descriptor in descriptors { descriptor.close() }
            throw GatewayPlanError(
                error == .addressInUse && joins ? .system(error) : .init(listening: error, at: listener.address),
                at: .listener(listener.name, at: listener.address))
        }
    }

    private func openSocket(
        _ listener: ListenerConfiguration, like first: Descriptor?, joins: Bool, on loop: Loop
    ) throws(SystemError) -> Descriptor {
        var options = ListenOptions()
        options.backlog = Int32(clamping: listener.backlog)
        if listener.address.opensOnEachLoop { options.portSharing = first == nil && !joins ? .begin : .join }
        switch listener.address {
        case .tcp(let address, let port):
            let picked = first.flatMap { loop.system.localAddress($0)?.port } ?? port
            return try loop.system.listen(SocketAddress(address, port: picked), options: options).get()
        case .tcpAny(let port):
            options.dualStack = true
            let picked = first.flatMap { loop.system.localAddress($0)?.port } ?? port
            let anywhere = SocketAddress.ipv6(high: 0, low: 0, scope: 0, port: picked)
            return try loop.system.listen(anywhere, options: options).get()
        case .unix(let path, let mode):
            options.mode = mode
            return try loop.system.listen(.unix(path: path), options: options).get()
        case .adopted(let wanted):
            guard let passed = wanted.find(in: self.passedSockets) else { throw .noSuchFile }
            return try passed.duplicated().get()
        }
    }

    /// Starts accepting on all of them, or on none if it throws.
    private func serve(_ opened: [(listener: ListenerPlan, descriptors: [Descriptor])]) async throws(GatewayPlanError) {
        let formerAddresses = self.state.withLock { $0.boundAddresses }
        var served = 0
        var failure: GatewayPlanError?
        for (listener, descriptors) in opened {
            served += 1
            let name = listener.configuration.name
            let address = descriptors.first.flatMap { self.loops.first?.system.localAddress($0) }
            if let address { self.state.withLock { $0.boundAddresses[name] = address } }
            guard let error = await self.serve(listener, on: descriptors) else { continue }
            failure = GatewayPlanError(.system(error), at: .listener(name))
            break
        }
        guard let failure else { return }
        for (listener, _) in opened.prefix(served) {
            await self.onEachLoop { $0.withdraw(listener) }
        }
        for (_, descriptors) in opened.dropFirst(served) { for descriptor in descriptors { descriptor.close() } }
        self.state.withLock { $0.boundAddresses = formerAddresses }
        throw failure
    }

    private func serve(_ listener: ListenerPlan, on descriptors: [Descriptor]) async -> SystemError? {
        for (index, loopGateway) in self.loopGateways.enumerated() {
            let descriptor = descriptors[index]
            let error = await loopGateway.perform { loopGateway -> SystemError? in
                do throws(SystemError) {
                    try loopGateway.open(listener, on: descriptor)
                    return nil
                } catch {
                    return error
                }
            }
            guard let error else { continue }
            for rest in descriptors.dropFirst(index + 1) { rest.close() }
            return error
        }
        return nil
    }

    private func closeListener(_ name: String) async {
        await self.onEachLoop { $0.closeListener(name) }
        self.state.withLock { $0.boundAddresses[name] = nil }
    }

    private func onEachLoop(_ body: @escaping @Sendable (LoopGateway) -> Void) async {
        for loopGateway in self.loopGateways { await loopGateway.perform(body) }
    }

    // MARK: Ending

    /// Description of what `drain` does, for the log.
    package var drainDescription: String {
        let settings = self.drainSettings
        let count = self.shared.withAdmission { $0.connections }
        return """
            draining: \(count) connections are closed within \(DurationText(settings.closeSpread)); those still open after \
            \(DurationText(settings.timeout)) are reset
            """
    }

    private var drainSettings: DrainSettings {
        self.state.withLock { $0.plan?.configuration.drain } ?? DrainSettings()
    }

    /// Longest duration of `drain`.
    package var drainTimeout: Duration { self.drainSettings.timeout }

    /// Stops listening, asks every connection to close over the drain's close spread, and resets the remaining ones at
    /// its timeout. Returns when none is left.
    package func drain() async {
        let settings = self.drainSettings
        self.shared.eventLog?.publish(GatewayEvent(.drainStarted))
        defer { self.shared.eventLog?.publish(GatewayEvent(.drainEnded)) }
        await withTaskGroup(of: Void.self) { group in
            for loopGateway in self.loopGateways {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        loopGateway.execute { loopGateway in
                            loopGateway.drain(settings) { continuation.resume() }
                        }
                    }
                }
            }
        }
    }

    /// Resets all connections at once.
    package func abandon() async {
        await self.onEachLoop { $0.abandonAll() }
    }

    /// Tells the other nodes that this one is gone, and ends its connections to Redis. Takes 2 seconds at most.
    package func leaveCluster() async {
        self.cluster?.stop()
        await self.membership?.leave()
        await self.onEachLoop { $0.rooms.broker.stop() }
    }
}

/// The gateway's connections as the control plane sees them. From any thread.
extension Gateway {
    /// Connections reported in one turn of a loop, so that a long list does not delay traffic.
    static let reportsPerTurn = 128

    /// An open connection with its task.
    package struct Live: Sendable {
        package let endpoint: RelayEndpoint?
        package let report: ConnectionReport
    }

    /// Result of looking a connection up by its key.
    package enum Lookup: Sendable {
        case live(Live)
        case closed(ConnectionReport)
        case unknown
    }

    private func loopGateway(of key: ConnectionKey) -> LoopIsolated<LoopGateway>? {
        guard key.number > 0, !self.loopGateways.isEmpty else { return nil }
        return self.loopGateways[Int((key.number - 1) % UInt64(self.loopGateways.count))]
    }

    /// Identifiers of all live connections, in ascending order.
    /// - Parameter first: the smallest identifier returned.
    package func liveIdentifiers(from first: UInt64 = 0) async -> [UInt64] {
        var numbers: [UInt64] = []
        for loopGateway in self.loopGateways {
            numbers += await loopGateway.perform { $0.liveIdentifiers(from: first) }
        }
        return numbers.radixSorted()
    }

    /// Reports of the connections that are still open, unordered; two for a tunnel.
    /// - Returns: one array for each turn of a loop, not joined because reports are large.
    package func reports(of numbers: [UInt64]) async -> [[ConnectionReport]] {
        var byLoop: [[UInt64]] = Array(repeating: [], count: self.loopGateways.count)
        for number in numbers where number > 0 {
            byLoop[Int((number - 1) % UInt64(self.loopGateways.count))].append(number)
        }
        var reports: [[ConnectionReport]] = []
        for (loopGateway, numbers) in zip(self.loopGateways, byLoop) {
            var rest = numbers[...]
            while !rest.isEmpty {
                let turn = rest.prefix(Self.reportsPerTurn)
                rest = rest.dropFirst(turn.count)
                reports.append(await loopGateway.perform { $0.reports(of: turn) })
            }
        }
        return reports
    }

    /// Reports of the connections that ended last, unordered.
    package func closedReports() async -> [ConnectionReport] {
        var reports: [ConnectionReport] = []
        for loopGateway in self.loopGateways {
            reports += await loopGateway.perform { Array($0.closed.reports) }
        }
        return reports
    }

    package func find(_ key: ConnectionKey) async -> Lookup {
        guard let loopGateway = self.loopGateway(of: key) else { return .unknown }
        return await loopGateway.perform { loopGateway in
            switch loopGateway.find(key) {
            case .live(let report):
                .live(Live(endpoint: loopGateway.live[key.number]?.endpoint(on: key.side), report: report))
            case .closed(let report): .closed(report)
            case .unknown: .unknown
            }
        }
    }

    /// Closes a connection in an orderly way, and its tunnel with it.
    /// - Returns: whether the connection was found.
    package func stop(_ key: ConnectionKey, _ signal: CloseSignal) async -> Bool {
        await self.withLive(key) { $0.stop(signal) }
    }

    /// Ends a connection at once with a reset, and its tunnel with it.
    /// - Returns: whether the connection was found.
    package func abort(_ key: ConnectionKey) async -> Bool {
        await self.withLive(key) { $0.abandon(.operator, .stopped) }
    }

    private func withLive(_ key: ConnectionKey, _ body: @escaping @Sendable (any LiveConnection) -> Void) async -> Bool
    {
        guard let loopGateway = self.loopGateway(of: key) else { return false }
        return await loopGateway.perform { loopGateway in
            guard let connection = loopGateway.live[key.number] else { return false }
            body(connection)
            return true
        }
    }

    /// Replaces a connection's labels; empty removes them.
    /// - Returns: whether the connection was found.
    package func setLabels(_ labels: [String: String], of key: ConnectionKey) async -> Bool {
        guard let loopGateway = self.loopGateway(of: key) else { return false }
        return await loopGateway.perform { loopGateway in
            guard loopGateway.live[key.number] != nil else { return false }
            loopGateway.labels[key] = labels.isEmpty ? nil : labels
            return true
        }
    }

    /// The messages of a connection that ended before all were received; `nil` if there are none.
    package func unreadSession(_ key: ConnectionKey) async -> WebSocketTask? {
        guard let loopGateway = self.loopGateway(of: key) else { return nil }
        return await loopGateway.perform { loopGateway in
            loopGateway.unreadSessions.first { $0.identifier == key.number }?.webSocket
        }
    }
}

/// Opening connections and tunnels on request. From any thread; cancelling the awaiting Swift task cancels the opening.
extension Gateway {
    package typealias Opening = Result<ConnectionKey, ClientFailure>
    package typealias KeyObserver = @Sendable (ConnectionKey) -> Void

    /// Opens a connection, on the next loop in rotation.
    /// - Parameter keyAssigned: called on the loop as soon as the connection has its key.
    /// - Returns: its key, once it is open.
    package func open(_ request: ClientConnectionRequest, keyAssigned: KeyObserver? = nil) async -> Opening {
        await self.opening(keyAssigned) { $0.open(request, $1) }
    }

    /// Opens a tunnel between two peers, both its connections on one loop.
    /// - Parameter keyAssigned: called on the loop as soon as the tunnel has its key.
    /// - Returns: key of the downstream side, once both are open and joined.
    package func open(_ request: ClientTunnelRequest, keyAssigned: KeyObserver? = nil) async -> Opening {
        await self.opening(keyAssigned) { $0.open(request, $1) }
    }

    private func opening(
        _ keyAssigned: KeyObserver?,
        _ begin: @escaping @Sendable (LoopGateway, @escaping ClientSession.Opened) -> any LiveConnection
    ) async -> Opening {
        guard let loopGateway = self.nextLoopGateway() else {
            return .failure(ClientFailure(nil, failure: .ended, response: nil))
        }
        let shared = LoopIsolated(SharedOpening(), on: loopGateway.loop)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loopGateway.execute { loopGateway in
                    let connection = begin(loopGateway) { result in
                        shared.value.opening.completed()
                        continuation.resume(returning: result)
                    }
                    keyAssigned?(connection.context.key)
                    shared.value.opening.began(connection)?.abandon(.operator, .stopped)
                }
            }
        } onCancel: {
            shared.execute { $0.opening.cancelled()?.abandon(.operator, .stopped) }
        }
    }
}

/// An opening that a request and its cancellation refer to. On its loop.
private final class SharedOpening {
    var opening = PendingOpening<any LiveConnection>.beginning
}

extension Gateway {
    /// Whether one of `listeners`, which are open, takes connections at `address`.
    private func isBound(_ address: ListenAddress, by listeners: [ListenerPlan]) -> Bool {
        let addresses = self.state.withLock { $0.boundAddresses }
        return listeners.map(\.configuration).contains { listener in
            addresses[listener.name].map { address.overlaps(listener.address.resolvingPort($0.port ?? 0)) } ?? false
        }
    }

    /// Refuses a new listener on a port that the system chose for one that stays open: the kernel would let both
    /// listen, and distribute connections between them.
    private func refuseTaken(_ listener: ListenerConfiguration, by kept: [ListenerPlan]) throws(GatewayPlanError) {
        let addresses = self.state.withLock { $0.boundAddresses }
        for other in kept.map(\.configuration) {
            guard let port = addresses[other.name]?.port, listener.address.overlaps(other.address.resolvingPort(port))
            else {
                continue
            }
            throw GatewayPlanError(
                .otherListener(other.name), at: .listener(listener.name, at: listener.address))
        }
    }
}

/// Health of upstream endpoints, for the control plane. From any thread.
extension Gateway {
    /// One endpoint at one moment.
    package struct EndpointSnapshot: Sendable {
        package let url: EndpointURL
        /// Connecting and open.
        package let connections: Int
        /// Not chosen for a while because of repeated failures.
        package let isEjected: Bool
    }

    /// In the configuration's order; empty for an upstream without a route.
    package func endpointSnapshots(ofUpstream name: String) -> [EndpointSnapshot] {
        self.state.withLock { $0.plan }?.endpointSnapshots(ofUpstream: name, at: self.now) ?? []
    }
}

extension GatewayPlan {
    /// In the configuration's order; empty for an upstream without a route.
    package func endpointSnapshots(ofUpstream name: String, at now: MonotonicInstant) -> [Gateway.EndpointSnapshot] {
        guard let upstream = self.upstreams.first(where: { $0.configuration.name == name }) else { return [] }
        return upstream.balancer.withLock { balancer in
            upstream.configuration.endpoints.enumerated().map { index, endpoint in
                Gateway.EndpointSnapshot(
                    url: endpoint.url, connections: balancer.connections(of: index),
                    isEjected: balancer.isEjected(index, at: now))
            }
        }
    }
}
