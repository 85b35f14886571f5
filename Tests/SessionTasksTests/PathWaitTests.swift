import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Attempts that wait for a network")
struct PathWaitTests {
    private static let offline = TransportFailure.offline(.noRoute(.networkDown))

    /// A change of before, which only the others have seen, may have led to its server.
    @Test func firstRepetitionNeedsNoChangeWhereOthersWaitAlready() throws {
        let testbed = TransportTestbed(.simulation)
        let (loop, host) = (try testbed.makeLoop(), try testbed.makeHost())
        let kernel = try host.listen(at: SimulatedSystem.pathNotifications)
        var (repetitions, waits) = ([0, 0], [PathWait]())
        for number in 0...1 {
            testbed.perform(on: loop) {
                let wait = PathWait(on: loop) { false }
                waits.append(wait)
                _ = wait.wait(after: Self.offline) {
                    repetitions[number] += 1
                    _ = wait.wait(after: Self.offline) { repetitions[number] += 1 }
                }
            }
            _ = testbed.run(until: { false }, atMost: .seconds(5))
            #expect(repetitions == (number == 0 ? [1, 0] : [1, 1]))
        }
        #expect(kernel.accepted.count == 1)
        testbed.perform(on: loop) { for wait in waits { wait.end() } }
        #expect(loop.watchedCount == 0)
    }
}
