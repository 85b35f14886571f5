import GatewayCore
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// Writes connections as JSON, in the form of the model `Connection`, directly from their reports.
package struct ConnectionWriter {
    /// A member of `Connection` and its source: a closure that captures nothing, as a list calls some forty of them for
    /// each of thousands of connections.
    private struct Column {
        enum Source {
            /// Takes the report, the member's key and the output.
            case value(@Sendable (borrowing ConnectionReport, JSONKey, inout JSONText) -> Void)
            case time(@Sendable (borrowing ConnectionReport) -> MonotonicInstant?)
            /// The id of a connection, in a cluster with the name of its node.
            case identifier(@Sendable (borrowing ConnectionReport) -> ConnectionKey?)
            case node
        }

        let name: String
        let key: JSONKey
        let source: Source

        init(_ name: String, _ write: @escaping @Sendable (borrowing ConnectionReport, JSONKey, inout JSONText) -> Void)
        {
            (self.name, self.key, self.source) = (name, JSONKey(name), .value(write))
        }

        init(_ name: String, time: @escaping @Sendable (borrowing ConnectionReport) -> MonotonicInstant?) {
            (self.name, self.key, self.source) = (name, JSONKey(name), .time(time))
        }

        init(_ name: String, _ source: Source) {
            (self.name, self.key, self.source) = (name, JSONKey(name), source)
        }
    }

    /// In the order of the members of `Connection`.
    private static let allColumns: [Column] = [
        Column("id", .identifier { $0.key }),
        Column("node", .node),
        Column("kind") { $2.member($1, $0.kind.rawValue) },
        Column("direction") { $2.member($1, $0.isAccepted ? "accepted" : "opened") },
        Column("state") { $2.member($1, $0.stage.rawValue) },
        Column("taskState") { $2.member($1, $0.record?.state.name) },
        Column("description") { $2.member($1, $0.details?.label) },
        Column("priority") { $2.member($1, fraction: $0.record?.priority.decimal) },
        Column("url") { $2.member($1, $0.url) },
        Column("listener") { $2.member($1, $0.listener) },
        Column("route") { $2.member($1, $0.route) },
        Column("upstream") { $2.member($1, $0.upstream) },
        Column("endpoint") { $2.member($1, $0.endpoint) },
        Column("tunnelPartner", .identifier { $0.partner }),
        Column("peerAddress") { $2.member($1, $0.peer) },
        Column("clientAddress") { $2.member($1, $0.client) },
        Column("user") { $2.member($1, $0.user) },
        Column("localAddress") { $2.member($1, $0.details?.localAddress) },
        Column("subprotocol") { $2.member($1, $0.metadata?.subprotocol) },
        Column("createdAt", time: { $0.createdAt }),
        Column("openedAt", time: { $0.record?.openedAt }),
        Column("lastActivityAt", time: { $0.record?.lastActivityAt }),
        Column("ageMs") { $2.member($1, from: $0.createdAt, to: $0.asOf) },
        Column("idleMs") { $2.member($1, from: $0.idleSince, to: $0.asOf) },
        Column("receivedBytes") { $2.member($1, $0.record?.bytesReceived ?? 0) },
        Column("sentBytes") { $2.member($1, $0.record?.bytesSent ?? 0) },
        Column("receivedMessages") { $2.member($1, $0.record?.messagesReceived ?? 0) },
        Column("sentMessages") { $2.member($1, $0.record?.messagesSent ?? 0) },
        Column("receivedFrames") { $2.member($1, $0.record?.framesReceived ?? 0) },
        Column("sentFrames") { $2.member($1, $0.record?.framesSent ?? 0) },
        Column("queuedSendBytes") { $2.member($1, $0.queuedSendBytes) },
        Column("queuedReceiveBytes") { $2.member($1, $0.queuedReceiveBytes) },
        Column("unreadMessages") { $2.member($1, $0.kind == .webSocket ? $0.unreadMessages : nil) },
        Column("receiveStalledMs") { $2.member($1, $0.receiveStalled) },
        Column("sendStalledMs") { $2.member($1, $0.sendStalled) },
        Column("stalled") { $2.member($1, $0.isStalled) },
        Column("suspended") { $2.member($1, $0.isSuspended) },
        Column("relayed") { $2.member($1, $0.isRelayed) },
        Column("inputClosed") { $2.member($1, $0.kind == .stream ? $0.isInputClosed : nil) },
        Column("outputClosed") { $2.member($1, $0.kind == .stream ? $0.isOutputClosed : nil) },
        Column("ping") { Self.ping($1, $0.roundTrips, &$2) },
        Column("compression") { Self.compression($1, $0, &$2) },
        Column("tls") { Self.tls($1, $0.details?.tls, &$2) },
        Column("handshake") { Self.handshake($1, $0.handshake, &$2) },
        Column("closeCode") { $2.member($1, $0.metadata?.closeCode?.rawValue) },
        Column("closeReason") { $2.member($1, $0.metadata?.closeReason.map { String(decoding: $0, as: UTF8.self) }) },
        Column("terminationReason") { $2.member($1, $0.closing?.reason.description) },
        Column("terminationDetail") { $2.member($1, $0.closing?.detail) },
        Column("closedAt", time: { $0.closing?.at }),
        Column("labels") { $2.member($1, $0.labels) },
    ]

    package static let fields = Self.allColumns.map(\.name)

    /// The fields that the parameter `fields` selects; `nil` without it.
    /// - Throws: `ControlProblem` for an unknown name.
    package static func fields(_ query: Query) throws(ControlProblem) -> Set<String>? {
        let names = try query.set("fields", expecting: "a list of \(Self.fields.joined(separator: ", "))") {
            Self.fields.contains($0) ? $0 : nil
        }
        return names.isEmpty ? nil : names
    }

    package let anchor: TimeAnchor
    private let node: String?
    private let columns: [Column]

    /// - Parameters:
    ///   - node: the name of this node in its cluster.
    ///   - fields: `nil` for all.
    package init(anchor: TimeAnchor, node: String? = nil, fields: Set<String>? = nil) {
        self.anchor = anchor
        self.node = node
        self.columns = fields.map { fields in Self.allColumns.filter { fields.contains($0.name) } } ?? Self.allColumns
    }

    package func json(_ report: borrowing ConnectionReport) -> [UInt8] {
        var text = JSONText(capacity: 1024)
        self.write(report, to: &text)
        return text.bytes
    }

    package func write(_ report: borrowing ConnectionReport, to text: inout JSONText) {
        text.beginObject()
        let columns = self.columns.span
        for index in columns.indices {
            switch columns[index].source {
            case .value(let write): write(report, columns[index].key, &text)
            case .time(let read):
                guard let instant = read(report) else { continue }
                text.member(columns[index].key, time: self.anchor.milliseconds(of: instant))
            case .identifier(let read):
                guard let key = read(report) else { continue }
                if let node = self.node {
                    text.member(columns[index].key, "\(key)@\(node)")
                } else {
                    text.member(columns[index].key, key)
                }
            case .node: text.member(columns[index].key, self.node)
            }
        }
        text.endObject()
    }

    // MARK: Nested objects

    private static func ping(_ key: JSONKey, _ times: RoundTrips?, _ text: inout JSONText) {
        guard let times, let last = times.last else { return }
        text.key(key)
        text.beginObject()
        text.member("lastMs", last)
        text.member("p50Ms", times.quantile(0.5))
        text.member("p99Ms", times.quantile(0.99))
        text.member("count", times.count)
        text.endObject()
    }

    private static func compression(_ key: JSONKey, _ report: borrowing ConnectionReport, _ text: inout JSONText) {
        guard report.usesDeflate, let sent = report.record?.bytesSent else { return }
        text.key(key)
        text.beginObject()
        if report.writtenBytes > 0, sent > 0 {
            text.key("sentRatio")
            text.number((Double(sent) / Double(report.writtenBytes) * 1000).rounded() / 1000)
        }
        text.endObject()
    }

    private static func tls(_ key: JSONKey, _ metadata: TLSMetadata?, _ text: inout JSONText) {
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

    private static func handshake(_ key: JSONKey, _ metadata: HandshakeMetadata?, _ text: inout JSONText) {
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
