import SessionTasks
import StreamTransport
import WebSocketProtocol

/// What the control plane asks of one loop. Each answer is a snapshot: no traffic waits for it longer than it takes to
/// look at a few hundred connections.
extension LoopGateway {
    /// A connection that somebody asked for.
    package enum Finding: Sendable {
        case live(ConnectionReport)
        case closed(ConnectionReport)
        case unknown
    }

    func liveIdentifiers(from first: UInt64) -> [UInt64] {
        first == 0 ? Array(self.live.keys) : self.live.keys.filter { $0 >= first }
    }

    /// Of those in `identifiers` that still live, in that order.
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

    /// Adds what is kept beside the connections themselves.
    private func complete(_ reports: inout [ConnectionReport]) {
        guard !self.labels.isEmpty || !self.handshakes.isEmpty else { return }
        for index in reports.indices {
            let key = reports[index].key
            reports[index].labels = self.labels[key] ?? [:]
            guard key.side == .downstream, reports[index].handshake == nil else { continue }
            reports[index].handshake = self.handshakes[key.number]
        }
    }

    /// Keeps an opening handshake to be shown.
    func keepHandshake(_ identifier: UInt64, _ request: RequestHead, _ response: [UInt8]) {
        guard self.shared.keepsHandshakes else { return }
        self.handshakes[identifier] = HandshakeFacts(request, response: response)
    }

    func find(_ key: ConnectionKey) -> Finding {
        if let report = self.reports(of: [key.number]).first(where: { $0.key == key }) { return .live(report) }
        return self.closed.report(key).map { .closed($0) } ?? .unknown
    }

    /// Keeps what is known of a connection that ends now, and publishes `event` with it.
    func remember(_ identifier: UInt64, _ reason: TerminationReason, detail: String?, _ event: GatewayEvent?) {
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
        self.shared.journal?.publish(event)
    }
}
