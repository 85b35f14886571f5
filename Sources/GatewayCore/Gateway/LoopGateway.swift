import SessionTasks
import StreamTransport

/// The gateway's part on one loop: its listeners, and the connections they took. A connection never leaves its loop.
package final class LoopGateway {
    package let loop: Loop
    let index: Int
    let shared: GatewayShared
    let floor: ChatFloor
    private var listeners: [String: ListeningPlace] = [:]
    /// Listeners whose name a new one has taken; they accept until the reload is complete.
    private var displaced: [String: ListeningPlace] = [:]
    /// Of listeners that have TLS handshakes under way.
    var handshakeQueues: [String: HandshakeQueue] = [:]
    private(set) var live: [UInt64: any LiveConnection] = [:]
    private(set) var isDraining = false
    private var whenEmpty: (() -> Void)?
    var drainer: LoopDrainer?
    private let memoryTimer = LoopTimer()
    private var looksForMemory = false
    /// Identifiers given out on this loop so far.
    private var sequence: UInt64 = 0
    var closed: ClosedConnections
    var totals = LoopTotals()
    /// Of those few connections that have any.
    var labels: [ConnectionKey: [String: String]] = [:]
    /// Opening handshakes of those that have one, where somebody may ask for them.
    var handshakes: [UInt64: HandshakeFacts] = [:]
    /// Connections that ended with messages nobody has received yet, the oldest first.
    var leftovers: [ClientSession] = []

    package init(loop: Loop, index: Int, shared: GatewayShared) {
        self.loop = loop
        self.index = index
        self.shared = shared
        self.floor = ChatFloor(hub: shared.hub, loop: loop, loopIndex: index)
        if shared.journal != nil {
            LoopTally.shared(on: loop).keepsRoundTrips = true
            AddedLatency.shared(on: loop).isWanted = true
        }
        self.closed = ClosedConnections(limit: shared.closedLimit(onLoop: index))
        self.floor.settle()
    }

    // MARK: Listeners

    /// Puts an open, listening descriptor to work. A listener of the same name goes on accepting until
    /// `closeDisplaced`.
    /// - Throws: the descriptor is closed then, and the listener of that name is what it was.
    package func open(_ plan: ListenerPlan, on descriptor: Descriptor) throws(SystemError) {
        let place = ListeningPlace(plan, gateway: self)
        _ = self.loop.system.apply(plan.configuration.keepAlive.socketOptions, to: descriptor)
        place.socket = try SocketListener(adopting: descriptor, on: self.loop, owner: place)
        if let former = self.listeners.updateValue(place, forKey: plan.configuration.name) {
            self.displaced[plan.configuration.name] = former
        }
    }

    /// Takes `open` back, if it came to that here.
    func withdraw(_ plan: ListenerPlan) {
        let name = plan.configuration.name
        guard let place = self.listeners[name], place.plan === plan else { return }
        self.close(place)
        self.listeners[name] = self.displaced.removeValue(forKey: name)
    }

    func closeDisplaced() {
        for (_, place) in self.displaced.sorted(by: { $0.key < $1.key }) { self.close(place) }
        self.displaced = [:]
    }

    /// New connections of this listener follow `plan`; those that are there keep the one they came under.
    func replace(_ plan: ListenerPlan) {
        guard let place = self.listeners[plan.configuration.name] else { return }
        place.plan = plan
        if let socket = place.socket {
            _ = self.loop.system.apply(plan.configuration.keepAlive.socketOptions, to: socket.descriptor)
        }
    }

    package func closeListener(_ name: String) {
        guard let place = self.listeners.removeValue(forKey: name) else { return }
        self.close(place)
    }

    /// Clients whose connections stand already are still taken.
    private func close(_ place: ListeningPlace) {
        if !self.isDraining { place.socket?.acceptWaiting() }
        place.socket?.close()
        // All loops share the one socket, and each may be the first to close it; an adopted one belongs to whoever made
        // it.
        if case .unix(let path, _) = place.plan.configuration.address { self.loop.system.removeSocketFile(path) }
    }

    func handshakeQueue(of listener: String) -> HandshakeQueue {
        if let queue = self.handshakeQueues[listener] { return queue }
        let queue = HandshakeQueue(self, listener: listener)
        self.handshakeQueues[listener] = queue
        return queue
    }

    // MARK: Connections

    /// Whatever lives on this loop now.
    package var liveConnections: [AnyObject] {
        self.live.values.map { $0 as AnyObject }
    }

    /// Of the connections of one route, the most bytes that one holds back for want of a reader.
    package func mostQueuedBytes(onRoute name: String) -> Int {
        self.live.values.reduce(0) { $1.routeName == name ? max($0, $1.queuedBytes) : $0 }
    }

    /// The tasks of one route's clients that live, in the order of acceptance.
    package func clients(ofRoute name: String) -> [TunnelLink] {
        self.live.sorted { $0.key < $1.key }.compactMap { $1.routeName == name ? $1.link(.downstream) : nil }
    }

    /// Every identifier given out on this loop, to accepted connections and to those opened by command.
    package var identifiers: [UInt64] {
        (0..<self.sequence).map { self.identifier($0) }
    }

    /// Tells the loop, so that who has an identifier need not ask them all.
    private func identifier(_ sequence: UInt64) -> UInt64 {
        sequence &* UInt64(max(1, self.shared.loopCount)) &+ UInt64(self.index) &+ 1
    }

    func nextIdentifier() -> UInt64 {
        defer { self.sequence += 1 }
        return self.identifier(self.sequence)
    }

    func accepted(_ socket: AcceptedSocket, by plan: ListenerPlan) {
        do throws(SystemError) {
            let transport = try SocketConnection(
                adopting: socket.descriptor, peer: socket.peer, local: socket.local, on: self.loop,
                options: plan.configuration.keepAlive.socketOptions, inherits: true, paused: true)
            let inbound = InboundConnection(
                ConnectionPassport(
                    identifier: self.nextIdentifier(), listener: plan.configuration.name, peer: socket.peer,
                    acceptedAt: self.loop.now), plan: plan, transport: transport, gateway: self)
            self.add(inbound)
            inbound.start()
        } catch {
            self.shared.counters.acceptFailed()
        }
    }

    func add(_ connection: any LiveConnection) {
        self.live[connection.identifier] = connection
        guard self.shared.memory != nil, !self.looksForMemory else { return }
        self.looksForMemory = true
        self.loop.arm(self.memoryTimer, after: MemoryReturn.interval, target: self)
    }

    /// One connection became another under the same identifier: what was accepted became a tunnel.
    func replace(_ connection: any LiveConnection) {
        guard let place = self.live.index(forKey: connection.identifier) else { return }
        self.live.values[place] = connection
        if self.isDraining { connection.drain() }
    }

    func remove(_ identifier: UInt64) {
        let wasLive = self.live.removeValue(forKey: identifier) != nil
        self.handshakes[identifier] = nil
        if !self.labels.isEmpty {
            for side in TunnelSide.allCases { self.labels[ConnectionKey(identifier, side)] = nil }
        }
        guard wasLive, self.live.isEmpty else { return }
        let whenEmpty = self.whenEmpty
        self.whenEmpty = nil
        whenEmpty?()
    }

    // MARK: Shutdown

    /// Stops listening. `whenEmpty` is called when the last connection is over; at once if none is there.
    func beginDrain(whenEmpty: @escaping () -> Void) {
        self.isDraining = true
        self.closeDisplaced()
        for name in self.listeners.keys.sorted() { self.closeListener(name) }
        guard !self.live.isEmpty else { return whenEmpty() }
        self.whenEmpty = whenEmpty
    }

    func drain(_ identifier: UInt64) {
        self.live[identifier]?.drain()
    }

    /// In the order of acceptance, so that a simulation can be replayed.
    package func abandonAll() {
        for (_, connection) in self.live.sorted(by: { $0.key < $1.key }) { connection.abandon(.operator, .drained) }
    }
}

extension LoopGateway: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.shared.memory?.look(at: self.loop.now)
        self.looksForMemory = !self.live.isEmpty
        guard self.looksForMemory else { return }
        self.loop.arm(self.memoryTimer, after: MemoryReturn.interval, target: self)
    }
}
