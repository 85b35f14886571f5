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

    /// The last word on a connection: its log line, its counter, its place.
    func ended(
        _ passport: ConnectionPassport, _ reason: TerminationReason, detail: String? = nil, downstream: TaskRecord?,
        upstream: TaskRecord?
    ) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(
            passport, reason, detail: detail, downstream: downstream, upstream: upstream, at: self.loop.now)
        self.remember(passport.identifier, reason, detail: detail)
        self.remove(passport.identifier)
    }
}
