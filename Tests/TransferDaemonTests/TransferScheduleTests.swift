import BackgroundTransfers
import Foundation
import Testing
import TransferDaemon

@Suite("Schedule of background transfers")
struct TransferScheduleTests {
    private static let now = TransferJournalTests.start

    /// A journal with resumed transfers of these attributes, numbered from 1.
    private static func journal(
        _ attributes: [TransferAttributes], launched: Bool = false, delay: TimeInterval = 0,
        _ change: (inout SessionSettings) -> Void = { _ in }
    ) throws -> TransferJournal {
        var journal = try TransferJournalTests.journal(launched: launched, change)
        for (index, attributes) in attributes.enumerated() {
            var transfer = TransferRecord.sample(index + 1)
            transfer.attributes = attributes
            _ = journal.request(.create(transfer))
            _ = journal.request(.resume(task: index + 1), delay: delay)
        }
        return journal
    }

    private static func starts(_ schedule: TransferSchedule) -> [Int] { schedule.starts.map(\.identifier) }

    @Test func higherPriorityThenSmallerThenOlderTransfersBeginFirst() throws {
        let journal = try Self.journal([
            TransferAttributes(), TransferAttributes(expectedToSend: 0, expectedToReceive: 500),
            TransferAttributes(expectedToSend: 10, expectedToReceive: 20), TransferAttributes(priority: 0.75),
            TransferAttributes(),
        ])
        let schedule = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now)
        #expect(Self.starts(schedule) == [4, 3, 2, 1, 5])
        #expect(
            Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: Self.now, limit: 2)) == [4, 3])
    }

    @Test func runningTransfersCountForTheLimit() throws {
        var journal = try Self.journal([TransferAttributes](repeating: TransferAttributes(), count: 4))
        for task in 1...2 { _ = journal.begin(task, of: "s") }
        #expect(Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: Self.now, limit: 3)) == [3])
        #expect(Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: Self.now, limit: 1)) == [])
    }

    @Test func delayedTransferIsAskedAboutAtItsDate() throws {
        let date = Self.now + 60
        var journal = try Self.journal([TransferAttributes(earliestBegin: date)])
        let early = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now)
        #expect(early.starts.isEmpty && early.questions.isEmpty && early.nextChange == date)
        let due = TransferSchedule(journal, conditions: MachineConditions(), now: date)
        #expect(due.starts.isEmpty && due.questions.map(\.identifier) == [1])
        journal.skipAskingForRequest(1, of: "s")
        #expect(Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: date)) == [1])
    }

    @Test(arguments: ["metered", "battery", "busy", "metered,battery"])
    func discretionaryTransferWaitsForTheMachine(_ words: String) throws {
        let journal = try Self.journal([TransferAttributes()]) { $0.isDiscretionary = true }
        let poor = ConditionSources.conditions(named: words)
        let waiting = TransferSchedule(journal, conditions: poor, now: Self.now)
        #expect(waiting.starts.isEmpty && waiting.waitsForConditions && waiting.nextChange == Self.now + 60)
        let good = ConditionSources.conditions(named: "good")
        #expect(Self.starts(TransferSchedule(journal, conditions: good, now: Self.now)) == [1])
        let ordinary = try Self.journal([TransferAttributes()])
        #expect(Self.starts(TransferSchedule(ordinary, conditions: poor, now: Self.now)) == [1])
    }

    @Test func transferOfALaunchedProgramIsDiscretionary() throws {
        let journal = try Self.journal([TransferAttributes()], launched: true, delay: 15)
        let poor = MachineConditions(isMetered: true)
        #expect(TransferSchedule(journal, conditions: poor, now: Self.now).nextChange == Self.now + 15)
        #expect(TransferSchedule(journal, conditions: poor, now: Self.now + 15).waitsForConditions)
        #expect(Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: Self.now + 15)) == [1])
    }

    @Test func transferExpiresAfterItsResourceTimeout() throws {
        var journal = try Self.journal([TransferAttributes(), TransferAttributes()]) { $0.resourceTimeout = 100 }
        _ = journal.begin(1, of: "s")
        let before = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now + 99)
        #expect(before.expired.isEmpty && before.nextChange == Self.now + 100)
        let after = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now + 100)
        #expect(after.expired.map(\.identifier) == [1, 2] && after.starts.isEmpty)
        journal.expired(1, of: "s", now: Self.now + 100)
        #expect(journal.sessions["s"]?.messages.first?.end.error?.code == URLError.Code.timedOut.rawValue)
    }

    @Test func pauseEndsWhenTheClockIsSetBack() throws {
        let failure = AttemptEnd.failed(TransferError(code: -1001, text: ""), isTransient: true)
        var journal = try Self.journal([TransferAttributes()])
        _ = journal.begin(1, of: "s")
        _ = journal.end(failure)
        let before = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now - 200)
        #expect(before.starts.isEmpty && before.nextChange == Self.now + 1)
        let yearBefore = TransferSchedule(journal, conditions: MachineConditions(), now: Self.now - 365 * 86_400)
        #expect(Self.starts(yearBefore) == [1])
        // The date that a program chose stays what it is.
        let chosen = try Self.journal([TransferAttributes(earliestBegin: Self.now)])
        let early = TransferSchedule(chosen, conditions: MachineConditions(), now: Self.now - 365 * 86_400)
        #expect(early.starts.isEmpty && early.nextChange == Self.now)
    }

    @Test func hugeSizesAreTheLargest() throws {
        let journal = try Self.journal([
            TransferAttributes(expectedToSend: .max, expectedToReceive: .max),
            TransferAttributes(expectedToSend: 1, expectedToReceive: 1),
        ])
        #expect(Self.starts(TransferSchedule(journal, conditions: MachineConditions(), now: Self.now)) == [2, 1])
    }

    @Test func delaysDoubleUpToADay() {
        let delays = [0, 1, 2, 3, 4, 20, 1000].map { TransferRules.backgroundDelay(ofTransfer: $0, base: 15) }
        #expect(delays == [0, 15, 30, 60, 120, 86_400, 86_400])
        #expect(TransferRules.backgroundDelay(ofTransfer: 5, base: 0) == 0)
    }

    @Test func pausesAreSpreadByChance() {
        #expect(RetryPolicy.pause(afterFailures: 3, jitter: 0) == 2)
        #expect(RetryPolicy.pause(afterFailures: 3, jitter: 1) == 4)
        #expect(RetryPolicy.pause(afterFailures: .max, jitter: 7) == 300)
    }
}
