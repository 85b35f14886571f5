import GatewayCore
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// Writes connections as JSON, in the form of the wire model.
package struct ConnectionWriter {
    package let anchor: TimeAnchor
    /// `nil`: all of them.
    package let fields: [ConnectionField]

    package init(anchor: TimeAnchor, fields: Set<ConnectionField>? = nil) {
        self.anchor = anchor
        self.fields = ConnectionField.allCases.filter { fields?.contains($0) ?? true }
    }

    package func json(_ report: ConnectionReport) -> [UInt8] {
        var text = JSONText(capacity: 1024)
        self.write(report, to: &text)
        return text.bytes
    }

    package func write(_ report: ConnectionReport, to text: inout JSONText) {
        text.beginObject()
        for field in self.fields { self.write(field, of: report, to: &text) }
        text.endObject()
    }

    private func write(_ field: ConnectionField, of report: ConnectionReport, to text: inout JSONText) {
        let name = field.rawValue
        switch field {
        case .id: text.member(name, report.key.description)
        case .kind: text.member(name, report.kind.rawValue)
        case .direction: text.member(name, report.isAccepted ? "accepted" : "opened")
        case .state: text.member(name, report.stage.rawValue)
        case .taskState: text.member(name, report.record.map { $0.state.name })
        case .description: text.member(name, report.record?.read { $0.label })
        case .priority: self.priority(report, &text)
        case .url: text.member(name, report.url)
        case .listener: text.member(name, report.listener)
        case .route: text.member(name, report.route)
        case .upstream: text.member(name, report.upstream)
        case .endpoint: text.member(name, report.endpoint)
        case .tunnelPartner: text.member(name, report.partner?.description)
        case .peerAddress: text.member(name, report.peer?.description)
        case .clientAddress: text.member(name, report.client?.description)
        case .localAddress: text.member(name, report.record?.read { $0.localAddress }?.description)
        case .subprotocol: text.member(name, report.facts?.subprotocol)
        case .createdAt, .openedAt, .lastActivityAt, .ageMs, .idleMs, .closedAt: self.time(field, report, &text)
        case .queuedSendBytes, .queuedReceiveBytes, .unreadMessages, .receiveStalledMs, .sendStalledMs:
            self.queue(field, report, &text)
        case .receivedBytes, .sentBytes, .receivedMessages, .sentMessages, .receivedFrames, .sentFrames:
            self.count(field, report, &text)
        case .stalled, .suspended, .relayed, .inputClosed, .outputClosed: self.flag(field, report, &text)
        case .ping: self.ping(report.roundTrips, &text)
        case .compression: self.compression(report, &text)
        case .tls: self.tls(report.record?.read { $0.tls }, &text)
        case .handshake: self.handshake(report.handshake, &text)
        case .closeCode: text.member(name, report.facts?.closeCode?.rawValue)
        case .closeReason: text.member(name, report.facts?.closeReason.map { String(decoding: $0, as: UTF8.self) })
        case .terminationReason: text.member(name, report.closing?.reason.description)
        case .terminationDetail: text.member(name, report.closing?.detail)
        case .labels: self.labels(report.labels, &text)
        }
    }

    // MARK: Groups of members

    private func priority(_ report: ConnectionReport, _ text: inout JSONText) {
        guard let record = report.record else { return }
        text.key(ConnectionField.priority.rawValue)
        text.number(record.priority.decimal)
    }

    private func time(_ field: ConnectionField, _ report: ConnectionReport, _ text: inout JSONText) {
        let now = report.closing?.at ?? report.takenAt
        let name = field.rawValue
        switch field {
        case .createdAt: self.time(name, report.createdAt, &text)
        case .openedAt: self.time(name, report.record?.openedAt, &text)
        case .lastActivityAt: self.time(name, report.record?.lastActivityAt, &text)
        case .ageMs: text.member(name, report.createdAt.duration(to: now))
        case .idleMs: text.member(name, report.idle)
        default: self.time(name, report.closing?.at, &text)
        }
    }

    private func time(_ name: String, _ instant: MonotonicInstant?, _ text: inout JSONText) {
        if let instant { text.member(name, time: self.anchor.milliseconds(of: instant)) }
    }

    private func queue(_ field: ConnectionField, _ report: ConnectionReport, _ text: inout JSONText) {
        let name = field.rawValue
        switch field {
        case .queuedSendBytes: text.member(name, report.queuedSendBytes)
        case .queuedReceiveBytes: text.member(name, report.queuedReceiveBytes)
        case .unreadMessages: text.member(name, report.kind == .webSocket ? report.unreadMessages : nil)
        case .receiveStalledMs: text.member(name, report.receiveStalled)
        default: text.member(name, report.sendStalled)
        }
    }

    private func count(_ field: ConnectionField, _ report: ConnectionReport, _ text: inout JSONText) {
        let name = field.rawValue
        guard let record = report.record else { return text.member(name, 0) }
        switch field {
        case .receivedBytes: text.member(name, record.bytesReceived)
        case .sentBytes: text.member(name, record.bytesSent)
        case .receivedMessages: text.member(name, record.messagesReceived)
        case .sentMessages: text.member(name, record.messagesSent)
        case .receivedFrames: text.member(name, record.framesReceived)
        default: text.member(name, record.framesSent)
        }
    }

    private func flag(_ field: ConnectionField, _ report: ConnectionReport, _ text: inout JSONText) {
        let name = field.rawValue
        switch field {
        case .stalled: text.member(name, report.isStalled)
        case .suspended: text.member(name, report.isSuspended)
        case .relayed: text.member(name, report.isRelayed)
        case .inputClosed: text.member(name, report.kind == .stream ? report.isInputClosed : nil)
        default: text.member(name, report.kind == .stream ? report.isOutputClosed : nil)
        }
    }

    private func ping(_ times: RoundTrips?, _ text: inout JSONText) {
        guard let times, let last = times.last else { return }
        text.key(ConnectionField.ping.rawValue)
        text.beginObject()
        text.member("lastMs", last)
        text.member("p50Ms", times.quantile(0.5))
        text.member("p99Ms", times.quantile(0.99))
        text.member("count", times.count)
        text.endObject()
    }

    private func compression(_ report: ConnectionReport, _ text: inout JSONText) {
        guard report.usesDeflate, let sent = report.record?.bytesSent else { return }
        text.key(ConnectionField.compression.rawValue)
        text.beginObject()
        if report.writtenBytes > 0, sent > 0 {
            text.key("sentRatio")
            text.number((Double(sent) / Double(report.writtenBytes) * 1000).rounded() / 1000)
        }
        text.endObject()
    }

    private func tls(_ facts: TLSFacts?, _ text: inout JSONText) {
        guard let facts else { return }
        text.key(ConnectionField.tls.rawValue)
        text.beginObject()
        text.member("version", facts.version.description)
        text.member("cipher", facts.cipherName)
        text.member("applicationProtocol", facts.applicationProtocol)
        text.member("serverName", facts.serverName)
        text.member("resumed", facts.resumed)
        text.key("peerCertificateSizesBytes")
        text.beginArray()
        for certificate in facts.peerChain { text.number(certificate.count) }
        text.endArray()
        text.endObject()
    }

    private func handshake(_ facts: HandshakeFacts?, _ text: inout JSONText) {
        guard let heads = facts?.heads else { return }
        text.key(ConnectionField.handshake.rawValue)
        text.beginObject()
        for (name, head) in [("request", heads.request), ("response", heads.response)] {
            text.key(name)
            text.beginObject()
            text.member("line", head.firstLine)
            text.key("headers")
            text.beginArray()
            for field in head.fields {
                text.beginObject()
                text.member("name", field.name)
                text.member("value", field.value)
                text.endObject()
            }
            text.endArray()
            text.endObject()
        }
        text.endObject()
    }

    private func labels(_ labels: [String: String], _ text: inout JSONText) {
        guard !labels.isEmpty else { return }
        text.key(ConnectionField.labels.rawValue)
        text.beginObject()
        for (name, value) in labels.sorted(by: { $0.key < $1.key }) {
            text.foreignKey(name)
            text.string(value)
        }
        text.endObject()
    }
}

extension ConnectionReport {
    /// Since payload last moved; since the beginning where none has. None where some moved after the report was taken:
    /// counters are read when they are shown.
    package var idle: Duration {
        let now = self.closing?.at ?? self.takenAt
        return max(.zero, (self.record?.lastActivityAt ?? self.createdAt).duration(to: now))
    }
}

extension TaskState {
    /// As it is shown.
    package var name: String {
        switch self {
        case .suspended: "suspended"
        case .running: "running"
        case .canceling: "canceling"
        case .completed: "completed"
        }
    }
}
