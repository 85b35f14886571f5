import GatewayCore
import SessionTasks
import Testing

@Suite("What is counted")
struct GatewayFiguresTests {
    private func figures(routes: [String]) -> GatewayFigures {
        var figures = GatewayFigures()
        for route in routes {
            var sums = TrafficSums()
            sums.connections = 1
            figures.sums[route] = sums
            for stage in [TaskStage.open, .closing] {
                let group = GatewayFigures.Group(route: route, kind: .stream, isAccepted: true, stage: stage)
                figures.live[group] = 2
            }
        }
        return figures
    }

    @Test func asManyRoutesAsAreToldApartStayAsTheyAre() {
        let routes = (1...GatewayFigures.routeLimit).map { "r\($0)" }
        let bounded = self.figures(routes: routes).bounded(preferring: [])
        #expect(Set(bounded.sums.keys) == Set(routes))
    }

    @Test func whatIsBeyondCountsTogetherAndIsNotLost() {
        let routes = (1...1000).map { "r\($0)" }
        let bounded = self.figures(routes: routes).bounded(preferring: ["r1000", "r999", "gone"])
        #expect(bounded.sums.count == GatewayFigures.routeLimit + 1)
        #expect(bounded.sums["r1000"]?.connections == 1)
        #expect(bounded.sums["r999"]?.connections == 1)
        #expect(bounded.sums["other"]?.connections == UInt64(1000 - GatewayFigures.routeLimit))
        #expect(bounded.sums.values.reduce(0) { $0 + $1.connections } == 1000)
        #expect(bounded.live.values.reduce(0, +) == 4000)
        #expect(Set(bounded.live.keys.map(\.route)).count == GatewayFigures.routeLimit + 1)
    }
}
