import SessionTasks
import StreamTransport
import Synchronization

extension Gateway {
    /// Sums everything up, a few hundred connections a turn.
    package func figures() async -> GatewayFigures {
        var figures = GatewayFigures()
        figures.loops = self.parts.count
        for part in self.parts {
            var rest = await part.value.loop.perform { part.value.liveIdentifiers(from: 0) }[...]
            let begun = figures
            figures = await part.value.loop.perform { part.value.settled(begun) }
            while !rest.isEmpty {
                let turn = rest.prefix(Self.reportsPerTurn)
                rest = rest.dropFirst(turn.count)
                let begun = figures
                figures = await part.value.loop.perform { part.value.counted(turn, begun) }
            }
        }
        let configured = self.state.withLock { $0.plan?.configuration.routes.map(\.name) ?? [] }
        return figures.bounded(preferring: configured)
    }
}

extension LoopGateway {
    /// Adds what is over.
    func settled(_ figures: GatewayFigures) -> GatewayFigures {
        var figures = figures
        for (route, sums) in self.totals.ended { figures.sums[route, default: TrafficSums()].add(sums) }
        figures.handshakes.add(self.totals.handshakes)
        figures.lives.add(self.totals.lives)
        let tally = LoopTally.shared(on: self.loop)
        figures.messageSizes.add(tally.messageSizes)
        figures.roundTrips.add(tally.roundTrips)
        figures.addedLatencies.add(AddedLatency.shared(on: self.loop).distribution)
        return figures
    }

    /// Adds some of what lives.
    func counted(_ identifiers: ArraySlice<UInt64>, _ figures: GatewayFigures) -> GatewayFigures {
        var figures = figures
        var reports: [ConnectionReport] = []
        for identifier in identifiers {
            guard let connection = self.live[identifier] else { continue }
            let route = connection.routeName ?? ""
            reports.removeAll(keepingCapacity: true)
            connection.report(at: self.loop.now, to: &reports)
            for report in reports {
                let group = GatewayFigures.Group(
                    route: route, kind: report.kind, isAccepted: report.isAccepted, stage: report.stage)
                figures.live[group, default: 0] += 1
                figures.stalled += report.isStalled ? 1 : 0
                figures.queuedBytes += report.queuedSendBytes + report.queuedReceiveBytes
                if let record = report.record { figures.sums[route, default: TrafficSums()].add(record) }
            }
        }
        return figures
    }
}
