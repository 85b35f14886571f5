import SimulatedNetwork
import StreamTransport
import Synchronization
import Testing

@Suite("Work that is handed to a loop")
struct LoopInboxTests {
    @Test func handedWorkIsDoneInPartsAndInOrder() {
        let loop = Loop(system: SimulatedNetwork(seed: 1).makeSystem())
        let done = Mutex<[Int]>([])
        for number in 0..<1000 { loop.execute { done.withLock { $0.append(number) } } }
        var turns = 0
        while done.withLock({ $0.count }) < 1000, turns < 1000 {
            let before = done.withLock { $0.count }
            loop.turn()
            turns += 1
            #expect(done.withLock { $0.count } - before <= Loop.inboxShare)
        }
        #expect(done.withLock { $0 } == Array(0..<1000))
        #expect(turns > 1000 / Loop.inboxShare && turns <= 1000 / Loop.inboxShare + 1)
    }
}
