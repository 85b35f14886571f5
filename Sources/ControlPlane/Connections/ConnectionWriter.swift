import GatewayCore
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// Writes connections as JSON, in the form of the wire model `Connection`.
package struct ConnectionWriter {
    private struct Column {
        let field: ConnectionField
        let key: JSONKey
    }

    private static let allColumns = ConnectionField.allCases.map { Column(field: $0, key: JSONKey($0.rawValue)) }

    package let anchor: TimeAnchor
    private let columns: [Column]

    /// - Parameter fields: `nil` for all.
    package init(anchor: TimeAnchor, fields: Set<ConnectionField>? = nil) {
        self.anchor = anchor
        self.columns = fields.map { fields in Self.allColumns.filter { fields.contains($0.field) } } ?? Self.allColumns
    }

    package func json(_ report: borrowing ConnectionReport) -> [UInt8] {
        var text = JSONText(capacity: 1024)
        self.write(report, to: &text)
        return text.bytes
    }

    package func write(_ report: borrowing ConnectionReport, to text: inout JSONText) {
        text.beginObject()
        let columns = self.columns.span
        for index in columns.indices { self.write(columns[index], of: report, to: &text) }
        text.endObject()
    }

    private func write(_ column: Column, of report: borrowing ConnectionReport, to text: inout JSONText) {
        let key = column.key
        switch column.field {
        case .id: text.member(key, report.key)
        case .kind: text.member(key, report.kind.rawValue)
        case .direction: text.member(key, report.isAccepted ? "accepted" : "opened")
        case .state: text.member(key, report.stage.rawValue)
        case .taskState: text.member(key, report.record?.state.name)
        case .description: text.member(key, report.details?.label)
        case .priority: self.priority(key, report, &text)
        case .url: text.member(key, report.url)
        case .listener: text.member(key, report.listener)
        case .route: text.member(key, report.route)
        case .upstream: text.member(key, report.upstream)
        case .endpoint: text.member(key, report.endpoint)
        case .tunnelPartner: text.member(key, report.partner)
        case .peerAddress: text.member(key, report.peer)
        case .clientAddress: text.member(key, report.client)
        case .localAddress: text.member(key, report.details?.localAddress)
        case .subprotocol: text.member(key, report.facts?.subprotocol)
        case .createdAt, .openedAt, .lastActivityAt, .ageMs, .idleMs, .closedAt: self.time(column, report, &text)
        case .queuedSendBytes, .queuedReceiveBytes, .unreadMessages, .receiveStalledMs, .sendStalledMs:
            self.queue(column, report, &text)
        case .receivedBytes, .sentBytes, .receivedMessages, .sentMessages, .receivedFrames, .sentFrames:
            self.count(column, report, &text)
        case .stalled, .suspended, .relayed, .inputClosed, .outputClosed: self.flag(column, report, &text)
        case .ping: self.ping(key, report.roundTrips, &text)
        case .compression: self.compression(key, report, &text)
        case .tls: self.tls(key, report.details?.tls, &text)
        case .handshake: self.handshake(key, report.handshake, &text)
        case .closeCode: text.member(key, report.facts?.closeCode?.rawValue)
        case .closeReason: text.member(key, report.facts?.closeReason.map { String(decoding: $0, as: UTF8.self) })
        case .terminationReason: text.member(key, report.closing?.reason.description)
        case .terminationDetail: text.member(key, report.closing?.detail)
        case .labels: text.member(key, report.labels)
        }
    }

    // MARK: Groups of members

    private func priority(_ key: JSONKey, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        guard let record = report.record else { return }
        text.key(key)
        text.number(record.priority.decimal)
    }

    private func time(_ column: Column, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        switch column.field {
        case .createdAt: self.time(column.key, report.createdAt, &text)
        case .openedAt: self.time(column.key, report.record?.openedAt, &text)
        case .lastActivityAt: self.time(column.key, report.record?.lastActivityAt, &text)
        case .ageMs: text.member(column.key, from: report.createdAt, to: report.asOf)
        case .idleMs: text.member(column.key, from: report.idleSince, to: report.asOf)
        default: self.time(column.key, report.closing?.at, &text)
        }
    }

    private func time(_ key: JSONKey, _ instant: MonotonicInstant?, _ text: inout JSONText) {
        if let instant { text.member(key, time: self.anchor.milliseconds(of: instant)) }
    }

    private func queue(_ column: Column, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        switch column.field {
        case .queuedSendBytes: text.member(column.key, report.queuedSendBytes)
        case .queuedReceiveBytes: text.member(column.key, report.queuedReceiveBytes)
        case .unreadMessages: text.member(column.key, report.kind == .webSocket ? report.unreadMessages : nil)
        case .receiveStalledMs: text.member(column.key, report.receiveStalled)
        default: text.member(column.key, report.sendStalled)
        }
    }

    private func count(_ column: Column, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        guard let record = report.record else { return text.member(column.key, 0) }
        switch column.field {
        case .receivedBytes: text.member(column.key, record.bytesReceived)
        case .sentBytes: text.member(column.key, record.bytesSent)
        case .receivedMessages: text.member(column.key, record.messagesReceived)
        case .sentMessages: text.member(column.key, record.messagesSent)
        case .receivedFrames: text.member(column.key, record.framesReceived)
        default: text.member(column.key, record.framesSent)
        }
    }

    private func flag(_ column: Column, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        switch column.field {
        case .stalled: text.member(column.key, report.isStalled)
        case .suspended: text.member(column.key, report.isSuspended)
        case .relayed: text.member(column.key, report.isRelayed)
        case .inputClosed: text.member(column.key, report.kind == .stream ? report.isInputClosed : nil)
        default: text.member(column.key, report.kind == .stream ? report.isOutputClosed : nil)
        }
    }

    private func ping(_ key: JSONKey, _ times: RoundTrips?, _ text: inout JSONText) {
        guard let times, let last = times.last else { return }
        text.key(key)
        text.beginObject()
        text.member("lastMs", last)
        text.member("p50Ms", times.quantile(0.5))
        text.member("p99Ms", times.quantile(0.99))
        text.member("count", times.count)
        text.endObject()
    }

    private func compression(_ key: JSONKey, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        guard report.usesDeflate, let sent = report.record?.bytesSent else { return }
        text.key(key)
        text.beginObject()
        if report.writtenBytes > 0, sent > 0 {
            text.key("sentRatio")
            text.number((Double(sent) / Double(report.writtenBytes) * 1000).rounded() / 1000)
        }
        text.endObject()
    }

    private func tls(_ key: JSONKey, _ metadata: TLSMetadata?, _ text: inout JSONText) {
        guard let metadata else { return }
        text.key(key)
        text.beginObject()
        text.member("version", metadata.version.description)
        text.member("cipher", metadata.cipherName)
        text.member("applicationProtocol", metadata.applicationProtocol)
        text.member("serverName", metadata.serverName)
        text.member("resumed", metadata.resumed)
        text.key("peerCertificateSizesBytes")
        text.beginArray()
        for certificate in metadata.peerChain { text.number(certificate.count) }
        text.endArray()
        text.endObject()
    }

    private func handshake(_ key: JSONKey, _ metadata: HandshakeMetadata?, _ text: inout JSONText) {
        guard let heads = metadata?.messageHeads else { return }
        text.key(key)
        text.beginObject()
        for (name, head) in [("request", heads.request), ("response", heads.response)] {
            text.key(JSONKey(name))
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
}

/// The members of the wire model `Connection`, in the order in which they are written.
package enum ConnectionField: String, CaseIterable, Sendable {
    case id, kind, direction, state, taskState, description, priority, url, listener, route, upstream
    case endpoint
    case tunnelPartner, peerAddress, clientAddress, localAddress, subprotocol, createdAt, openedAt
    case lastActivityAt, ageMs, idleMs, receivedBytes, sentBytes, receivedMessages, sentMessages
    case receivedFrames, sentFrames, queuedSendBytes, queuedReceiveBytes, unreadMessages, receiveStalledMs
    case sendStalledMs, stalled, suspended, relayed, inputClosed, outputClosed, ping, compression, tls
    case handshake, closeCode, closeReason, terminationReason, terminationDetail, closedAt, labels

    /// The fields that the parameter `fields` selects.
    /// - Throws: `ControlProblem` for an unknown name.
    package static func set(_ query: Query) throws(ControlProblem) -> Set<ConnectionField>? {
        let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
        let fields = try query.set("fields", expecting: "a list of \(known)") { ConnectionField(rawValue: $0) }
        return fields.isEmpty ? nil : fields
    }
}

extension ConnectionReport {
    /// The time to which the report's durations refer.
    var asOf: MonotonicInstant { self.closing?.at ?? self.takenAt }

    /// The last activity, or the creation time without any; at most `asOf`, as the counters are live and may show activity
    /// after the report was taken.
    var idleSince: MonotonicInstant { min(self.record?.lastActivityAt ?? self.createdAt, self.asOf) }

    package var idle: Duration { self.idleSince.duration(to: self.asOf) }
}

extension TaskState {
    package var name: String {
        switch self {
        case .suspended: "suspended"
        case .running: "running"
        case .canceling: "canceling"
        case .completed: "completed"
        }
    }
}
