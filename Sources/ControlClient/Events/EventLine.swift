import CommandLineText
import ControlAPI

/// What happened, in a line for people.
package enum EventLine {
    /// Safe to print.
    package static func line(_ event: Event, colors: Bool = false) -> String {
        let time = event.at.map { self.time($0) } ?? ""
        let ink = self.ink(event.type)
        let type = CellText.fit(event.type, cells: 15)
        let words = TerminalText.line(self.words(event), limit: 1000)
        return "\(CellText.fit(time, cells: 12))  \(colors ? ink.drawn(type) : type)  \(words)"
    }

    /// The time of day of a timestamp, as it stands there: UTC.
    private static func time(_ timestamp: String) -> String {
        guard let mark = timestamp.firstIndex(of: "T") else { return timestamp }
        return String(timestamp[timestamp.index(after: mark)...].prefix { $0 != "Z" && $0 != "+" })
    }

    private static func ink(_ type: String) -> Ink {
        switch type {
        case "opened", "upstreamUp", "reloaded", "transferEnded": .green
        case "upstreamDown", "reloadFailed", "limitHit", "transferFailed", "gap": .red
        case "drainStarted", "drainProgressed", "drainEnded": .yellow
        default: .plain
        }
    }

    private static func words(_ event: Event) -> String {
        if let first = event.missedFrom, let last = event.missedTo {
            return "events \(first) to \(last) are not kept any more"
        }
        let facts = [
            event.connection, event.listener.map { "on \($0)" }, event.route.map { "route \($0)" },
            event.upstream.map { "upstream \($0)" },
            event.endpoint == event.upstream ? nil : event.endpoint.map { "endpoint \($0)" }, event.url,
            event.peerAddress.map { "peer \($0)" },
            event.drain.map { "drain \($0)" }, event.transfer.map { "transfer \($0)" },
            event.count.map { "count \($0)" }, event.reason, event.detail,
            event.closeReason.flatMap { $0.isEmpty ? nil : "said \"\($0)\"" },
            event.receivedBytes.map { "received \(FigureText.bytes($0))" },
            event.sentBytes.map { "sent \(FigureText.bytes($0))" },
            event.labels.map { $0.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ") },
        ]
        return facts.compactMap(\.self).joined(separator: ", ")
    }
}
