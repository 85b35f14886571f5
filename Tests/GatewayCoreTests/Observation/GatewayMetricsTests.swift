import GatewayCore
import SessionTasks
import Testing

@Suite("Metrics of the gateway")
struct GatewayMetricsTests {
    private func figures(routes: [String]) -> GatewayMetrics {
        var figures = GatewayMetrics()
        for route in routes {
            var sums = TrafficMetrics()
            sums.connections = 1
            figures.traffic[route] = sums
            for stage in [TaskStage.open, .closing] {
                let group = GatewayMetrics.Group(route: route, kind: .stream, isAccepted: true, stage: stage)
                figures.live[group] = 2
            }
        }
        return figures
    }

    @Test func routesUpToTheLimitHaveTheirOwnLabels() {
        let routes = (1...GatewayMetrics.routeLimit).map { "r\($0)" }
        let bounded = self.figures(routes: routes).bounded(preferring: [])
        #expect(Set(bounded.traffic.keys) == Set(routes))
    }

    @Test func routesBeyondTheLimitAreCountedTogether() {
        let routes = (1...1000).map { "r\($0)" }
        let bounded = self.figures(routes: routes).bounded(preferring: ["r1000", "r999", "gone"])
        #expect(bounded.traffic.count == GatewayMetrics.routeLimit)
        #expect(bounded.traffic["r1000"]?.connections == 1)
        #expect(bounded.traffic["r999"]?.connections == 1)
        #expect(bounded.traffic["other"]?.connections == UInt64(1001 - GatewayMetrics.routeLimit))
        #expect(bounded.traffic.values.reduce(0) { $0 + $1.connections } == 1000)
        #expect(bounded.live.values.reduce(0, +) == 4000)
        #expect(Set(bounded.live.keys.map(\.route)).count == GatewayMetrics.routeLimit)
    }

    @Test func labelOfARouteDoesNotDependOnTheConnectionsOfOthers() {
        let configured = (1...400).map { "r\($0)" }
        func labels(_ routes: some Sequence<String>) -> Set<String> {
            Set(self.figures(routes: Array(routes)).bounded(preferring: configured).traffic.keys)
        }
        let some = labels(configured.dropFirst())
        #expect(labels(configured) == some.union(["r1"]))
        #expect(labels(configured + [""]) == some.union(["r1", ""]))
    }
}
