import GatewayConfiguration
import Rooms
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
    /// Listeners replaced by one of the same name; they accept until the reload is complete.
    private var replacedListeners: [String: LoopListener] = [:]
    /// Queues of listeners with TLS handshakes in progress.
    var handshakeQueues: [String: HandshakeQueue] = [:]
    private(set) var live: [UInt64: any LiveConnection] = [:]
    private var drainPhase = DrainPhase.serving
    private let memoryTimer = LoopTimer()
    /// Number of identifiers assigned on this loop.
    private var sequence: UInt64 = 0
    var closed: ClosedConnections
    var metrics = LoopMetrics()
    /// Labels of the connections that have any.
    var labels: [ConnectionKey: [String: String]] = [:]
    /// Opening handshakes of open connections, if they are kept for the REST interface.
    private var handshakes: [ConnectionKey: HandshakeMetadata] = [:]
    /// Ended connections with unread messages, oldest first.
    var unreadSessions: [ClientSession] = []

    package init(loop: Loop, index: Int, shared: GatewayShared) {
        self.loop = loop
        self.index = index
        self.shared = shared
        self.rooms = LoopRooms(hub: shared.hub, loop: loop, loopIndex: index)
        self.closed = ClosedConnections(limit: shared.closedLimit(onLoop: index))
    }

    /// Makes this the gateway of its loop. Called on the loop, first of all; `init` may be called anywhere.
    package func start() {
        self.rooms.register()
        let log = self.shared.log
        self.loop.slowWorkObserver = { log.slowWork($0) }
        guard self.shared.eventLog != nil else { return }
        LoopTaskMetrics.shared(on: self.loop).keepsRoundTrips = true
        RelayLatency.shared(on: self.loop).isEnabled = true
    }

    // MARK: Listeners

    /// Starts a listener on a listening descriptor. A listener of the same name keeps accepting until `closeReplaced`.
    /// - Throws: the descriptor is closed then, and the listener of that name is unchanged.
    package func open(_ plan: ListenerPlan, on descriptor: Descriptor) throws(SystemError) {
        self.loop.assertOnLoop()
        let listener = LoopListener(plan, gateway: self)
        _ = self.loop.system.apply(plan.configuration.keepAlive.socketOptions, to: descriptor)
        listener.socket = try SocketListener(adopting: descriptor, on: self.loop, owner: listener)
        if case .unix(let path, _) = plan.configuration.address {
            listener.file = self.loop.system.socketFile(at: path)
        }
        if let former = self.listeners.updateValue(listener, forKey: plan.configuration.name) {
            self.replacedListeners[plan.configuration.name] = former
        }
    }

    /// Reverts `open`, if it was called here.
    func withdraw(_ plan: ListenerPlan) {
        let name = plan.configuration.name
        guard let listener = self.listeners[name], listener.plan === plan else { return }
        self.close(listener)
        self.listeners[name] = self.replacedListeners.removeValue(forKey: name)
    }

    func closeReplaced() {
        for (_, listener) in self.replacedListeners.sorted(by: { $0.key < $1.key }) { self.close(listener) }
        self.replacedListeners = [:]
    }

    /// New connections of this listener use `plan`; existing ones keep theirs.
    func replace(_ plan: ListenerPlan) {
        self.loop.assertOnLoop()
        guard let listener = self.listeners[plan.configuration.name] else { return }
        listener.plan = plan
        if let socket = listener.socket {
            _ = self.loop.system.apply(plan.configuration.keepAlive.socketOptions, to: socket.descriptor)
        }
    }

    /// The current plan of a listener; `nil` once it is closed.
    func plan(ofListener name: String) -> ListenerPlan? { self.listeners[name]?.plan }

    package func closeListener(_ name: String) {
        self.loop.assertOnLoop()
        guard let listener = self.listeners.removeValue(forKey: name) else { return }
        self.close(listener)
    }

    /// Accepts the connections already in the kernel's queue, then closes.
    private func close(_ listener: LoopListener) {
        // All loops share the one socket file, and each may be the first to close it; the file of an adopted socket
        // belongs to its creator.
        if let file = listener.file { self.loop.system.remove(file) }
        if !self.isDraining { listener.socket?.acceptWaiting() }
        listener.socket?.close()
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
        self.live.values.reduce(0) { $1.context.routeName == name ? max($0, $1.queuedBytes) : $0 }
    }

    /// Open client tasks of one route, in the order of acceptance.
    package func clients(ofRoute name: String) -> [RelayEndpoint] {
        self.live.sorted { $0.key < $1.key }.compactMap {
            $1.context.routeName == name ? $1.endpoint(on: .downstream) : nil
        }
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
            let context = ConnectionContext(
                .accepted(listener: plan.configuration.name, peer: socket.peer), on: self)
            let inbound = InboundConnection(context, plan: plan, transport: transport)
            self.add(inbound)
            inbound.start()
        } catch {
            self.shared.counters.acceptFailed()
        }
    }

    func add(_ connection: any LiveConnection) {
        self.live[connection.identifier] = connection
        if self.shared.memory != nil, self.memoryTimer.deadline == nil { self.armMemoryTimer() }
    }

    private func armMemoryTimer() {
        self.loop.arm(self.memoryTimer, after: MemoryTrimmer.interval, target: self)
    }

    /// Replaces a connection's owner: an accepted connection that became a tunnel.
    func replace(_ connection: any LiveConnection) {
        guard let index = self.live.index(forKey: connection.identifier), self.live.values[index] !== connection else {
            return
        }
        self.live.values[index] = connection
        if self.isDraining { connection.drain() }
    }

    private func remove(_ identifier: UInt64) {
        let wasLive = self.live.removeValue(forKey: identifier) != nil
        if !self.labels.isEmpty || !self.handshakes.isEmpty {
            for key in TunnelSide.allCases.map({ ConnectionKey(identifier, $0) }) {
                self.labels[key] = nil
                self.handshakes[key] = nil
            }
        }
        guard wasLive, self.live.isEmpty, case .draining(let drainer) = self.drainPhase else { return }
        drainer.finish()
    }

    // MARK: Shutdown

    private var isDraining: Bool {
        if case .serving = self.drainPhase { false } else { true }
    }

    /// Ends this loop's part: stops listening, begins closing handshakes spread evenly over the close spread, and resets
    /// the remaining connections at the timeout.
    /// A drain in progress keeps its schedule.
    /// - Parameter whenEmpty: called when the last connection is over; at once if there is none.
    package func drain(_ settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        self.loop.assertOnLoop()
        if case .draining(let drainer) = self.drainPhase { return drainer.notify(whenEmpty) }
        let drainer = LoopDrainer(self, settings: settings, whenEmpty: whenEmpty)
        self.drainPhase = .draining(drainer)
        self.closeReplaced()
        for name in self.listeners.keys.sorted() { self.closeListener(name) }
        drainer.begin()
    }

    func drained() {
        self.drainPhase = .drained
    }

    func drain(_ identifier: UInt64) {
        self.live[identifier]?.drain()
    }

    /// In the order of acceptance, so that a simulation can be replayed.
    package func abandonAll() {
        self.loop.assertOnLoop()
        for (_, connection) in self.live.sorted(by: { $0.key < $1.key }) { connection.abandon(.operator, .drained) }
    }
}

extension LoopGateway: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.shared.memory?.checkMemory(at: self.loop.now)
        if !self.live.isEmpty { self.armMemoryTimer() }
    }
}

extension LoopGateway {
    /// Connects an accepted connection to the endpoint of its route.
    /// - Parameter matched: the opening request, which is not answered yet; `nil` for a byte stream.
    func begin(
        _ context: ConnectionContext, _ transport: any Transport, _ matched: MatchedRequest?, route: RoutePlan
    ) {
        context.route = route
        context.user = matched?.grant?.subject
        if let expiry = matched?.grant?.expiry { context.tokenExpiry = expiry }
        let settings = route.configuration.tunnel
        switch (route.configuration.target, matched) {
        case (.echo, nil):
            let echo = StreamEcho(watermarks: settings.buffer)
            EndpointSession(context, route: route).begin(transport) { echo.start($0) }
        case (.echo, let matched?):
            let echo = WebSocketEcho(keepsFragmentation: settings.keepsFragmentation)
            EndpointSession(context, route: route).accept(transport, matched, relay: echo)
        case (.chat, _): self.beginChat(context, transport, matched, route: route)
        case (.rooms, _): self.beginRooms(context, transport, matched, route: route)
        case (.upstream, _), (.url, _):
            guard let upstream = route.upstream else { return self.endWithoutEndpoint(context, transport) }
            UpstreamSession(context, transport, matched, route: route, upstream: upstream).start()
        // These answer plain HTTP only.
        case (.files, _), (.page, _), (.roomEvents, _): self.endWithoutEndpoint(context, transport)
        // The request's target has a route of its own.
        case (.targets, _): self.endWithoutEndpoint(context, transport)
        }
    }

    /// The route of the request, to its own target where it names one.
    /// - Throws: 404 for an unknown target.
    func route(of matched: MatchedRequest) throws(HandshakeRefusal) -> RoutePlan {
        try matched.route.targets?.route(for: matched.match, at: self.loop.now, log: self.shared.log) ?? matched.route
    }

    /// The configuration's checks rule this out.
    private func endWithoutEndpoint(_ context: ConnectionContext, _ transport: any Transport) {
        assertionFailure("route \(context.routeName ?? "") has no endpoint for its connection")
        transport.consumer = nil
        transport.reset()
        self.ended(context, TerminationReason(.gateway, .connecting, .system))
    }

    /// The user that the request names in the rooms.
    private func user(of matched: MatchedRequest, _ context: ConnectionContext) -> TrustedUser {
        // The token of the request is a better witness than a field.
        let isProxy = matched.plan.trustsFields(of: context.client)
        let header = isProxy ? self.shared.hub.currentSettings.userHeader : nil
        return TrustedUser(matched.grant, matched.head, header: header, expires: false)
    }

    /// A client without a protocol in a room.
    private func beginChat(
        _ context: ConnectionContext, _ transport: any Transport, _ matched: MatchedRequest?, route: RoutePlan
    ) {
        let session = EndpointSession(context, route: route)
        let client = self.rooms.hub.plainClient(ofConnection: context.identifier)
        guard let matched else {
            let member = PlainStreamMember(
                room: route.configuration.name, rooms: self.rooms, client: client, from: context.client,
                settings: route.configuration.tunnel)
            member.session = session
            return session.begin(transport) { member.start($0) }
        }
        let info = ClientInfo(user: self.user(of: matched, context).name, client: client)
        if !info.user.isEmpty { context.user = info.user }
        let member = PlainWebSocketMember(
            room: matched.match.value(of: "room") ?? route.configuration.name, rooms: self.rooms, info: info,
            from: context.client)
        member.session = session
        session.accept(transport, matched, relay: member)
    }

    /// A client of the rooms' protocol.
    private func beginRooms(
        _ context: ConnectionContext, _ transport: any Transport, _ matched: MatchedRequest?, route: RoutePlan
    ) {
        guard let matched else { return self.endWithoutEndpoint(context, transport) }
        let user = self.user(of: matched, context)
        if !user.name.isEmpty { context.user = user.name }
        let client = RoomWebSocket(context, matched, trustedUser: user)
        EndpointSession(context, route: route).accept(
            transport, matched, relay: client, subprotocols: ProtocolEncoding.subprotocols)
    }

    /// A connection or tunnel is open: payload may flow.
    func opened(_ connection: any LiveConnection) {
        let context = connection.context
        // Not again for a connection that carried plain HTTP before its WebSocket.
        if context.openedAt == nil { self.metrics.handshakes.add(context.createdAt.duration(to: self.loop.now)) }
        context.openedAt = context.openedAt ?? self.loop.now
        self.shared.log.opened(context)
        self.replace(connection)
        guard let eventLog = self.shared.eventLog else { return }
        if case .accepted = context.origin, connection.endpoint(on: .downstream)?.kind == .webSocket {
            var event = GatewayEvent(.upgraded, of: context)
            event.reason = "websocket"
            eventLog.publish(event)
        }
        eventLog.publish(GatewayEvent(.opened, of: context))
    }

    /// Counts what a connection has transferred for its present route, before it gets another.
    func countTraffic(of record: TaskRecord, _ context: ConnectionContext) {
        let traffic = TrafficMetrics(record)
        self.metrics.end(traffic.since(context.countedTraffic), route: context.routeName)
        context.countedTraffic = traffic
    }

    /// Logs and counts the end of a connection or tunnel, and removes it.
    /// - Parameters:
    ///   - downstream: record of its task, or of its tunnel's downstream side; `nil` if it had none.
    ///   - upstream: record of its tunnel's upstream side.
    func ended(
        _ context: ConnectionContext, _ reason: TerminationReason, detail: String? = nil,
        downstream: TaskRecord? = nil, upstream: TaskRecord? = nil
    ) {
        let now = self.loop.now
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(context, reason, detail: detail, downstream: downstream, upstream: upstream, at: now)
        if let downstream {
            let traffic = TrafficMetrics(downstream).since(context.countedTraffic)
            self.metrics.end(traffic, route: context.routeName)
        }
        if let upstream { self.metrics.end(TrafficMetrics(upstream), route: context.routeName) }
        if let opened = context.openedAt { self.metrics.lifetimes.add(opened.duration(to: now)) }
        self.recordClosing(context, reason, detail: detail)
        self.remove(context.identifier)
        context.permit.release(context)
    }
}

extension GatewayEvent {
    init(_ kind: Kind, of context: ConnectionContext) {
        self.init(kind)
        self.connection = context.key
        switch context.origin {
        case .accepted(let listener, _):
            self.listener = listener
            self.route = context.routeName
            self.upstream = context.upstreamName
            self.endpoint = context.endpointURL
            self.peer = context.client.description
            self.user = context.user
        case .requested(let url, let upstreamURL):
            self.url = url
            self.upstream = upstreamURL
        }
    }
}

/// Connections opened through the control plane, on its loop.
extension LoopGateway {
    /// Sessions kept after their end for their unread messages; beyond that the oldest is dropped.
    private static let unreadSessionLimit = 32

    /// - Returns: the connection; `opened` may have been called already.
    func open(_ request: ClientConnectionRequest, _ opened: @escaping ClientSession.Opened) -> any LiveConnection {
        self.loop.assertOnLoop()
        let session = ClientSession(request, on: self, opened: opened)
        self.add(session)
        self.setLabels(request.labels, of: session.context.key)
        session.start()
        return self.begun(session)
    }

    /// Opens both sides of a tunnel, and joins them.
    func open(_ request: ClientTunnelRequest, _ opened: @escaping ClientSession.Opened) -> any LiveConnection {
        self.loop.assertOnLoop()
        let opening = TunnelOpening(request, on: self, opened: opened)
        self.add(opening)
        for side in TunnelSide.allCases {
            self.setLabels(request[side].labels, of: ConnectionKey(opening.identifier, side))
        }
        opening.start()
        return self.begun(opening)
    }

    private func setLabels(_ labels: [String: String], of key: ConnectionKey) {
        if !labels.isEmpty { self.labels[key] = labels }
    }

    private func begun(_ connection: any LiveConnection) -> any LiveConnection {
        if self.isDraining { self.live[connection.identifier]?.drain() }
        return connection
    }

    func keepUnread(_ session: ClientSession) {
        guard self.closed.limit > 0 else { return }
        self.unreadSessions.removeAll { ($0.webSocket?.unreadMessages ?? 0) == 0 }
        if self.unreadSessions.count >= Self.unreadSessionLimit { self.unreadSessions.removeFirst() }
        self.unreadSessions.append(session)
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
        self.loop.assertOnLoop()
        let now = self.loop.now
        var reports: [ConnectionReport] = []
        reports.reserveCapacity(identifiers.count)
        for identifier in identifiers {
            self.live[identifier]?.report(at: now, to: &reports)
        }
        self.complete(&reports)
        return reports
    }

    /// Adds properties stored outside the connections.
    private func complete(_ reports: inout [ConnectionReport]) {
        guard !self.labels.isEmpty || !self.handshakes.isEmpty else { return }
        for index in reports.indices {
            let key = reports[index].key
            reports[index].labels = self.labels[key] ?? [:]
            reports[index].handshake = self.handshakes[key]
        }
    }

    /// Keeps an opening handshake for the REST interface, if the gateway keeps them.
    func keepHandshake(_ key: ConnectionKey, _ request: RequestHead, _ response: [UInt8]) {
        guard self.shared.keepsHandshakes else { return }
        self.handshakes[key] = HandshakeMetadata(request, response: response)
    }

    /// The same for our own request and its response, once both are known.
    func keepHandshake(_ key: ConnectionKey, _ request: ClientHandshake?, _ response: ResponseHead?) {
        guard let request, let response else { return }
        self.keepHandshake(key, request.redacted, response.redacted)
    }

    func find(_ key: ConnectionKey) -> Finding {
        if let report = self.reports(of: [key.number]).first(where: { $0.key == key }) { return .live(report) }
        return self.closed.report(key).map { .closed($0) } ?? .unknown
    }

    /// Keeps the last reports of a connection and publishes its end.
    private func recordClosing(_ context: ConnectionContext, _ reason: TerminationReason, detail: String?) {
        let eventLog = self.shared.eventLog
        guard self.closed.limit > 0 || eventLog != nil else { return }
        var event = GatewayEvent(.closed, of: context)
        for var report in self.reports(of: [context.identifier]) {
            report.stage = .closed
            report.closing = ClosingRecord(at: report.takenAt, reason: reason, detail: detail)
            if report.key.side == .downstream { event.add(report) }
            self.closed.append(report)
        }
        event.reason = reason.description
        event.detail = detail
        eventLog?.publish(event)
    }
}
