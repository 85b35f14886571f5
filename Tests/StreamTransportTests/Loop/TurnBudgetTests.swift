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
        let meeting = try LoopMeeting(kind)
        let (connection, costly, peer) = try meeting.connect()
        self.makeCostly(costly, on: meeting.loop)
        let bytes = (0..<200).map { UInt8($0) }
        peer.send(bytes)
        #expect(meeting.run { costly.received.count == 200 })
        // One byte per turn, in order, each offer without the consumed bytes.
        #expect(costly.received == bytes && costly.offers == Array((1...200).reversed()))
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func aNeighbourHasItsTurnMeanwhile(_ kind: Kind) throws {
        var faults = FaultPlan.calm
        // Else nothing would travel while the loop is busy.
        faults.turnCost = .microseconds(10) ... .microseconds(10)
        let meeting = try LoopMeeting(kind, faults: faults)
        let (connection, costly, peer) = try meeting.connect()
        let (other, neighbour, friend) = try meeting.connect()
        self.makeCostly(costly, on: meeting.loop)
        peer.send([UInt8](repeating: 1, count: 1000))
        #expect(meeting.run { costly.received.count == 10 })
        friend.send("hello")
        var before = 0
        neighbour.onBytes = { _ in before = costly.received.count }
        #expect(meeting.run { neighbour.text == "hello" })
        #expect(before > 0 && before < 500)
        #expect(meeting.run { costly.received.count == 1000 })
        neighbour.onBytes = { _ in }
        meeting.perform {
            connection.reset()
            other.reset()
        }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func bufferedBytesAreOfferedBeforeNewReads(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, costly, peer) = try meeting.connect()
        self.makeCostly(costly, on: meeting.loop)
        peer.send("first")
        #expect(meeting.run { costly.received.count == 1 })
        peer.send("second")
        peer.finish()
        #expect(meeting.run { costly.events == [.inputClosed] })
        #expect(costly.text == "firstsecond")
        #expect(costly.offers == [5, 4, 3, 2, 1, 6, 5, 4, 3, 2, 1])
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func pausedConsumerReceivesTheRestWhenItResumes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, costly, peer) = try meeting.connect()
        self.makeCostly(costly, on: meeting.loop)
        costly.onBytes = { [unowned connection, unowned costly] _ in
            if costly.received.count == 3 { connection.pauseReading() }
        }
        peer.send("0123456789")
        #expect(meeting.run { costly.text == "012" })
        meeting.ground.settle()
        #expect(costly.text == "012")
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { costly.text == "0123456789" })
        costly.onBytes = { _ in }
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    /// However many of them there are, each has a part in every turn or in one soon after.
    @Test(arguments: Kind.allCases)
    func costlyConnectionsProgressSideBySide(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let all = try (0..<40).map { _ in try meeting.connect() }
        for (_, costly, peer) in all {
            self.makeCostly(costly, on: meeting.loop)
            peer.send([UInt8](repeating: 7, count: 60))
        }
        var spread = 0
        let isDone = meeting.run {
            let counts = all.map(\.consumer.received.count)
            if let least = counts.min(), least > 0, let most = counts.max() { spread = max(spread, most - least) }
            return counts.allSatisfy { $0 == 60 }
        }
        #expect(isDone && spread <= 10)
        meeting.perform { for (connection, _, _) in all { connection.reset() } }
        meeting.finish()
    }
}
