import SimulatedNetwork
import StreamTransport
import Testing

@Suite("Work at the end of a turn")
struct TurnEndTests {
    private final class Log {
        var entries: [String] = []
    }

    /// Does its work in the middle of a turn, and requests more at its end.
    private final class Worker: TurnEndTarget, EventsEndTarget {
        private let name: String
        private let log: Log
        private let loop: Loop
        var repetitions = 1

        init(_ name: String, _ log: Log, on loop: Loop) {
            self.name = name
            self.log = log
            self.loop = loop
        }

        func turnEnded() {
            self.log.entries.append("\(self.name) works")
            self.loop.afterEvents(self)
        }

        func eventsEnded() {
            self.log.entries.append("\(self.name) ends")
            self.repetitions -= 1
            if self.repetitions > 0 { self.loop.afterEvents(self) }
        }
    }

    @Test func targetsAreCalledOnceAllEventsOfTheTurnAreActedOn() {
        let loop = Loop(system: SimulatedNetwork(seed: 1).makeSystem())
        let log = Log()
        let workers = ["a", "b"].map { Worker($0, log, on: loop) }
        for worker in workers { loop.inNextTurn(worker) }
        loop.turn()
        #expect(log.entries == ["a works", "b works", "a ends", "b ends"])
    }

    @Test func targetAddedAtTheEndOfATurnIsCalledInTheNextOneAtOnce() {
        let loop = Loop(system: SimulatedNetwork(seed: 1).makeSystem())
        let log = Log()
        let worker = Worker("a", log, on: loop)
        worker.repetitions = 3
        loop.inNextTurn(worker)
        loop.turn()
        #expect(log.entries == ["a works", "a ends"])
        // Nothing else is ready: the loop does not wait for it.
        let before = loop.now
        loop.turn()
        loop.turn()
        #expect(log.entries == ["a works", "a ends", "a ends", "a ends"])
        #expect(loop.now == before)
    }
}
