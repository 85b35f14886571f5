import CommandLineText
import ControlAPI

/// Connections as rows for people.
package struct ConnectionTable {
    /// What the rows need of a connection.
    package static let fields = [
        "id", "kind", "state", "direction", "url", "listener", "route", "upstream", "peerAddress", "clientAddress",
        "receivedBytes", "sentBytes", "queuedSendBytes", "queuedReceiveBytes", "stalled", "suspended", "idleMs",
        "ageMs", "ping", "closeCode", "terminationReason", "description", "labels",
    ]

    private static let columns = [
        TextTable.Column("ID", trailing: true), TextTable.Column("KIND", rank: 4), TextTable.Column("STATE"),
        TextTable.Column("PEER", least: 21, keepsPort: true), TextTable.Column("VIA", least: 8, rank: 2),
        TextTable.Column("RECEIVED", trailing: true, rank: 1), TextTable.Column("SENT", trailing: true, rank: 1),
        TextTable.Column("QUEUED", trailing: true, rank: 3), TextTable.Column("RTT", trailing: true, rank: 6),
        TextTable.Column("IDLE", trailing: true, rank: 5), TextTable.Column("AGE", trailing: true, rank: 3),
        TextTable.Column("NOTE", least: 10, rank: 7),
    ]

    package private(set) var table = TextTable(Self.columns)

    package init(_ connections: [Connection] = []) {
        for connection in connections { self.add(connection) }
    }

    private mutating func add(_ one: Connection) {
        let queued = (one.queuedSendBytes ?? 0) + (one.queuedReceiveBytes ?? 0)
        self.table.add([
            TextTable.Cell(one.id), TextTable.Cell(Self.kind(one.kind)), Self.state(one),
            TextTable.Cell(one.clientAddress ?? one.peerAddress), TextTable.Cell(Self.way(one)),
            TextTable.Cell(one.receivedBytes.map { FigureText.bytes($0) }),
            TextTable.Cell(one.sentBytes.map { FigureText.bytes($0) }),
            TextTable.Cell(queued == 0 ? "0" : FigureText.bytes(queued), queued == 0 ? .faint : .yellow),
            TextTable.Cell(one.ping.map { FigureText.span(milliseconds: $0.lastMs) }),
            TextTable.Cell(one.idleMs.map { FigureText.span(milliseconds: $0) }),
            TextTable.Cell(one.ageMs.map { FigureText.span(milliseconds: $0) }),
            TextTable.Cell(Self.note(one)),
        ])
    }

    private static func kind(_ kind: String?) -> String? {
        kind == "webSocket" ? "ws" : kind
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

    /// How it came about: a listener and where it leads, or a URL.
    private static func way(_ one: Connection) -> String? {
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
