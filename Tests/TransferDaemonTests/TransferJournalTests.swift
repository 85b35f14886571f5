import BackgroundTransfers
import Foundation
import TestSupport
import Testing
import TransferDaemon

@Suite("Journal of background transfers")
struct TransferJournalTests {
    static let start = Date(timeIntervalSinceReferenceDate: 0)
    private static let failure = TransferError(code: URLError.Code.timedOut.rawValue, text: "timed out")

    static func attachment(
        _ identifier: String = "s", launched: Bool = false, again: Bool = false,
        _ change: (inout SessionSettings) -> Void = { _ in }
    ) -> SessionAttachment {
        var settings = SessionSettings()
        change(&settings)
        return SessionAttachment(
            identifier: identifier, settings: settings, isLaunchedForEvents: launched, isReattachment: again)
    }

    /// A journal with an attached session.
    static func journal(
        launched: Bool = false, _ change: (inout SessionSettings) -> Void = { _ in }
    ) throws -> TransferJournal {
        var journal = TransferJournal()
        try journal.attach(self.attachment(launched: launched, change))
        return journal
    }

    private static let response = TransferResponse(
        url: "http://a.example/1", status: 200, version: "HTTP/1.1", fields: [:])

    @Test func transferWaitsUntilItIsResumed() throws {
        var journal = try Self.journal()
        #expect(journal.request(.create(.sample(1))) == .none)
        #expect(journal.begin(1, of: "s") == nil)
        #expect(journal.request(.resume(task: 1)) == .schedule)
        #expect(journal.begin(1, of: "s")?.phase == .running)
        #expect(journal.begin(1, of: "s") == nil)
    }

    @Test func endOfATransferBecomesOneMessageUntilItIsAcknowledged() throws {
        var journal = try Self.running()
        #expect(journal.end(.finished(Self.response, file: "1.content")) == .ended)
        #expect(journal.end(.finished(Self.response, file: "1.content")) == .ignore)
        #expect(journal.transfer(1, of: "s") == nil)
        #expect(journal.sessions["s"]?.messages.map(\.sequence) == [1])
        #expect(journal.acknowledge(0, of: "s") == [])
        #expect(journal.acknowledge(1, of: "s") == ["1.content"])
        #expect(journal.acknowledge(1, of: "s") == [])
        #expect(journal.sessions["s"]?.messages == [])
    }

    @Test func repeatedRequestChangesNothing() throws {
        var journal = try Self.running()
        _ = journal.takeChanges()
        #expect(journal.request(.create(.sample(1))) == .none)
        #expect(journal.request(.resume(task: 1)) == .none)
        #expect(journal.takeChanges() == [])
        _ = journal.end(.finished(Self.response, file: nil))
        _ = journal.takeChanges()
        // Its end is not delivered yet: it must not be created anew.
        #expect(journal.request(.create(.sample(1))) == .none)
        #expect(journal.takeChanges() == [] && journal.transfer(1, of: "s") == nil)
    }

    @Test func cancelledTransferEndsOnceWithItsReason() throws {
        var journal = try Self.running()
        #expect(journal.request(.cancel(task: 1, reason: 0)) == .stopAttempt)
        #expect(journal.end(.finished(Self.response, file: nil)) == .ignore)
        let end = try #require(journal.sessions["s"]?.messages.first?.end)
        #expect(end.error?.code == URLError.Code.cancelled.rawValue && end.error?.cancelledReason == 0)
        #expect(journal.outcome(.cancel(task: 1, reason: nil)) == .unknownTransfer)
    }

    @Test func suspendedTransferStopsAndContinues() throws {
        var journal = try Self.running()
        #expect(journal.request(.suspend(task: 1)) == .stopAttempt)
        #expect(journal.end(.failed(Self.failure, isTransient: true)) == .ignore)
        #expect(journal.begin(1, of: "s") == nil)
        #expect(journal.request(.resume(task: 1)) == .schedule)
        #expect(journal.begin(1, of: "s") != nil)
    }

    @Test func networkFailureIsRetriedAfterGrowingPauses() throws {
        var journal = try Self.running()
        var pauses: [TimeInterval] = []
        for _ in 0..<10 {
            guard case .retry(let date) = journal.end(.failed(Self.failure, isTransient: true)) else { break }
            pauses.append(date.timeIntervalSince(Self.start))
            #expect(journal.begin(1, of: "s") != nil)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300])
        // Progress makes the next pause short again.
        let goesOn = journal.progressed(TransferCounts(received: 1), of: 1, of: "s")
        #expect(goesOn)
        #expect(journal.end(.failed(Self.failure, isTransient: true)) == .retry(at: Self.start + 1))
    }

    @Test func otherFailureEndsTheTransfer() throws {
        var journal = try Self.running()
        #expect(journal.end(.failed(Self.failure, isTransient: false)) == .ended)
        #expect(journal.sessions["s"]?.messages.first?.end.error == Self.failure)
    }

    @Test func challengeWaitsForItsAnswer() throws {
        let challenge = TransferChallenge(
            host: "a.example", port: 80, scheme: "http", realm: "r", method: "Basic", isProxy: false, failures: 0)
        var journal = try Self.running()
        #expect(journal.end(.challenged(challenge)) == .ask(challenge))
        #expect(journal.begin(1, of: "s") == nil)
        let answer = TransferChallengeAnswer.credential(user: "ada", password: "secret")
        #expect(journal.request(.answerChallenge(task: 1, challenge, answer)) == .schedule)
        #expect(journal.begin(1, of: "s")?.answer(to: challenge)?.answer == answer)
        #expect(journal.end(.challenged(challenge)) == .ask(challenge))
        #expect(journal.request(.answerChallenge(task: 1, challenge, .cancel)) == .stopAttempt)
        #expect(journal.sessions["s"]?.messages.first?.end.error?.code == URLError.Code.cancelled.rawValue)
        #expect(journal.sessions["s"]?.messages.first?.end.transfer.answers == nil)
    }

    /// The program repeats a request whose answer it did not get.
    @Test func repeatedAnswerDoesNotAnswerALaterQuestion() throws {
        let first = TransferChallenge(
            host: "a.example", port: 80, scheme: "http", realm: "r", method: "Basic", isProxy: false, failures: 0)
        let changes: [(inout TransferChallenge) -> Void] = [{ $0.host = "b.example" }, { $0.failures = 1 }]
        for change in changes {
            var later = first
            change(&later)
            var journal = try Self.running()
            _ = journal.end(.challenged(first))
            let answer = SessionRequest.answerChallenge(task: 1, first, .credential(user: "ada", password: "secret"))
            #expect(journal.request(answer) == .schedule)
            #expect(journal.begin(1, of: "s") != nil)
            #expect(journal.end(.challenged(later)) == .ask(later))
            #expect(journal.request(answer) == .none)
            #expect(journal.transfer(1, of: "s")?.phase == .asksForCredential(later))
            #expect(journal.transfer(1, of: "s")?.answer(to: later) == nil)
        }
    }

    @Test func failuresCountOverAttemptsAndRealms() {
        var challenge = TransferChallenge(
            host: "a.example", port: 80, scheme: "http", realm: nil, method: "Basic", isProxy: false, failures: 0)
        var transfer = TransferRecord.sample(1)
        for number in 0..<3 {
            challenge.realm = "\(number)"
            #expect(transfer.question(challenge).failures == number)
            transfer.setAnswer(.credential(user: "ada", password: "secret"), to: transfer.question(challenge))
        }
        challenge.failures = 1
        #expect(transfer.question(challenge).failures == 3)
        challenge.host = "b.example"
        #expect(transfer.question(challenge).failures == 1)
    }

    /// A password must not go to another server, nor to a proxy.
    @Test func answerCountsInItsProtectionSpaceOnly() throws {
        var challenge = TransferChallenge(
            host: "a.example", port: 80, scheme: "http", realm: "r", method: "Basic", isProxy: false, failures: 0)
        challenge.response = TransferResponse(url: "http://a.example/1", status: 401, version: "HTTP/1.1", fields: [:])
        var transfer = TransferRecord.sample(1)
        transfer.setAnswer(.credential(user: "ada", password: "secret"), to: challenge)
        #expect(transfer.answers?.map(\.challenge.response) == [nil])
        let changes: [(inout TransferChallenge) -> Void] = [
            { $0.host = "b.example" }, { $0.port = 81 }, { $0.scheme = "https" }, { $0.realm = "other" },
            { $0.method = "Digest" }, { $0.isProxy = true },
        ]
        for change in changes {
            var other = challenge
            change(&other)
            #expect(transfer.answer(to: other) == nil)
            transfer.setAnswer(.rejectProtectionSpace, to: other)
            #expect(transfer.answer(to: other)?.answer == .rejectProtectionSpace)
        }
        challenge.failures = 2
        #expect(transfer.answer(to: challenge)?.answer == .credential(user: "ada", password: "secret"))
        for number in 0..<20 {
            challenge.realm = "\(number)"
            transfer.setAnswer(.withoutCredential, to: challenge)
        }
        #expect(transfer.answers?.count == 16 && transfer.answer(to: challenge) != nil)
    }

    @Test func delayedRequestIsContinuedReplacedOrCancelled() throws {
        for answer in [DelayedRequestAnswer.proceed, .replace(TransferRequest(url: "http://b.example/")), .cancel] {
            var journal = try Self.journal()
            _ = journal.request(.create(.sample(1)))
            _ = journal.request(.resume(task: 1))
            journal.askForRequest(1, of: "s")
            #expect(journal.begin(1, of: "s") == nil)
            _ = journal.request(.answerRequest(task: 1, answer))
            let transfer = journal.begin(1, of: "s")
            switch answer {
            case .proceed: #expect(transfer?.currentRequest.url == "http://a.example/1")
            case .replace: #expect(transfer?.currentRequest.url == "http://b.example/")
            case .cancel: #expect(transfer == nil && journal.sessions["s"]?.messages.count == 1)
            }
        }
    }

    @Test func sessionBelongsToOneProgram() throws {
        var journal = try Self.journal()
        #expect(throws: Refusal.inUse) { try journal.attach(Self.attachment()) }
        #expect(throws: Refusal.malformed) { try journal.attach(Self.attachment("")) }
        #expect(throws: Refusal.malformed) { try journal.attach(Self.attachment(String(repeating: "a", count: 81))) }
        _ = journal.request(.create(.sample(1)))
        journal.detach("s")
        try journal.attach(Self.attachment())
        #expect(journal.transfer(1, of: "s") != nil)
    }

    @Test func emptySessionIsForgottenWhenItsProgramEnds() throws {
        var journal = try Self.journal()
        _ = journal.takeChanges()
        journal.detach("s")
        #expect(journal.sessions.isEmpty && journal.takeChanges() == [.removeSession("s")])
    }

    @Test func transferOfALaunchedProgramIsDelayed() throws {
        var journal = try Self.journal(launched: true)
        for task in 1...3 {
            _ = journal.request(.create(.sample(task)))
            _ = journal.request(.resume(task: task), delay: 15)
        }
        let phases = (1...3).map { journal.transfer($0, of: "s")?.phase }
        #expect(phases == [15, 30, 60].map { .waiting(until: Self.start + $0) })
        // A person starts the program.
        journal.detach("s")
        try journal.attach(Self.attachment())
        _ = journal.request(.create(.sample(4)))
        _ = journal.request(.resume(task: 4), delay: 15)
        #expect(journal.transfer(4, of: "s")?.phase == .waiting(until: nil))
        journal.detach("s")
        try journal.attach(Self.attachment(launched: true))
        _ = journal.request(.create(.sample(5)))
        _ = journal.request(.resume(task: 5), delay: 15)
        #expect(journal.transfer(5, of: "s")?.phase == .waiting(until: Self.start + 15))
    }

    @Test(arguments: ["../etc", "a/b", "", "..", String(repeating: "a", count: 200)])
    func nameOutsideOfTheFolderIsRefused(_ name: String) throws {
        var journal = try Self.journal()
        var transfer = TransferRecord.sample(1, .upload)
        transfer.body = name
        guard case .refused = journal.outcome(.create(transfer)) else {
            Issue.record("\(name) was taken")
            return
        }
    }

    @Test func programCannotMakeTheDaemonCalculateWithItsNumbers() throws {
        var transfer = TransferRecord.sample(1)
        transfer.failures = .max
        transfer.counts = TransferCounts(sent: .max, totalToSend: .max, received: .max, totalToReceive: .min)
        transfer.backgroundOrdinal = .max
        transfer.begun = .distantPast
        transfer.uploadResumption = Data()
        var journal = try Self.journal()
        _ = journal.request(.create(transfer))
        _ = journal.request(.resume(task: 1))
        let first = journal.begin(1, of: "s")
        let begun = try #require(first)
        #expect(begun.failures == 0 && begun.backgroundOrdinal == 0 && begun.begun == Self.start)
        #expect(begun.uploadResumption == nil && begun.counts.sent == 0)
        let goesOn = journal.progressed(TransferCounts(sent: .max, received: .max), of: 1, of: "s")
        #expect(goesOn)
        #expect(journal.end(.failed(Self.failure, isTransient: true)) == .retry(at: Self.start + 1))
    }

    @Test func transferThatIsTooLargeForMessagesIsRefused() throws {
        var journal = try Self.journal()
        let long = String(repeating: "a", count: 300_000)
        var large = TransferRecord.sample(1)
        large.currentRequest.fields["A"] = long
        guard case .refused = journal.outcome(.create(large)) else {
            Issue.record("created")
            return
        }
        _ = journal.request(.create(.sample(1)))
        guard case .refused = journal.outcome(.change(task: 1, TransferAttributes(label: long))) else {
            Issue.record("changed")
            return
        }
        #expect(journal.transfer(1, of: "s")?.attributes.label == nil)
    }

    @Test func messageHasNoBodies() throws {
        var transfer = TransferRecord.sample(1)
        transfer.originalRequest.body = Data(count: 1 << 20)
        transfer.currentRequest.body = Data(count: 1 << 20)
        var journal = try Self.journal()
        _ = journal.request(.create(transfer))
        _ = journal.request(.cancel(task: 1, reason: nil))
        let end = try #require(journal.sessions["s"]?.messages.first?.end)
        #expect(end.transfer.originalRequest.body == nil && end.transfer.currentRequest.body == nil)
    }

    @Test func namedUploadIsInTheJournalUntilItEnds() throws {
        var journal = try Self.running()
        _ = journal.takeChanges()
        journal.uploadNamed(Data([1]), for: 1, of: "s")
        let changes = journal.takeChanges()
        guard case .transfer("s", let written)? = changes.first, changes.count == 1 else {
            Issue.record("\(changes)")
            return
        }
        #expect(written.uploadResumption == Data([1]))
        journal.uploadNamed(Data([1]), for: 1, of: "s")
        #expect(journal.takeChanges() == [])
        // The process dies: the next attempt continues the upload.
        var next = TransferJournal([.session(SessionRecord(identifier: "s", settings: SessionSettings()))] + changes)
        #expect(next.begin(1, of: "s")?.uploadResumption == Data([1]))
        next.uploadNamed(nil, for: 1, of: "s")
        #expect(next.end(.failed(Self.failure, isTransient: true)) != .ignore)
        #expect(next.begin(1, of: "s")?.uploadResumption == nil)
        next.uploadNamed(Data([2]), for: 1, of: "s")
        #expect(next.end(.finished(Self.response, file: nil)) == .ended)
        #expect(next.sessions["s"]?.messages.first?.end.transfer.uploadResumption == nil)
    }

    @Test func changedSettingsAreWritten() throws {
        var journal = try Self.running()
        _ = journal.takeChanges()
        var settings = SessionSettings()
        #expect(journal.request(.configure(settings)) == .none)
        settings.permittedTargets = ["public"]
        #expect(journal.request(.configure(settings)) == .schedule)
        #expect(journal.sessions["s"]?.record.settings == settings && journal.takeChanges().count == 1)
    }

    private static func running() throws -> TransferJournal {
        var journal = try self.journal()
        _ = journal.request(.create(.sample(1)))
        _ = journal.request(.resume(task: 1))
        _ = journal.begin(1, of: "s")
        return journal
    }

    /// Requests of random programs, with a crash after each event: a journal that is made of the rows goes on.
    @Test(arguments: 0..<20)
    func noTransferIsLostOrEndsTwiceWhereverTheProcessDies(_ seed: Int) throws {
        var walk = JournalWalk(seed: UInt64(seed))
        for _ in 0..<300 { try walk.step() }
        #expect(!walk.delivered.isEmpty)
        #expect(walk.lost.isEmpty && walk.doubled.isEmpty)
    }
}

extension TransferJournal {
    mutating func request(_ request: SessionRequest, delay: TimeInterval = 0) -> RequestAction {
        self.requested(request, of: "s", backgroundDelay: delay, now: TransferJournalTests.start).1
    }

    mutating func outcome(_ request: SessionRequest) -> RequestOutcome {
        self.requested(request, of: "s", backgroundDelay: 0, now: TransferJournalTests.start).0
    }

    mutating func end(_ end: AttemptEnd) -> AttemptAction {
        self.attemptEnded(end, of: 1, of: "s", now: TransferJournalTests.start, jitter: 1)
    }
}

/// Random events on a journal whose process may die between any two of them, or before an event's changes are written.
struct JournalWalk {
    private var generator: SeededGenerator
    private var journal = TransferJournal()
    private var rows = JournalRows()
    private var next = 1
    /// Transfers whose creation was confirmed.
    private(set) var confirmed: Set<Int> = []
    /// Ends that the program acknowledged, in their order.
    private(set) var delivered: [Int] = []

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
    }

    /// Confirmed transfers that are neither in the file nor delivered.
    var lost: Set<Int> {
        self.confirmed.subtracting(self.delivered).subtracting(self.rows.transfers)
            .subtracting(self.rows.messages.map(\.task))
    }

    /// Delivered twice, or delivered and still there.
    var doubled: Set<Int> {
        var seen: Set<Int> = []
        let twice = self.delivered.filter { !seen.insert($0).inserted }
        return Set(twice).union(seen.intersection(self.rows.transfers))
            .union(self.rows.transfers.intersection(self.rows.messages.map(\.task)))
    }

    mutating func step() throws {
        if self.journal.sessions["s"]?.isAttached != true { try self.journal.attach(TransferJournalTests.attachment()) }
        let task = Int.random(in: max(1, self.next - 4)...max(1, self.next), using: &self.generator)
        var acknowledged: [Int] = []
        switch Int.random(in: 0..<10, using: &self.generator) {
        case 0: _ = self.journal.request(.create(.sample(self.next)))
        case 1: _ = self.journal.request(.resume(task: task))
        case 2: _ = self.journal.request(.suspend(task: task))
        case 3: _ = self.journal.request(.cancel(task: task, reason: nil))
        case 4, 5: _ = self.journal.begin(task, of: "s")
        case 6:
            self.endAttempt(
                .finished(TransferResponse(url: "u", status: 200, version: "1", fields: [:]), file: nil), task)
        case 7:
            self.endAttempt(
                .failed(TransferError(code: -1001, text: ""), isTransient: Bool.random(using: &self.generator)), task)
        case 8: self.journal.detach("s")
        default:
            let messages = (self.journal.sessions["s"]?.messages ?? []).prefix(2)
            guard let last = messages.last else { return }
            // The program has got them: its own memory survives the daemon.
            acknowledged = messages.map(\.end.transfer.identifier).filter { !self.delivered.contains($0) }
            _ = self.journal.acknowledge(last.sequence, of: "s")
        }
        self.delivered += acknowledged
        let changes = self.journal.takeChanges()
        if acknowledged.isEmpty, Int.random(in: 0..<10, using: &self.generator) == 0 {
            // It dies before the changes are written.
            self.journal = TransferJournal(self.rows.all)
            return
        }
        self.rows.apply(changes)
        if self.rows.transfers.contains(self.next) {
            self.confirmed.insert(self.next)
            self.next += 1
        }
        if Int.random(in: 0..<10, using: &self.generator) == 0 { self.journal = TransferJournal(self.rows.all) }
    }

    private mutating func endAttempt(_ end: AttemptEnd, _ task: Int) {
        _ = self.journal.attemptEnded(end, of: task, of: "s", now: TransferJournalTests.start, jitter: 0)
    }
}

/// The rows of a journal's file.
struct JournalRows {
    private var sessions: [String: JournalChange] = [:]
    private var transferRows: [Int: JournalChange] = [:]
    private var messageRows: [Int: JournalChange] = [:]

    var all: [JournalChange] {
        Array(self.sessions.values) + Array(self.transferRows.values) + Array(self.messageRows.values)
    }

    var transfers: Set<Int> { Set(self.transferRows.keys) }

    var messages: [(sequence: Int, task: Int)] {
        self.messageRows.values.compactMap { row in
            guard case .message(_, let sequence, let end) = row else { return nil }
            return (sequence, end.transfer.identifier)
        }
    }

    mutating func apply(_ changes: [JournalChange]) {
        for change in changes {
            switch change {
            case .session(let record): self.sessions[record.identifier] = change
            case .removeSession(let name): self.sessions[name] = nil
            case .transfer(_, let transfer): self.transferRows[transfer.identifier] = change
            case .removeTransfer(_, let task): self.transferRows[task] = nil
            case .message(_, let sequence, _): self.messageRows[sequence] = change
            case .removeMessages(_, let sequence): self.messageRows = self.messageRows.filter { $0.key > sequence }
            }
        }
    }
}
