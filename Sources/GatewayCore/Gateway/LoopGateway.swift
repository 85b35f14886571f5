import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The gateway on one loop: listeners and the connections they accepted. A connection never leaves its loop.
package final class LoopGateway {
    package let loop: Loop
    let index: Int
    let shared: GatewayShared
    let rooms: LoopRooms
    private var listeners: [String: LoopListener] = [:]
    /// Listeners whose name a new one has taken; they accept until the reload is complete.
    private var replacedListeners: [String: LoopListener] = [:]
    /// Queues of listeners with TLS handshakes in progress.
    var handshakeQueues: [String: HandshakeQueue] = [:]
    private(set) var live: [UInt64: any LiveConnection] = [:]
    private(set) var isDraining = false
    private var whenEmpty: (() -> Void)?
    var drainer: LoopDrainer?
    private let memoryTimer = LoopTimer()
    private var looksForMemory = false
    /// Number of identifiers assigned on this loop.
    private var sequence: UInt64 = 0
    var closed: ClosedConnections
    var totals = LoopMetrics()
    /// Labels of the connections that have any.
    var labels: [ConnectionKey: [String: String]] = [:]
    /// Opening handshakes of open connections, if they are kept for the REST interface.
    var handshakes: [UInt64: HandshakeMetadata] = [:]
    /// Ended connections with unread messages, oldest first.
    var unreadSessions: [ClientSession] = []

    package init(loop: Loop, index: Int, shared: GatewayShared) {
        self.loop = loop
        self.index = index
        self.shared = shared
        self.rooms = LoopRooms(hub: shared.hub, loop: loop, loopIndex: index)
        if shared.eventLog != nil {
            LoopTaskMetrics.shared(on: loop).keepsRoundTrips = true
            AddedLatency.shared(on: loop).isEnabled = true
        }
        self.closed = ClosedConnections(limit: shared.closedLimit(onLoop: index))
        self.rooms.register()
    }

    // MARK: Listeners

    /// Starts a listener on a listening descriptor. A listener of the same name keeps accepting until `closeReplaced`.
    /// - Throws: the descriptor is closed then, and the listener of that name is unchanged.
    package func open(_ plan: ListenerPlan, on descriptor: Descriptor) throws(SystemError) {
        let place = LoopListener(plan, gateway: self)
        _ = self.loop.system.apply(plan.configuration.keepAlive.socketOptions, to: descriptor)
        place.socket = try SocketListener(adopting: descriptor, on: self.loop, owner: place)
        if let former = self.listeners.updateValue(place, forKey: plan.configuration.name) {
            self.replacedListeners[plan.configuration.name] = former
        }
    }

    /// Reverts `open`, if it was called here.
    func withdraw(_ plan: ListenerPlan) {
        let name = plan.configuration.name
        guard let place = self.listeners[name], place.plan === plan else { return }
        self.close(place)
        self.listeners[name] = self.replacedListeners.removeValue(forKey: name)
    }

    func closeReplaced() {
        for (_, place) in self.replacedListeners.sorted(by: { $0.key < $1.key }) { self.close(place) }
        self.replacedListeners = [:]
    }

    /// New connections of this listener use `plan`; existing ones keep theirs.
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

    /// Accepts the connections already in the kernel's queue, then closes.
    private func close(_ place: LoopListener) {
        if !self.isDraining { place.socket?.acceptWaiting() }
        place.socket?.close()
        // All loops share the one socket file, and each may be the first to close it; the file of an adopted socket
        // belongs to its creator.
        if case .unix(let path, _) = place.plan.configuration.address { self.loop.system.removeSocketFile(path) }
    }

    func handshakeQueue(of listener: String) -> HandshakeQueue {
        if let queue = self.handshakeQueues[listener] { return queue }
        let queue = HandshakeQueue(self, listener: listener)
        self.handshakeQueues[listener] = queue
        return queue
    }

    // MARK: Connections

    /// All connections of this loop.
    package var liveConnections: [AnyObject] {
        self.live.values.map { $0 as AnyObject }
    }

    /// Largest number of bytes queued by one connection of the route.
    package func largestQueue(onRoute name: String) -> Int {
        self.live.values.reduce(0) { $1.routeName == name ? max($0, $1.queuedBytes) : $0 }
    }

    /// Open client tasks of one route, in the order of acceptance.
    package func clients(ofRoute name: String) -> [RelayEndpoint] {
        self.live.sorted { $0.key < $1.key }.compactMap { $1.routeName == name ? $1.link(.downstream) : nil }
    }

    /// Every identifier assigned on this loop.
    package var identifiers: [UInt64] {
        (0..<self.sequence).map { self.identifier($0) }
    }

    /// Combines sequence and loop number, so that the loop can be found from an identifier.
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
                ConnectionContext(
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

    /// Replaces a connection under the same identifier: an accepted connection that became a tunnel.
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
        self.closeReplaced()
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
        self.shared.memory?.checkMemory(at: self.loop.now)
        self.looksForMemory = !self.live.isEmpty
        guard self.looksForMemory else { return }
        self.loop.arm(self.memoryTimer, after: MemoryReturn.interval, target: self)
    }
}

extension LoopGateway {
    /// Connects an accepted connection to the endpoint of its route.
    func begin(_ link: InboundTransport, of inbound: InboundConnection, route: RoutePlan) {
        switch (route.configuration.target, link) {
        case (.echo, .stream(let transport)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let echo = StreamEcho(watermarks: route.configuration.tunnel.buffer)
            session.begin(transport) { echo.start($0) }
        case (.echo, .webSocket(let transport, let matched)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            session.accept(
                transport, matched,
                relay: WebSocketEcho(keepsFragmentation: route.configuration.tunnel.keepsFragmentation))
        case (.chat, .webSocket(let transport, let matched)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let room = matched.match.value(of: "room") ?? route.configuration.name
            session.accept(transport, matched, relay: ChatMember(room: room, rooms: self.rooms))
        case (.chat, .stream(let transport)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let settings = route.configuration.tunnel
            let member = StreamChatMember(room: route.configuration.name, rooms: self.rooms, settings: settings)
            session.begin(transport) { member.start($0) }
        case (.upstream, _), (.url, _):
            UpstreamSession(inbound, link: link, route: route, gateway: self).start()
        }
    }

    /// A connection reached its endpoint: payload may flow.
    func opened(_ connection: any LiveConnection, _ context: ConnectionContext, isWebSocket: Bool) {
        self.shared.log.opened(context)
        self.totals.handshakes.add(context.acceptedAt.duration(to: self.loop.now))
        self.replace(connection)
        guard let eventLog = self.shared.eventLog else { return }
        if isWebSocket {
            var event = GatewayEvent(.upgraded, of: context)
            event.reason = "websocket"
            eventLog.publish(event)
        }
        eventLog.publish(GatewayEvent(.opened, of: context))
    }

    /// Logs and counts the end of a connection, and removes it.
    func ended(
        _ context: ConnectionContext, _ reason: TerminationReason, detail: String? = nil, downstream: TaskRecord?,
        upstream: TaskRecord?
    ) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(
            context, reason, detail: detail, downstream: downstream, upstream: upstream, at: self.loop.now)
        for record in [downstream, upstream].compactMap(\.self) { self.totals.end(record, route: context.route) }
        if let opened = downstream?.openedAt { self.totals.lives.add(opened.duration(to: self.loop.now)) }
        let event = self.shared.eventLog.map { _ in GatewayEvent(.closed, of: context) }
        self.recordClosing(context.identifier, reason, detail: detail, event)
        self.remove(context.identifier)
    }
}

extension GatewayEvent {
    init(_ kind: Kind, of context: ConnectionContext) {
        self.init(kind)
        self.connection = ConnectionKey(context.identifier)
        self.listener = context.listener
        self.route = context.route
        self.upstream = context.upstreamPlan?.configuration.name
        self.endpoint = context.upstream
        self.peer = context.client.description
    }
}

/// Connections opened through the control plane, on its loop.
extension LoopGateway {
    /// Sessions kept after their end for their unread messages; beyond that the oldest is dropped.
    private static let unreadSessionLimit = 32

    /// - Returns: the connection; `opened` may have been called already.
    func open(_ request: ClientConnectionRequest, _ opened: @escaping ClientSession.Opened) -> any RequestedConnection {
        let session = ClientSession(request, on: self, opened: opened)
        self.add(session)
        self.keep(request.labels, of: session.key)
        session.start()
        return self.registered(session)
    }

    /// Opens both sides of a tunnel, and joins them.
    func open(_ request: ClientTunnelRequest, _ opened: @escaping ClientSession.Opened) -> any RequestedConnection {
        let tunnel = ClientTunnel(request, on: self, opened: opened)
        self.add(tunnel)
        for side in TunnelSide.allCases { self.keep(request[side].labels, of: ConnectionKey(tunnel.identifier, side)) }
        tunnel.start()
        return self.registered(tunnel)
    }

    private func keep(_ labels: [String: String], of key: ConnectionKey) {
        if !labels.isEmpty { self.labels[key] = labels }
    }

    private func registered(_ connection: some RequestedConnection) -> any RequestedConnection {
        if self.isDraining, self.live[connection.identifier] != nil { connection.drain() }
        return connection
    }

    /// Payload may flow.
    func connectionOpened(_ connection: any RequestedConnection, since beginning: MonotonicInstant) {
        self.shared.log.opened(connection.key, url: connection.url, upstream: connection.upstreamURL)
        self.totals.handshakes.add(beginning.duration(to: self.loop.now))
        self.shared.eventLog?.publish(GatewayEvent(.opened, of: connection))
    }

    /// Records the end of a requested connection.
    func ended(_ connection: any RequestedConnection, _ reason: TerminationReason, detail: String?) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(
            connection.key, url: connection.url, upstream: connection.upstreamURL, reason, detail: detail)
        for record in connection.records { self.totals.end(record, route: nil) }
        if let opened = connection.openedAt { self.totals.lives.add(opened.duration(to: self.loop.now)) }
        let event = self.shared.eventLog.map { _ in GatewayEvent(.closed, of: connection) }
        self.recordClosing(connection.identifier, reason, detail: detail, event)
        self.remove(connection.identifier)
    }

    func keepUnread(_ session: ClientSession) {
        guard self.closed.limit > 0 else { return }
        self.unreadSessions.removeAll { ($0.webSocket?.unreadMessages ?? 0) == 0 }
        if self.unreadSessions.count >= Self.unreadSessionLimit { self.unreadSessions.removeFirst() }
        self.unreadSessions.append(session)
    }
}

extension LoopGateway {
    /// Ends this loop's part: closing handshakes begin spread evenly over the close spread, and at the timeout the rest
    /// is cut.
    package func drain(_ settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        let drainer = LoopDrainer(self, settings: settings, whenEmpty: whenEmpty)
        self.drainer = drainer
        drainer.begin()
    }
}

/// Snapshots for the control plane. Each visits at most a few hundred connections a step, so that traffic is not
/// delayed.
extension LoopGateway {
    /// Result of looking a connection up.
    package enum Finding: Sendable {
        case live(ConnectionReport)
        case closed(ConnectionReport)
        case unknown
    }

    func liveIdentifiers(from first: UInt64) -> [UInt64] {
        first == 0 ? Array(self.live.keys) : self.live.keys.filter { $0 >= first }
    }

    /// Reports of those in `identifiers` that are still open, in that order.
    package func reports(of identifiers: ArraySlice<UInt64>) -> [ConnectionReport] {
        let now = self.loop.now
        var reports: [ConnectionReport] = []
        reports.reserveCapacity(identifiers.count)
        for identifier in identifiers {
            self.live[identifier]?.report(at: now, to: &reports)
        }
        self.complete(&reports)
        return reports
    }

    /// Adds properties stored beside the connections.
    private func complete(_ reports: inout [ConnectionReport]) {
        guard !self.labels.isEmpty || !self.handshakes.isEmpty else { return }
        for index in reports.indices {
            let key = reports[index].key
            reports[index].labels = self.labels[key] ?? [:]
            guard key.side == .downstream, reports[index].handshake == nil else { continue }
            reports[index].handshake = self.handshakes[key.number]
        }
    }

    /// Keeps an opening handshake for the REST interface.
    func keepHandshake(_ identifier: UInt64, _ request: RequestHead, _ response: [UInt8]) {
        guard self.shared.keepsHandshakes else { return }
        self.handshakes[identifier] = HandshakeMetadata(request, response: response)
    }

    func find(_ key: ConnectionKey) -> Finding {
        if let report = self.reports(of: [key.number]).first(where: { $0.key == key }) { return .live(report) }
        return self.closed.report(key).map { .closed($0) } ?? .unknown
    }

    /// Records the end of a connection and publishes `event`.
    private func recordClosing(
        _ identifier: UInt64, _ reason: TerminationReason, detail: String?, _ event: GatewayEvent?
    ) {
        guard self.closed.limit > 0 || event != nil else { return }
        var event = event
        for var report in self.reports(of: [identifier]) {
            report.stage = .closed
            report.closing = ClosingRecord(at: report.takenAt, reason: reason, detail: detail)
            if report.key.side == .downstream { event?.add(report) }
            self.closed.append(report)
        }
        guard var event else { return }
        event.reason = reason.description
        event.detail = detail
        self.shared.eventLog?.publish(event)
    }
}
