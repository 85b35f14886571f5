import GatewayConfiguration
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport

/// Invariants during a load and at its end.
extension GatewayLoad {
    /// Beyond what the watermark and one read allow: frame headers, control frames, the opening response.
    private static let slack = 1024

    /// No connection holds back more than its route allows.
    func judgeQueues() {
        for (route, high) in LoadConfiguration.watermarks {
            for part in self.gateway.parts {
                let held = part.largestQueue(onRoute: route)
                guard held > 2 * (high + max(high, 4096)) + Self.slack else { continue }
                self.complaints.append("a connection on \(route) holds \(held) bytes")
            }
        }
    }

    // MARK: Observations of clients and upstreams

    /// Whether every peer that must receive everything has received it.
    var isContent: Bool {
        self.discontent.isEmpty
    }

    var discontent: [String] {
        // The bytes of a refused client do not arrive.
        let refuses = self.gateway.shared.counters.all["listener-limit"] != nil
        let raw = self.raw.filter { client in
            if case .raw(port: 1002) = client.door.entrance, refuses { return false }
            return !client.isContent
        }
        let web = self.web.filter { !$0.isContent }
        return raw.map { "a raw client at \($0.door.entrance) \($0.lot)" }
            + web.map { "a WebSocket client at \($0.door.entrance) \($0.lot)" }
    }

    /// The observations of the clients, including ends: before the gateway drains, which ends all other connections.
    func judgeClients() {
        self.complaints += self.raw.compactMap { client in
            client.complaintAboutEnd.map { "a raw client at \(client.door.entrance) \($0)" }
        }
        self.complaints += self.web.compactMap { client in
            client.complaintAboutEnd.map { "a WebSocket client at \(client.door.entrance) \($0)" }
        }
        for peer in self.sinks.accepted where peer.sawEnd && peer.failure == nil && peer.received.count >= 4 {
            guard !self.sinkEnds.contains(peer.received) else { continue }
            self.complaints.append("a sink saw a clean end after \(peer.received.count) bytes that are not all")
        }
    }

    /// The bytes that a sink may have received at a clean end.
    private var sinkEnds: [[UInt8]] {
        self.raw.filter { $0.hasEnded && $0.ending == .finishes }.map(\.sent)
            + self.web.filter { $0.hasEnded && $0.ending != .resets }.map { $0.sent.flatMap(\.self) }
    }

    private func judgeBytes() {
        self.complaints += self.raw.compactMap { client in
            client.complaint.map { "a raw client at \(client.door.entrance) \($0)" }
        }
        self.complaints += self.web.compactMap { client in
            client.complaint.map { "a WebSocket client at \(client.door.entrance) \($0)" }
        }
        let said = self.raw.map(\.sent) + self.web.map { $0.sent.flatMap(\.self) }
        for peer in self.sinks.accepted where !said.contains(where: { $0.starts(with: peer.received) }) {
            self.complaints.append("a sink heard what was never said")
        }
    }

    // MARK: The end

    /// Ends everything cleanly, and checks that nothing is left.
    func conclude() {
        self.network.faults = .calm
        self.drainGateway()
        self.let(.seconds(25))
        if !self.isDrained { self.complaints.append("draining never ended") }
        let web = self.web
        self.loop.inNextTurn(GatewayCall { for client in web { client.task.reset() } })
        self.host.close()
        var empty = false
        self.upstream.drain(Self.drain) { empty = true }
        if self.network.runUntilIdle(atMost: .seconds(7200)) != .idle { self.complaints.append("time does not end") }
        if !empty { self.complaints.append("draining the upstream never ended") }
        self.judgeBytes()
        self.judgeLeftovers(self.gateway, "the gateway")
        self.judgeLeftovers(self.upstream, "the upstream")
        self.complaints += self.network.misuses
        // The tally belongs to the loop, which outlives the gateway.
        let held = self.watched.filter { $0.object != nil && $0.name != "LoopTaskMetrics" }.map(\.name)
        if !held.isEmpty { self.complaints.append("still there: \(held.sorted())") }
    }

    private func judgeLeftovers(_ gateway: SimulatedGateway, _ name: String) {
        let left = [
            "connections": gateway.liveCount, "watched descriptors": gateway.watchedCount,
            "open descriptors": gateway.process.openDescriptors,
            "timers": gateway.parts.reduce(0) { $0 + $1.loop.timerCount },
            "admitted connections": gateway.shared.withAdmission { $0.connections },
            "clients counted": gateway.plan.configuration.listeners.reduce(0) { sum, listener in
                sum + gateway.shared.withAdmission { $0.clients(listener: listener.name) }
            },
            "upstream connections": gateway.plan.upstreamConnections,
        ]
        for (what, count) in left.sorted(by: { $0.key < $1.key }) where count != 0 {
            self.complaints.append("\(name) has \(count) \(what) left")
        }
        self.judgeLog(gateway, name)
    }

    /// One line at the end of each connection, with one reason; one at the opening of each that came to an endpoint.
    private func judgeLog(_ gateway: SimulatedGateway, _ name: String) {
        let endings = gateway.endings
        let all = gateway.parts.flatMap { $0.identifiers.map { Int($0) } }.sorted()
        if endings.map(\.identifier).sorted() != all {
            self.complaints.append("\(name) gave \(endings.count) reasons for \(all.count) connections")
        }
        let counted = gateway.shared.counters.all.filter { $0.key.hasPrefix("ended/") }.values.reduce(0, +)
        if counted != all.count { self.complaints.append("\(name) counted \(counted) ends of \(all.count)") }
        let reached = endings.filter { $0.reason.contains("/relaying/") || $0.reason.contains("/closing/") }
        if gateway.openings.sorted() != reached.map(\.identifier).sorted() {
            self.complaints.append("\(name) logged \(gateway.openings.count) openings of \(reached.count)")
        }
    }

    /// How many connections came to an end by each reason.
    var reasons: [String: Int] {
        Dictionary(self.gateway.endings.map { ($0.reason, 1) }, uniquingKeysWith: +)
    }
}
