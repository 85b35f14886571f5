import GatewayCore
import Testing

@Suite("When a published key set is fetched")
struct KeyRefreshScheduleTests {
    private let start = ContinuousClock.now

    private func after(_ seconds: Double) -> ContinuousClock.Instant { self.start.advanced(by: .seconds(seconds)) }

    private func fetched() -> KeyRefreshSchedule {
        var schedule = KeyRefreshSchedule(interval: .seconds(900), now: self.start)
        schedule.fetched(at: self.start)
        return schedule
    }

    @Test func firstFetchIsDueAtOnceAndTheNextAfterTheInterval() {
        #expect(KeyRefreshSchedule(interval: .seconds(900), now: self.start).due == self.start)
        #expect(self.fetched().due == self.after(900))
    }

    @Test func failedFetchIsRepeatedAfterGrowingPauses() {
        var schedule = self.fetched()
        var pauses: [Duration] = []
        var now = self.start
        for _ in 0..<9 {
            schedule.fetchFailed(at: now)
            pauses.append(now.duration(to: schedule.due))
            now = schedule.due
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
        schedule.fetched(at: now)
        schedule.fetchFailed(at: now)
        #expect(now.duration(to: schedule.due) == .seconds(1))
    }

    @Test func pauseAfterAFailureIsNotLongerThanTheInterval() {
        var schedule = KeyRefreshSchedule(interval: .seconds(10), now: self.start)
        for _ in 0..<8 { schedule.fetchFailed(at: self.start) }
        #expect(schedule.due == self.after(10))
    }

    @Test func unknownKeyCausesAFetchAtOnce() {
        var schedule = self.fetched()
        schedule.unknownKeyOccurred(at: self.after(5))
        #expect(schedule.due == self.after(5))
    }

    /// Anyone can send tokens with unknown keys.
    @Test func unknownKeysCauseAtMostOneFetchIn30Seconds() {
        var schedule = self.fetched()
        var fetches: [Double] = []
        for tenth in 0..<1000 {
            let now = self.after(Double(tenth) / 10)
            schedule.unknownKeyOccurred(at: now)
            guard schedule.due <= now else { continue }
            fetches.append(Double(tenth) / 10)
            schedule.fetched(at: now)
        }
        #expect(fetches == [0, 30, 60, 90])
    }

    @Test func unknownKeyDoesNotDelayAFetchThatIsDueEarlier() {
        var schedule = self.fetched()
        schedule.unknownKeyOccurred(at: self.after(1))
        schedule.fetchFailed(at: self.after(1))
        schedule.unknownKeyOccurred(at: self.after(1.5))
        #expect(schedule.due == self.after(2))
    }
}
