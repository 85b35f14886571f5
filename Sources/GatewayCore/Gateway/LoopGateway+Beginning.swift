import SessionTasks
import StreamTransport
import WebSocketProtocol

extension LoopGateway {
    /// Leads an accepted connection to where its route says.
    func begin(_ link: InboundLink, of inbound: InboundConnection, route: RoutePlan) {
        switch (route.configuration.target, link) {
        case (.echo, .stream(let transport)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let echo = StreamEcho(watermarks: route.configuration.tunnel.buffer)
            session.begin(transport) { echo.start($0) }
        case (.echo, .webSocket(let transport, let asked)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            session.accept(
                transport, asked,
                relay: WebSocketEcho(keepsFragmentation: route.configuration.tunnel.keepsFragmentation))
        case (.chat, .webSocket(let transport, let asked)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let room = asked.match.value(of: "room") ?? route.configuration.name
            session.accept(transport, asked, relay: ChatMember(room: room, floor: self.floor))
        case (.chat, .stream(let transport)):
            let session = EndpointSession(inbound, route: route, gateway: self)
            let settings = route.configuration.tunnel
            let member = StreamChatMember(room: route.configuration.name, floor: self.floor, settings: settings)
            session.begin(transport) { member.start($0) }
        case (.upstream, _), (.url, _):
            UpstreamSession(inbound, link: link, route: route, gateway: self).start()
        }
    }

    /// A connection came to its endpoint: payload may flow.
    func opened(_ connection: any LiveConnection, _ passport: ConnectionPassport, isWebSocket: Bool) {
        self.shared.log.opened(passport)
        self.totals.handshakes.add(passport.acceptedAt.duration(to: self.loop.now))
        self.replace(connection)
        guard let journal = self.shared.journal else { return }
        if isWebSocket {
            var event = GatewayEvent(.upgraded, of: passport)
            event.reason = "websocket"
            journal.publish(event)
        }
        journal.publish(GatewayEvent(.opened, of: passport))
    }

    /// The last word on a connection: its log line, its counter, its place.
    func ended(
        _ passport: ConnectionPassport, _ reason: TerminationReason, detail: String? = nil, downstream: TaskRecord?,
        upstream: TaskRecord?
    ) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(
            passport, reason, detail: detail, downstream: downstream, upstream: upstream, at: self.loop.now)
        for record in [downstream, upstream].compactMap(\.self) { self.totals.end(record, route: passport.route) }
        if let opened = downstream?.openedAt { self.totals.lives.add(opened.duration(to: self.loop.now)) }
        let event = self.shared.journal.map { _ in GatewayEvent(.closed, of: passport) }
        self.remember(passport.identifier, reason, detail: detail, event)
        self.remove(passport.identifier)
    }
}

extension GatewayEvent {
    init(_ kind: Kind, of passport: ConnectionPassport) {
        self.init(kind)
        self.connection = ConnectionKey(passport.identifier)
        self.listener = passport.listener
        self.route = passport.route
        self.upstream = passport.upstreamPlan?.configuration.name
        self.endpoint = passport.upstream
        self.peer = passport.client.description
    }
}
