import SimulatedNetwork
import StreamTransport
import Testing

@Suite("Turns that take too long")
struct SlowTurnTests {
    /// Keeps its loop busy for longer than a turn may take.
    private final class SlowTarget: TurnEndTarget {
        func turnEnded() {
            let end = ContinuousClock.now.advanced(by: .milliseconds(6))
            while ContinuousClock.now < end {}
        }
    }

    @Test func slowTurnsAreCounted() throws {
        let loop = Loop(system: try LinuxSystem())
        loop.inNextTurn(SlowTarget())
        loop.turn()
        #expect(loop.slowTurnCount == 1)
        loop.inNextTurn(SlowTarget())
        loop.turn()
        #expect(loop.slowTurnCount == 2)
    }

    @Test func virtualTimeHasNoSlowTurns() {
        let loop = Loop(system: SimulatedNetwork(seed: 1).makeSystem())
        loop.inNextTurn(SlowTarget())
        loop.turn()
        #expect(loop.slowTurnCount == 0)
    }

    #if DEBUG
        @Test func slowTurnIsReportedWithItsCauseOnceASecond() throws {
            let loop = Loop(system: try LinuxSystem())
            var reports: [SlowWork] = []
            loop.slowWorkObserver = { reports.append($0) }
            for _ in 0..<2 {
                loop.inNextTurn(SlowTarget())
                loop.turn()
            }
            let report = try #require(reports.first)
            #expect(report.worker == "SlowTarget" && report.duration >= .milliseconds(6))
            #expect(reports.count == 1)
            #expect(loop.slowTurnCount == 2)
        }
    #endif
}
