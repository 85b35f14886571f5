import SessionTasks
import StreamTransport

/// Connections opened by command, on their loop.
extension LoopGateway {
    /// Sessions that ended with messages unread and are kept for who still wants them; the oldest makes room.
    static let leftoverLimit = 32

    func open(_ order: ClientOrder, waits: Bool, _ opened: @escaping ClientSession.Opened) {
        let session = ClientSession(order, on: self, opened: opened)
        self.add(session)
        if !order.labels.isEmpty { self.labels[session.key] = order.labels }
        session.start()
        if !waits { session.answer() }
        if self.isDraining { session.drain() }
    }

    /// The last word on a connection opened by command.
    func ended(_ session: ClientSession, _ reason: TerminationReason, detail: String?) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(session.key, url: session.url, reason, detail: detail)
        self.totals.end(session.record, route: nil)
        if let opened = session.record.openedAt { self.totals.lives.add(opened.duration(to: self.loop.now)) }
        var event = GatewayEvent(.closed, of: session)
        event.reason = reason.description
        event.detail = detail
        self.shared.journal?.publish(event)
        self.remember(session.identifier, reason, detail: detail)
        self.remove(session.identifier)
    }

    func keepLeftover(_ session: ClientSession) {
        guard self.closed.limit > 0 else { return }
        self.leftovers.removeAll { ($0.webSocket?.unreadMessages ?? 0) == 0 }
        if self.leftovers.count >= Self.leftoverLimit { self.leftovers.removeFirst() }
        self.leftovers.append(session)
    }
}

extension GatewayEvent {
    init(_ kind: Kind, of session: ClientSession) {
        self.init(kind)
        self.connection = session.key
        self.url = session.url
    }
}
