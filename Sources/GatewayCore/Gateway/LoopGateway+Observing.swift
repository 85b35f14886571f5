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
    func reports(of identifiers: ArraySlice<UInt64>) -> [ConnectionReport] {
        let now = self.loop.now
        var reports: [ConnectionReport] = []
        reports.reserveCapacity(identifiers.count)
        for identifier in identifiers {
            guard let connection = self.live[identifier] else { continue }
            reports += self.labelled(connection.reports(at: now))
        }
        return reports
    }

    /// With what is kept beside the connection itself.
    private func labelled(_ reports: [ConnectionReport]) -> [ConnectionReport] {
        guard !self.labels.isEmpty || !self.handshakes.isEmpty else { return reports }
        return reports.map { report in
            var report = report
            report.labels = self.labels[report.key] ?? [:]
            if report.key.side == .downstream {
                report.handshake = report.handshake ?? self.handshakes[report.key.number]
            }
            return report
        }
    }

    /// Keeps an opening handshake to be shown.
    func keepHandshake(_ identifier: UInt64, _ request: RequestHead, _ response: [UInt8]) {
        guard self.shared.keepsHandshakes else { return }
        self.handshakes[identifier] = HandshakeFacts(request, response: response)
    }

    func find(_ key: ConnectionKey) -> Finding {
        if let connection = self.live[key.number] {
            let reports = self.labelled(connection.reports(at: self.loop.now))
            if let report = reports.first(where: { $0.key == key }) { return .live(report) }
        }
        return self.closed.report(key).map { .closed($0) } ?? .unknown
    }

    /// Keeps what is known of a connection that ends now.
    func remember(_ identifier: UInt64, _ reason: TerminationReason, detail: String?) {
        guard self.closed.limit > 0, let connection = self.live[identifier] else { return }
        let now = self.loop.now
        for var report in self.labelled(connection.reports(at: now)) {
            report.stage = .closed
            report.closing = ClosingRecord(at: now, reason: reason, detail: detail)
            self.closed.append(report)
        }
    }
}
