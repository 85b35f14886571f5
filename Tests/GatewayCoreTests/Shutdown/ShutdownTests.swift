import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Drain and shutdown")
struct ShutdownTests {
    private static func at(_ milliseconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(milliseconds) * 1_000_000)
    }

    private static func settings(spread: Int, timeout: Int) -> DrainSettings {
        var settings = DrainSettings()
        settings.closeSpread = .milliseconds(spread)
        settings.timeout = .milliseconds(timeout)
        return settings
    }

    @Test func closingIsSpreadEvenly() {
        let schedule = DrainSchedule(Self.settings(spread: 1000, timeout: 5000), count: 4, began: Self.at(100))
        #expect([0, 99].map { schedule.due(at: Self.at($0)) } == [0, 0])
        #expect([100, 349, 350, 600, 850, 1100, 9999].map { schedule.due(at: Self.at($0)) } == [1, 1, 2, 3, 4, 4, 4])
        #expect(
            (0...4).map { schedule.next(after: $0) } == [Self.at(100), Self.at(350), Self.at(600), Self.at(850), nil])
        #expect(schedule.deadline == Self.at(5100))
    }

    @Test func loopsTakeTurnsSoThatTheRateOfAllIsEven() {
        let schedules = (0..<4).map { loop in
            DrainSchedule(
                Self.settings(spread: 1000, timeout: 5000), count: 5, loop: loop, of: 4, began: Self.at(0))
        }
        let instants = schedules.flatMap { schedule in (0..<5).compactMap { schedule.next(after: $0) } }
        #expect(instants.sorted { $0.nanoseconds < $1.nanoseconds } == (0..<20).map { Self.at(50 * $0) })
        for schedule in schedules {
            for told in 0..<5 {
                let next = schedule.next(after: told) ?? .distantFuture
                #expect(schedule.due(at: next) == told + 1)
                #expect(schedule.due(at: MonotonicInstant(nanoseconds: next.nanoseconds - 1)) == told)
            }
        }
    }

    @Test(arguments: [(0, 0), (0, 1000), (1000, 0)])
    func withoutSpreadAllCloseAtOnce(_ spread: Int, _ timeout: Int) {
        let schedule = DrainSchedule(Self.settings(spread: spread, timeout: timeout), count: 7, began: Self.at(0))
        #expect(schedule.due(at: Self.at(0)) == 7)
        #expect(schedule.next(after: 7) == nil)
    }

    @Test func shutdownWithoutConnectionsEndsAtOnce() {
        let schedule = DrainSchedule(Self.settings(spread: 10, timeout: 10), count: 0, began: Self.at(0))
        #expect(schedule.due(at: Self.at(99)) == 0 && schedule.next(after: 0) == nil && schedule.next(after: -1) == nil)
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func eachIsDueExactlyAtItsInstant(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let spread = Int.random(in: 0...100_000, using: &random)
        let count = Int.random(in: 1...1000, using: &random)
        let schedule = DrainSchedule(Self.settings(spread: spread, timeout: 200_000), count: count, began: Self.at(7))
        var told = 0
        while let next = schedule.next(after: told) {
            let before = MonotonicInstant(nanoseconds: next.nanoseconds - 1)
            #expect(schedule.due(at: before) <= told, "seed \(seed)")
            let due = schedule.due(at: next)
            #expect(due > told, "seed \(seed)")
            told = max(due, told + 1)
        }
        #expect(told == count, "seed \(seed)")
    }

    @Test func theLongestTimesDoNotOverflow() {
        var settings = DrainSettings()
        settings.timeout = .seconds(Int64.max / 2_000_000_000)
        settings.closeSpread = settings.timeout
        let schedule = DrainSchedule(settings, count: 10_000_000, began: .distantFuture)
        #expect(schedule.deadline == .distantFuture)
        #expect(schedule.due(at: .distantFuture) == 1)
        #expect(schedule.next(after: 9_999_999) == .distantFuture)
    }
}
