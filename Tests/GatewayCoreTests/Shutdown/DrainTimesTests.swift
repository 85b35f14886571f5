import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("A drain at a rate")
struct DrainTimesTests {
    private static func at(_ milliseconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(milliseconds) * 1_000_000)
    }

    private static func timetable(
        _ count: Int, rate: Double, jitter: Duration = .zero, seed: UInt64 = 1
    ) -> DrainTimes {
        var random = SeededGenerator(seed: seed)
        return DrainTimes(count: count, rate: rate, jitter: jitter, began: self.at(0), using: &random)
    }

    /// Every index with its time, in the order of notification.
    private static func turns(_ timetable: DrainTimes) -> [(index: Int, time: MonotonicInstant)] {
        var timetable = timetable
        var turns: [(Int, MonotonicInstant)] = []
        while let next = timetable.next, let index = timetable.takeDue(at: next) { turns.append((index, next)) }
        #expect(timetable.isComplete && timetable.takeDue(at: .distantFuture) == nil)
        return turns
    }

    @Test func withoutJitterTheITHIsDueAtIDividedByTheRate() {
        let turns = Self.turns(Self.timetable(5, rate: 40))
        #expect(turns.map(\.index) == [0, 1, 2, 3, 4])
        #expect(turns.map(\.time) == (0..<5).map { Self.at(25 * $0) })
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func jitterDelaysEachOneAndNoOther(_ seed: UInt64) {
        let turns = Self.turns(Self.timetable(600, rate: 100, jitter: .milliseconds(500), seed: seed))
        #expect(turns.map(\.index).sorted() == Array(0..<600))
        for (index, time) in turns {
            #expect(time >= Self.at(10 * index) && time <= Self.at(10 * index + 500), "seed \(seed)")
        }
        #expect(Set(turns.map { $0.time.nanoseconds - Int64($0.index) * 10_000_000 }).count > 500)
        #expect(Self.timetable(600, rate: 100, jitter: .milliseconds(500)).end(at: Self.at(0)) <= Self.at(6500))
    }

    @Test func lateCloseIsCaughtUpAtOnce() {
        var timetable = Self.timetable(10, rate: 10)
        var told = 0
        while timetable.takeDue(at: Self.at(450)) != nil { told += 1 }
        #expect(told == 5 && timetable.next == Self.at(500))
    }

    @Test func aPauseShiftsAllThatIsStillToCome() {
        var timetable = Self.timetable(3, rate: 1)
        #expect(timetable.takeDue(at: Self.at(0)) == 0)
        timetable.pause(at: Self.at(400))
        timetable.pause(at: Self.at(500))
        #expect(timetable.next == nil && timetable.takeDue(at: Self.at(9999)) == nil)
        #expect(timetable.end(at: Self.at(5400)) == Self.at(7000))
        timetable.resume(at: Self.at(5400))
        timetable.resume(at: Self.at(9000))
        #expect(timetable.next == Self.at(6000) && timetable.end(at: Self.at(6000)) == Self.at(7000))
    }

    @Test func closesAtOrAfterTheDeadlineAreCounted() {
        var timetable = Self.timetable(600, rate: 10)
        #expect(timetable.count(from: Self.at(20_000), at: Self.at(0)) == 400)
        #expect(timetable.count(from: Self.at(60_000), at: Self.at(0)) == 0)
        timetable.pause(at: Self.at(0))
        #expect(timetable.count(from: Self.at(60_000), at: Self.at(10_000)) == 100)
    }

    @Test(
        arguments: [(0, 100, .zero), (3, 0, .seconds(1)), (3, -1, .zero), (3, .infinity, .zero), (3, .nan, .zero)]
            as [(Int, Double, Duration)])
    func anyNumbersGiveATimetable(_ count: Int, _ rate: Double, _ jitter: Duration) {
        #expect(Self.turns(Self.timetable(count, rate: rate, jitter: jitter)).count == count)
    }
}
