import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Sharing the work of a turn among connections")
struct TurnBudgetTests {
    typealias Kind = TransportTestbed.Kind

    @Test func sharesGetSmallWhenTheTurnIsUsedUp() {
        var budget = TurnBudget()
        var share = budget.beginTurn()
        for _ in 0..<(TurnBudget.turn / TurnBudget.share) {
            #expect(share == TurnBudget.share && !budget.isSpent)
            share = budget.nextShare(unspent: 0)
        }
        #expect(share == TurnBudget.smallShare && budget.isSpent)
        #expect(budget.beginTurn() == TurnBudget.share && !budget.isSpent)
    }

    @Test func unspentBudgetIsLeftForOtherConnections() {
        var budget = TurnBudget()
        var share = budget.beginTurn()
        for _ in 0..<1000 { share = budget.nextShare(unspent: share) }
        #expect(share == TurnBudget.share)
        // One that could not stop in time has the others' share as well.
        #expect(budget.nextShare(unspent: -TurnBudget.turn) == TurnBudget.smallShare)
    }

    /// Takes one byte for each share of the loop's work.
    private func makeCostly(_ consumer: RecordingConsumer, on loop: Loop) {
        consumer.acceptedCount = { [unowned loop] offered in
            var taken = 0
            while taken < offered, !loop.budgetIsSpent {
                loop.spend(TurnBudget.share)
                taken += 1
            }
            return taken
        }
    }

    @Test(arguments: Kind.allCases)
    func connectionOverItsBudgetContinuesInTheNextTurn(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, costly, peer) = try harness.connect()
        self.makeCostly(costly, on: harness.loop)
        let bytes = (0..<200).map { UInt8($0) }
        peer.send(bytes)
        #expect(harness.run { costly.received.count == 200 })
        // One byte per turn, in order, each offer without the consumed bytes.
        #expect(costly.received == bytes && costly.offers == Array((1...200).reversed()))
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func aNeighbourHasItsTurnMeanwhile(_ kind: Kind) throws {
        var faults = FaultPlan.calm
        // Else nothing would travel while the loop is busy.
        faults.turnCost = .microseconds(10) ... .microseconds(10)
        let harness = try LoopHarness(kind, faults: faults)
        let (connection, costly, peer) = try harness.connect()
        let (other, neighbour, friend) = try harness.connect()
        self.makeCostly(costly, on: harness.loop)
        peer.send([UInt8](repeating: 1, count: 1000))
        #expect(harness.run { costly.received.count == 10 })
        friend.send("hello")
        var before = 0
        neighbour.onBytes = { _ in before = costly.received.count }
        #expect(harness.run { neighbour.text == "hello" })
        #expect(before > 0 && before < 500)
        #expect(harness.run { costly.received.count == 1000 })
        neighbour.onBytes = { _ in }
        harness.perform {
            connection.reset()
            other.reset()
        }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func bufferedBytesAreOfferedBeforeNewReads(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, costly, peer) = try harness.connect()
        self.makeCostly(costly, on: harness.loop)
        peer.send("first")
        #expect(harness.run { costly.received.count == 1 })
        peer.send("second")
        peer.finish()
        #expect(harness.run { costly.events == [.inputClosed] })
        #expect(costly.text == "firstsecond")
        #expect(costly.offers == [5, 4, 3, 2, 1, 6, 5, 4, 3, 2, 1])
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func pausedConsumerReceivesTheRestWhenItResumes(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, costly, peer) = try harness.connect()
        self.makeCostly(costly, on: harness.loop)
        costly.onBytes = { [unowned connection, unowned costly] _ in
            if costly.received.count == 3 { connection.pauseReading() }
        }
        peer.send("0123456789")
        #expect(harness.run { costly.text == "012" })
        harness.testbed.settle()
        #expect(costly.text == "012")
        harness.perform { connection.resumeReading() }
        #expect(harness.run { costly.text == "0123456789" })
        costly.onBytes = { _ in }
        harness.perform { connection.reset() }
        harness.finish()
    }

    /// However many of them there are, each has a part in every turn or in one soon after.
    @Test(arguments: Kind.allCases)
    func costlyConnectionsProgressSideBySide(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let all = try (0..<40).map { _ in try harness.connect() }
        for (_, costly, peer) in all {
            self.makeCostly(costly, on: harness.loop)
            peer.send([UInt8](repeating: 7, count: 60))
        }
        var spread = 0
        let isDone = harness.run {
            let counts = all.map(\.consumer.received.count)
            if let least = counts.min(), least > 0, let most = counts.max() { spread = max(spread, most - least) }
            return counts.allSatisfy { $0 == 60 }
        }
        #expect(isDone && spread <= 10)
        harness.perform { for (connection, _, _) in all { connection.reset() } }
        harness.finish()
    }
}
