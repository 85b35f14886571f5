import CommandLineText
import ControlAPI

/// Table of connections.
package struct ConnectionTable {
    private struct Column: Sendable {
        let layout: TextTable.Column
        /// The members of `Connection` that the cell shows.
        let fields: [String]
        let cell: @Sendable (Connection) -> TextTable.Cell

        init(
            _ layout: TextTable.Column, _ fields: String..., cell: @escaping @Sendable (Connection) -> TextTable.Cell
        ) {
            (self.layout, self.fields, self.cell) = (layout, fields, cell)
        }
    }

    private static let columns = [
        Column(TextTable.Column("ID", rightAligned: true), "id") { TextTable.Cell($0.id) },
        Column(TextTable.Column("KIND", dropOrder: 4), "kind") {
            TextTable.Cell($0.kind == "webSocket" ? "ws" : $0.kind)
        },
        Column(TextTable.Column("STATE"), "state", "stalled", "suspended") { Self.state($0) },
        Column(TextTable.Column("PEER", minimumWidth: 21, keepsPort: true), "clientAddress", "peerAddress") {
            TextTable.Cell($0.clientAddress ?? $0.peerAddress)
        },
        Column(TextTable.Column("USER", minimumWidth: 8, dropOrder: 2, isOmittedIfEmpty: true), "user") {
            TextTable.Cell($0.user)
        },
        Column(
            TextTable.Column("VIA", minimumWidth: 8, dropOrder: 2), "listener", "route", "upstream", "url"
        ) { TextTable.Cell(Self.origin($0)) },
        Column(TextTable.Column("RECEIVED", rightAligned: true, dropOrder: 1), "receivedBytes") {
            TextTable.Cell($0.receivedBytes.map { QuantityText.bytes($0) })
        },
        Column(TextTable.Column("SENT", rightAligned: true, dropOrder: 1), "sentBytes") {
            TextTable.Cell($0.sentBytes.map { QuantityText.bytes($0) })
        },
        Column(
            TextTable.Column("QUEUED", rightAligned: true, dropOrder: 3), "queuedSendBytes", "queuedReceiveBytes"
        ) { one in
            // Unsigned, so that no response of a server can overflow the sum.
            let queued = UInt64(max(0, one.queuedSendBytes ?? 0)) + UInt64(max(0, one.queuedReceiveBytes ?? 0))
            return TextTable.Cell(queued == 0 ? "0" : QuantityText.bytes(queued), queued == 0 ? .faint : .yellow)
        },
        Column(TextTable.Column("RTT", rightAligned: true, dropOrder: 6), "ping") {
            Self.duration($0.ping?.lastMs)
        },
        Column(TextTable.Column("IDLE", rightAligned: true, dropOrder: 5), "idleMs") { Self.duration($0.idleMs) },
        Column(TextTable.Column("AGE", rightAligned: true, dropOrder: 3), "ageMs") { Self.duration($0.ageMs) },
        Column(
            TextTable.Column("NOTE", minimumWidth: 10, dropOrder: 7), "closeCode", "terminationReason", "description",
            "labels"
        ) { TextTable.Cell(Self.note($0)) },
    ]

    /// Members of `Connection` that the table shows.
    package static let fields = Self.columns.flatMap(\.fields)

    package private(set) var table = TextTable(Self.columns.map(\.layout))

    package init(_ connections: [Connection] = []) {
        for connection in connections { self.table.add(Self.columns.map { $0.cell(connection) }) }
    }

    private static func duration(_ milliseconds: Double?) -> TextTable.Cell {
        TextTable.Cell(milliseconds.map { QuantityText.duration(milliseconds: $0) })
    }

    private static func state(_ one: Connection) -> TextTable.Cell {
        if one.stalled == true { return TextTable.Cell("stalled", .red) }
        if one.suspended == true { return TextTable.Cell("suspended", .yellow) }
        switch one.state {
        case "open": return TextTable.Cell("open", .green)
        case "closed": return TextTable.Cell("closed", .faint)
        default: return TextTable.Cell(one.state, .yellow)
        }
    }

    /// Listener and its target for an accepted connection; URL or upstream for an opened one.
    private static func origin(_ one: Connection) -> String? {
        guard let listener = one.listener else { return one.url ?? one.upstream.map { "to \($0)" } }
        let target = one.upstream ?? one.route
        return target.map { "\(listener) > \($0)" } ?? listener
    }

    private static func note(_ one: Connection) -> String {
        let end = [one.closeCode.map { "\($0)" }, one.terminationReason]
        let labels = (one.labels ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return (end + [one.description] + labels).compactMap(\.self).joined(separator: " ")
    }
}

/// All properties of a connection, one per line.
package struct ConnectionDetails {
    private var rows: [(name: String, value: String)] = []

    package init(_ one: Connection) {
        self.addIdentity(one)
        self.addTimes(one)
        self.addTraffic(one)
        self.addSecurity(one)
        self.addEnd(one)
        self.addHandshake(one)
    }

    /// Sanitized lines with aligned names.
    package var lines: [String] {
        let width = self.rows.reduce(0) { max($0, $1.name.count) }
        return self.rows.map { row in
            CellText.fit(row.name, cells: width + 2) + TerminalText.singleLine(row.value, limit: 4000)
        }
    }

    private mutating func add(_ name: String, _ value: String?) {
        if let value, !value.isEmpty { self.rows.append((name, value)) }
    }

    private mutating func addIdentity(_ one: Connection) {
        self.add("id", one.id)
        self.add("kind", [one.kind, one.direction].compactMap(\.self).joined(separator: ", "))
        let state = [one.state, one.stalled == true ? "stalled" : nil, one.suspended == true ? "suspended" : nil]
        self.add("state", state.compactMap(\.self).joined(separator: ", "))
        self.add("task", one.taskState)
        self.add("description", one.description)
        self.add("labels", (one.labels ?? [:]).sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " "))
        self.add("priority", one.priority.map { "\($0)" })
        self.add("url", one.url)
        self.add("listener", one.listener)
        self.add("route", one.route)
        self.add("upstream", one.upstream)
        self.add("endpoint", one.endpoint == one.upstream ? nil : one.endpoint)
        self.add("tunnel partner", one.tunnelPartner)
        self.add("peer", one.peerAddress)
        self.add("client", one.clientAddress)
        self.add("user", one.user)
        self.add("local", one.localAddress)
        self.add("subprotocol", one.subprotocol)
    }

    private mutating func addTimes(_ one: Connection) {
        let age = one.ageMs.map { " (\(QuantityText.duration(milliseconds: $0)))" } ?? ""
        self.add("created", one.createdAt.map { $0 + age })
        self.add("opened", one.openedAt)
        let idle = one.idleMs.map { " (\(QuantityText.duration(milliseconds: $0)) ago)" } ?? ""
        self.add("last activity", one.lastActivityAt.map { $0 + idle })
    }

    private mutating func addTraffic(_ one: Connection) {
        self.add("received", Self.count(one.receivedBytes, one.receivedMessages, one.receivedFrames))
        self.add("sent", Self.count(one.sentBytes, one.sentMessages, one.sentFrames))
        self.add("queued to send", one.queuedSendBytes.map { QuantityText.bytes($0) })
        let unread = one.unreadMessages.map { ", \($0) messages" } ?? ""
        self.add("queued to read", one.queuedReceiveBytes.map { QuantityText.bytes($0) + unread })
        self.add("receive stalled", Self.stall(one.receiveStalledMs))
        self.add("send stalled", Self.stall(one.sendStalledMs))
        let ends = [one.inputClosed == true ? "input" : nil, one.outputClosed == true ? "output" : nil]
        self.add("half-closed", ends.compactMap(\.self).joined(separator: ", "))
        self.add("relayed", one.relayed == true ? "yes" : nil)
        if let ping = one.ping {
            let spans = [("last", ping.lastMs), ("p50", ping.p50Ms), ("p99", ping.p99Ms)]
            let words = spans.map { "\($0) \(QuantityText.duration(milliseconds: $1))" }
            self.add("round trip", words.joined(separator: ", ") + " of \(ping.count)")
        }
        self.add("compression", one.compression.map { $0.sentRatio.map { "sent \($0) : 1" } ?? "agreed, nothing sent" })
    }

    private static func count(_ bytes: UInt64?, _ messages: UInt64?, _ frames: UInt64?) -> String? {
        guard let bytes else { return nil }
        let exact = bytes < 1024 ? "" : " (\(bytes))"
        let more = [messages.map { "\($0) messages" }, frames.map { "\($0) frames" }].compactMap(\.self)
        return ([QuantityText.bytes(bytes) + exact] + more).joined(separator: ", ")
    }

    private static func stall(_ milliseconds: Double?) -> String? {
        milliseconds.flatMap { $0 > 0 ? QuantityText.duration(milliseconds: $0) : nil }
    }

    private mutating func addSecurity(_ one: Connection) {
        guard let tls = one.tls else { return }
        let parts = [
            tls.version, tls.cipher, tls.applicationProtocol.map { "ALPN \($0)" }, tls.serverName.map { "for \($0)" },
            tls.resumed ? "resumed" : nil,
        ]
        self.add("tls", parts.compactMap(\.self).joined(separator: ", "))
        let sizes = tls.peerCertificateSizesBytes.map { QuantityText.bytes($0) }
        self.add("certificates", sizes.joined(separator: ", "))
    }

    private mutating func addEnd(_ one: Connection) {
        self.add("closed", one.closedAt)
        self.add("close code", one.closeCode.map { "\($0)" })
        self.add("close reason", one.closeReason)
        self.add("ended", one.terminationReason)
        self.add("detail", one.terminationDetail)
    }

    private mutating func addHandshake(_ one: Connection) {
        guard let handshake = one.handshake else { return }
        for (name, head) in [("request", handshake.request), ("response", handshake.response)] {
            self.add(name, head.line)
            for header in head.headers { self.rows.append(("", "\(header.name): \(header.value)")) }
        }
    }
}

/// Parses labels of the form `NAME=VALUE`.
package enum LabelText {
    /// - Returns: `nil` if the name or `=` is missing.
    package static func pair(_ text: String) -> (name: String, value: String)? {
        guard let mark = text.firstIndex(of: "="), mark > text.startIndex else { return nil }
        return (String(text[..<mark]), String(text[text.index(after: mark)...]))
    }

    /// The last label with the same name wins.
    /// - Returns: the labels, or the first invalid one.
    package static func labels(_ texts: [String]) -> Result<[String: String], InvalidLabel> {
        var labels: [String: String] = [:]
        for text in texts {
            guard let (name, value) = self.pair(text) else { return .failure(InvalidLabel(text: text)) }
            labels[name] = value
        }
        return .success(labels)
    }

    /// An invalid label.
    package struct InvalidLabel: Error, Equatable {
        package let text: String

        package init(text: String) {
            self.text = text
        }
    }
}

extension Connection {
    /// Short description of how the connection was closed.
    package var closeDescription: String {
        guard self.state == "closed" else { return "closing" }
        let code = self.closeCode.map { " with \($0)" } ?? ""
        let reason = self.closeReason.map { $0.isEmpty ? "" : " \"\($0)\"" } ?? ""
        return "closed\(code)\(reason)\(self.terminationReason.map { ": \($0)" } ?? "")"
    }

    /// Whether the connection was closed cleanly, so that the received data is complete.
    package var endedCleanly: Bool {
        guard let code = self.closeCode else { return self.terminationReason?.hasSuffix("/clean") ?? false }
        return [1000, 1001, 1005].contains(code)
    }
}
