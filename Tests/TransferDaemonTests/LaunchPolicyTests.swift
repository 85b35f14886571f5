import BackgroundTransfers
import Foundation
import Testing
import TransferDaemon

@Suite("Starts of programs for events")
struct LaunchPolicyTests {
    private static let now = TransferJournalTests.start
    private static let command = LaunchCommand(executable: "/bin/true", arguments: [], environment: [:], directory: "/")

    /// A session without a program.
    private static func journal(
        transfers: Int = 1, ended: Int = 1, _ change: (inout SessionSettings) -> Void = { _ in }
    ) throws -> TransferJournal {
        var journal = try TransferJournalTests.journal { settings in
            settings.launch = Self.command
            change(&settings)
        }
        for task in 1...transfers {
            _ = journal.request(.create(.sample(task)))
            _ = journal.request(.resume(task: task))
            if task <= ended { _ = journal.request(.cancel(task: task, reason: nil)) }
        }
        journal.detach("s")
        return journal
    }

    private static func decide(_ journal: TransferJournal, at date: Date = now) throws -> LaunchPolicy.Decision {
        LaunchPolicy.decide(try #require(journal.sessions["s"]), now: date)
    }

    @Test func programIsStartedWhenAllItsTransfersAreOver() throws {
        #expect(try Self.decide(Self.journal(transfers: 2, ended: 1)) == .none)
        #expect(try Self.decide(Self.journal(transfers: 2, ended: 2)) == .launch)
    }

    @Test func programIsStartedAfterTheClockWasSetBack() throws {
        var journal = try Self.journal()
        journal.launched("s", now: Self.now)
        #expect(try Self.decide(journal, at: Self.now + 1) == .wait(until: Self.now + 10))
        #expect(try Self.decide(journal, at: Self.now - 86_400) == .launch)
    }

    @Test func programIsStartedForAChallenge() throws {
        var journal = try Self.journal(transfers: 1, ended: 0)
        _ = journal.begin(1, of: "s")
        let challenge = TransferChallenge(
            host: "a", port: 80, scheme: "http", realm: nil, method: "Basic", isProxy: false, failures: 0)
        _ = journal.end(.challenged(challenge))
        #expect(try Self.decide(journal) == .launch)
    }

    @Test func programIsNotStartedAgainstItsWill() throws {
        #expect(try Self.decide(Self.journal { $0.sendsLaunchEvents = false }) == .none)
        #expect(try Self.decide(Self.journal { $0.launch = nil }) == .none)
        var attached = try Self.journal()
        try attached.attach(TransferJournalTests.attachment { $0.launch = Self.command })
        #expect(try Self.decide(attached) == .none)
    }

    @Test func programThatTakesNoMessageIsStartedMoreAndMoreSeldomAndThenNoMore() throws {
        var journal = try Self.journal()
        var (date, pauses) = (Self.now, [TimeInterval]())
        for _ in 0..<LaunchPolicy.limit {
            #expect(try Self.decide(journal, at: date) == .launch)
            journal.launched("s", now: date)
            guard case .wait(let next) = try Self.decide(journal, at: date) else { break }
            pauses.append(next.timeIntervalSince(date))
            date = next
        }
        #expect(pauses == [10, 60, 360, 2160])
        #expect(try Self.decide(journal, at: date + 1_000_000) == .giveUp)
        // A person starts it.
        try journal.attach(TransferJournalTests.attachment { $0.launch = Self.command })
        journal.detach("s")
        #expect(try Self.decide(journal, at: date) == .launch)
    }

    @Test func messageTakenMakesTheNextStartImmediate() throws {
        var journal = try Self.journal(transfers: 2, ended: 2)
        journal.launched("s", now: Self.now)
        try journal.attach(TransferJournalTests.attachment(launched: true) { $0.launch = Self.command })
        _ = journal.acknowledge(1, of: "s")
        journal.detach("s")
        #expect(try Self.decide(journal) == .launch)
    }
}
