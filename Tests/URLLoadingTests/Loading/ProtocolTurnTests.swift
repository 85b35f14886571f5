import Dispatch
import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Turns of protocols", .timeLimit(.minutes(5)))
struct ProtocolTurnTests {
    private final class Record: Sendable {
        private let state = Mutex((running: 0, most: 0, order: [Int]()))
        let done = DispatchSemaphore(value: 0)

        var most: Int { self.state.withLock { $0.most } }
        var order: [Int] { self.state.withLock { $0.order } }

        func note(_ number: Int) {
            self.state.withLock { state in
                state.running += 1
                state.most = max(state.most, state.running)
                state.order.append(number)
            }
            sched_yield()
            self.state.withLock { $0.running -= 1 }
            self.done.signal()
        }
    }

    @Test func callsRunOneAtATimeInTheirOrder() async {
        let (turns, record) = (ProtocolTurns(), Record())
        await withCheckedContinuation { continuation in
            for number in 0..<1000 { turns.add { record.note(number) } }
            turns.add { continuation.resume() }
        }
        #expect(record.most == 1 && record.order == Array(0..<1000))
    }

    /// Calls may be added from many threads, and while others run.
    @Test func noCallIsLost() async {
        let (turns, record) = (ProtocolTurns(), Record())
        await withTaskGroup { group in
            for number in 0..<8 {
                group.addTask {
                    for _ in 0..<200 {
                        await withCheckedContinuation { continuation in
                            turns.add {
                                record.note(number)
                                continuation.resume()
                            }
                        }
                    }
                }
            }
        }
        #expect(record.most == 1 && record.order.count == 1600)
    }

    @Test func suspendedCallLetsOthersRunAndGoesOnAlone() async {
        let (turns, record) = (ProtocolTurns(), Record())
        await withCheckedContinuation { continuation in
            for number in 0..<3 {
                turns.add {
                    // Ended by the last call, which runs meanwhile.
                    turns.suspending { record.done.wait() }
                    record.note(number)
                }
            }
            turns.add {
                record.note(3)
                turns.add { continuation.resume() }
            }
        }
        // The first suspended call may go on before the last one is added.
        while record.order.count < 4 { await Task.yield() }
        #expect(record.most == 1 && record.order.first == 3 && Set(record.order) == [0, 1, 2, 3])
    }

    @Test func waitOutsideOfACallIsJustAWait() {
        #expect(ProtocolTurns().suspending { 5 } == 5)
    }
}
