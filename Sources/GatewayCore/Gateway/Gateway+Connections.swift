import SessionTasks
import StreamTransport

/// The gateway's connections as the control plane sees them. From any thread.
extension Gateway {
    /// Connections that one turn of a loop looks at when many are listed, so that a list never holds up traffic.
    static let reportsPerTurn = 128

    /// One connection and its task, for somebody to use.
    package struct Live: Sendable {
        package let link: TunnelLink?
        package let report: ConnectionReport
    }

    /// What is known by a name.
    package enum Lookup: Sendable {
        case live(Live)
        case closed(ConnectionReport)
        case unknown
    }

    private func part(of key: ConnectionKey) -> LoopConfined<LoopGateway>? {
        guard key.number > 0, !self.parts.isEmpty else { return nil }
        return self.parts[Int((key.number - 1) % UInt64(self.parts.count))]
    }

    /// The numbers of all live connections, in rising order.
    /// - Parameter first: those below are left out.
    package func liveNumbers(from first: UInt64 = 0) async -> [UInt64] {
        var numbers: [UInt64] = []
        for part in self.parts { numbers += await part.value.loop.perform { part.value.liveIdentifiers(from: first) } }
        return numbers.inRisingOrder
    }

    /// Reports of those that still live; of a tunnel, two. In no special order.
    /// - Returns: what each turn of a loop gave: reports are large, and are left where they are.
    package func reports(of numbers: [UInt64]) async -> [[ConnectionReport]] {
        var byPart: [[UInt64]] = Array(repeating: [], count: self.parts.count)
        for number in numbers where number > 0 { byPart[Int((number - 1) % UInt64(self.parts.count))].append(number) }
        var reports: [[ConnectionReport]] = []
        for (part, numbers) in zip(self.parts, byPart) {
            var rest = numbers[...]
            while !rest.isEmpty {
                let turn = rest.prefix(Self.reportsPerTurn)
                rest = rest.dropFirst(turn.count)
                reports.append(await part.value.loop.perform { part.value.reports(of: turn) })
            }
        }
        return reports
    }

    /// Those that ended last, in no special order.
    package func closedReports() async -> [ConnectionReport] {
        var reports: [ConnectionReport] = []
        for part in self.parts { reports += await part.value.loop.perform { Array(part.value.closed.reports) } }
        return reports
    }

    package func find(_ key: ConnectionKey) async -> Lookup {
        guard let part = self.part(of: key) else { return .unknown }
        return await part.value.loop.perform {
            switch part.value.find(key) {
            case .live(let report):
                .live(Live(link: part.value.live[key.number]?.link(key.side), report: report))
            case .closed(let report): .closed(report)
            case .unknown: .unknown
            }
        }
    }

    /// Ends a connection in order, and its tunnel with it.
    /// - Returns: whether it was there.
    package func stop(_ key: ConnectionKey, _ signal: CloseSignal) async -> Bool {
        await self.withLive(key) { $0.stop(signal) }
    }

    /// Ends a connection at once with a reset, and its tunnel with it.
    /// - Returns: whether it was there.
    package func abort(_ key: ConnectionKey) async -> Bool {
        await self.withLive(key) { $0.abandon(.operator, .stopped) }
    }

    private func withLive(_ key: ConnectionKey, _ body: @escaping @Sendable (any LiveConnection) -> Void) async -> Bool
    {
        guard let part = self.part(of: key) else { return false }
        return await part.value.loop.perform {
            guard let connection = part.value.live[key.number] else { return false }
            body(connection)
            return true
        }
    }

    /// Puts other labels in the place of a connection's own; empty takes them away.
    /// - Returns: whether it was there.
    package func setLabels(_ labels: [String: String], of key: ConnectionKey) async -> Bool {
        guard let part = self.part(of: key) else { return false }
        return await part.value.loop.perform {
            guard part.value.live[key.number] != nil else { return false }
            part.value.labels[key] = labels.isEmpty ? nil : labels
            return true
        }
    }

    /// The messages of a connection that ended before all were received; `nil` if there are none.
    package func leftover(_ key: ConnectionKey) async -> WebSocketTask? {
        guard let part = self.part(of: key) else { return nil }
        return await part.value.loop.perform {
            part.value.leftovers.first { $0.identifier == key.number }?.webSocket
        }
    }
}
