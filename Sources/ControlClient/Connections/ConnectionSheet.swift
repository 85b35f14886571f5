import CommandLineText
import ControlAPI

/// Everything that is known of one connection, a line for each fact.
package struct ConnectionSheet {
    private var rows: [(name: String, value: String)] = []

    package init(_ one: Connection) {
        self.addIdentity(one)
        self.addTimes(one)
        self.addTraffic(one)
        self.addSecurity(one)
        self.addEnd(one)
        self.addHandshake(one)
    }

    /// Safe to print; the names stand under each other.
    package var lines: [String] {
        let width = self.rows.reduce(0) { max($0, $1.name.count) }
        return self.rows.map { row in
            CellText.fit(row.name, cells: width + 2) + TerminalText.line(row.value, limit: 4000)
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
        self.add("local", one.localAddress)
        self.add("subprotocol", one.subprotocol)
    }

    private mutating func addTimes(_ one: Connection) {
        let age = one.ageMs.map { " (\(FigureText.span(milliseconds: $0)))" } ?? ""
        self.add("created", one.createdAt.map { $0 + age })
        self.add("opened", one.openedAt)
        let idle = one.idleMs.map { " (\(FigureText.span(milliseconds: $0)) ago)" } ?? ""
        self.add("last activity", one.lastActivityAt.map { $0 + idle })
    }

    private mutating func addTraffic(_ one: Connection) {
        self.add("received", Self.count(one.receivedBytes, one.receivedMessages, one.receivedFrames))
        self.add("sent", Self.count(one.sentBytes, one.sentMessages, one.sentFrames))
        self.add("queued to send", one.queuedSendBytes.map { FigureText.bytes($0) })
        let unread = one.unreadMessages.map { ", \($0) messages" } ?? ""
        self.add("queued to read", one.queuedReceiveBytes.map { FigureText.bytes($0) + unread })
        self.add("not read for", Self.stall(one.receiveStalledMs))
        self.add("not sent for", Self.stall(one.sendStalledMs))
        let ends = [one.inputClosed == true ? "input" : nil, one.outputClosed == true ? "output" : nil]
        self.add("closed for", ends.compactMap(\.self).joined(separator: ", "))
        self.add("relayed", one.relayed == true ? "yes" : nil)
        if let ping = one.ping {
            let spans = [("last", ping.lastMs), ("p50", ping.p50Ms), ("p99", ping.p99Ms)]
            let words = spans.map { "\($0) \(FigureText.span(milliseconds: $1))" }
            self.add("round trip", words.joined(separator: ", ") + " of \(ping.count)")
        }
        self.add("compression", one.compression.map { $0.sentRatio.map { "sent \($0) : 1" } ?? "agreed, nothing sent" })
    }

    private static func count(_ bytes: UInt64?, _ messages: UInt64?, _ frames: UInt64?) -> String? {
        guard let bytes else { return nil }
        let exact = bytes < 1024 ? "" : " (\(bytes))"
        let more = [messages.map { "\($0) messages" }, frames.map { "\($0) frames" }].compactMap(\.self)
        return ([FigureText.bytes(bytes) + exact] + more).joined(separator: ", ")
    }

    private static func stall(_ milliseconds: Double?) -> String? {
        milliseconds.flatMap { $0 > 0 ? FigureText.span(milliseconds: $0) : nil }
    }

    private mutating func addSecurity(_ one: Connection) {
        guard let tls = one.tls else { return }
        let facts = [
            tls.version, tls.cipher, tls.applicationProtocol.map { "ALPN \($0)" }, tls.serverName.map { "for \($0)" },
            tls.resumed ? "resumed" : nil,
        ]
        self.add("tls", facts.compactMap(\.self).joined(separator: ", "))
        let sizes = tls.peerCertificateSizesBytes.map { FigureText.bytes($0) }
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
