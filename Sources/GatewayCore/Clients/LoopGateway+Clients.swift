import SessionTasks
import StreamTransport

/// What is opened by command, on its loop.
extension LoopGateway {
    /// Sessions that ended with messages unread and are kept for who still wants them; the oldest makes room.
    static let leftoverLimit = 32

    /// - Returns: what it is until it ends; `opened` may have been called already.
    func open(_ order: ClientOrder, _ opened: @escaping ClientSession.Opened) -> any OrderedConnection {
        let session = ClientSession(order, on: self, opened: opened)
        self.add(session)
        self.keep(order.labels, of: session.key)
        session.start()
        return self.begun(session)
    }

    /// Opens both sides of a tunnel, and joins them.
    func open(_ order: ClientTunnelOrder, _ opened: @escaping ClientSession.Opened) -> any OrderedConnection {
        let tunnel = ClientTunnel(order, on: self, opened: opened)
        self.add(tunnel)
        for side in TunnelSide.allCases { self.keep(order[side].labels, of: ConnectionKey(tunnel.identifier, side)) }
        tunnel.start()
        return self.begun(tunnel)
    }

    private func keep(_ labels: [String: String], of key: ConnectionKey) {
        if !labels.isEmpty { self.labels[key] = labels }
    }

    private func begun(_ connection: some OrderedConnection) -> any OrderedConnection {
        if self.isDraining, self.live[connection.identifier] != nil { connection.drain() }
        return connection
    }

    /// Payload may flow.
    func stands(_ connection: any OrderedConnection, since beginning: MonotonicInstant) {
        self.shared.log.opened(connection.key, url: connection.url, upstream: connection.upstreamURL)
        self.totals.handshakes.add(beginning.duration(to: self.loop.now))
        self.shared.journal?.publish(GatewayEvent(.opened, of: connection))
    }

    /// The last word on what was opened by command.
    func ended(_ connection: any OrderedConnection, _ reason: TerminationReason, detail: String?) {
        self.shared.counters.count("ended/" + reason.name)
        self.shared.log.closed(
            connection.key, url: connection.url, upstream: connection.upstreamURL, reason, detail: detail)
        for record in connection.records { self.totals.end(record, route: nil) }
        if let opened = connection.openedAt { self.totals.lives.add(opened.duration(to: self.loop.now)) }
        let event = self.shared.journal.map { _ in GatewayEvent(.closed, of: connection) }
        self.remember(connection.identifier, reason, detail: detail, event)
        self.remove(connection.identifier)
    }

    func keepLeftover(_ session: ClientSession) {
        guard self.closed.limit > 0 else { return }
        self.leftovers.removeAll { ($0.webSocket?.unreadMessages ?? 0) == 0 }
        if self.leftovers.count >= Self.leftoverLimit { self.leftovers.removeFirst() }
        self.leftovers.append(session)
    }
}
