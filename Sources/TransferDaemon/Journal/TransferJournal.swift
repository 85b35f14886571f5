import BackgroundTransfers
import Foundation

/// All sessions with their transfers and undelivered messages, as a machine: events in, changes for the journal's file and
/// actions out.
///
/// The owner writes `takeChanges()` to the file, in one transaction, before it carries out an action, sends a message or
/// acknowledges a request. Whatever happened to the process, a transfer is therefore in the file either as one that goes
/// on, or as one message about its end, and never as both or none.
package struct TransferJournal {
    package struct Message: Hashable, Sendable {
        package let sequence: Int
        package let end: TransferEnd
    }

    package struct Session: Hashable, Sendable {
        package internal(set) var record: SessionRecord
        package fileprivate(set) var transfers: [Int: TransferRecord] = [:]
        /// In the order of their sequence numbers.
        package fileprivate(set) var messages: [Message] = []
        /// Whether a program has the session. Not in the file.
        package fileprivate(set) var isAttached = false

        fileprivate init(_ record: SessionRecord) {
            self.record = record
        }

        fileprivate init(lost identifier: String) {
            self.record = SessionRecord(identifier: identifier, settings: SessionSettings())
            self.record.needsSettings = true
        }
    }

    /// Most sessions that the journal keeps.
    package static let sessionLimit = 1000

    package internal(set) var sessions: [String: Session] = [:]
    private var changes: [JournalChange] = []

    /// - Parameter rows: those that the file has, in any order within a kind, sessions first.
    package init(_ rows: [JournalChange] = []) {
        for row in rows {
            switch row {
            case .session(let record): self.sessions[record.identifier] = Session(record)
            case .transfer(let name, var transfer):
                // The process that carried it out is gone.
                if transfer.phase == .running { transfer.phase = .waiting(until: nil) }
                self.restore(name) { session in
                    session.transfers[transfer.identifier] = transfer
                    session.record.lastIdentifier = max(session.record.lastIdentifier, transfer.identifier)
                }
            case .message(let name, let sequence, let end):
                self.restore(name) { session in
                    session.messages.append(Message(sequence: sequence, end: end))
                    session.record.lastSequence = max(session.record.lastSequence, sequence)
                    session.record.lastIdentifier = max(session.record.lastIdentifier, end.transfer.identifier)
                }
            case .removeSession, .removeTransfer, .removeMessages: break
            }
        }
        for identifier in self.sessions.keys {
            self.sessions[identifier]?.messages.sort { $0.sequence < $1.sequence }
            if self.sessions[identifier]?.record.needsSettings == true { self.sessionChanged(identifier) }
        }
    }

    /// Changes a session that the file has, or one whose row it has lost.
    private mutating func restore(_ identifier: String, _ change: (inout Session) -> Void) {
        var session = self.sessions[identifier] ?? Session(lost: identifier)
        change(&session)
        self.sessions[identifier] = session
    }

    /// The changes since the last call, in their order.
    package mutating func takeChanges() -> [JournalChange] {
        defer { self.changes = [] }
        return self.changes
    }

    package func transfer(_ task: Int, of session: String) -> TransferRecord? {
        self.sessions[session]?.transfers[task]
    }

    // MARK: Attaching

    /// - Throws: `.version`, `.inUse`, `.busy` or `.malformed`; nothing is changed then.
    package mutating func attach(_ attachment: SessionAttachment) throws(Refusal) {
        let identifier = attachment.identifier
        guard attachment.version == TransferProtocol.version else { throw .version }
        guard !identifier.isEmpty, identifier.utf8.count <= TransferFolders.identifierLimit else { throw .malformed }
        var session =
            self.sessions[identifier]
            ?? Session(SessionRecord(identifier: identifier, settings: attachment.settings))
        guard !session.isAttached else { throw .inUse }
        guard self.sessions[identifier] != nil || self.sessions.count < Self.sessionLimit else { throw .busy }
        let variables = session.record.settings.proxyVariables
        session.record.settings = attachment.settings
        // A program that the daemon starts may have another environment than its user's.
        if attachment.isLaunchedForEvents, let variables { session.record.settings.proxyVariables = variables }
        session.record.needsSettings = nil
        if !attachment.isReattachment {
            session.record.isLaunchedForEvents = attachment.isLaunchedForEvents
            // A person started the program: delays restart, and starting it for events is worthwhile again.
            if !attachment.isLaunchedForEvents {
                session.record.backgroundTransfers = 0
                session.record.launches = 0
            }
        }
        session.isAttached = true
        self.sessions[identifier] = session
        self.changes.append(.session(session.record))
    }

    /// The program is gone. A session without transfers and messages is forgotten.
    package mutating func detach(_ identifier: String) {
        guard let session = self.sessions[identifier] else { return }
        self.sessions[identifier]?.isAttached = false
        guard session.transfers.isEmpty, session.messages.isEmpty else { return }
        self.sessions[identifier] = nil
        self.changes.append(.removeSession(identifier))
    }

    /// - Returns: the names of files that nothing needs any more.
    package mutating func acknowledge(_ sequence: Int, of identifier: String) -> [String] {
        guard let session = self.sessions[identifier] else { return [] }
        let done = session.messages.prefix { $0.sequence <= sequence }
        guard let last = done.last else { return [] }
        self.sessions[identifier]?.messages.removeFirst(done.count)
        self.changes.append(.removeMessages(session: identifier, through: last.sequence))
        if session.record.launches > 0 {
            self.sessions[identifier]?.record.launches = 0
            self.sessionChanged(identifier)
        }
        return done.flatMap { [$0.end.transfer.contentName, $0.end.transfer.body].compactMap(\.self) }
    }

    /// The daemon has started the program of a session.
    package mutating func launched(_ identifier: String, now: Date) {
        self.sessions[identifier]?.record.launches += 1
        self.sessions[identifier]?.record.lastLaunch = now
        self.sessionChanged(identifier)
    }

    // MARK: Requests of the program

    package enum RequestAction: Hashable, Sendable {
        case none
        /// Its state allows another one now: the schedule is to be computed again.
        case schedule
        /// Ends the attempt that runs.
        case stopAttempt
    }

    package mutating func requested(
        _ request: SessionRequest, of identifier: String, backgroundDelay: TimeInterval, now: Date
    ) -> (RequestOutcome, RequestAction) {
        guard let session = self.sessions[identifier] else { return (.unknownTransfer, .none) }
        switch request {
        case .configure(let settings):
            guard settings != session.record.settings else { return (.done, .none) }
            self.sessions[identifier]?.record.settings = settings
            self.sessionChanged(identifier)
            return (.done, .schedule)
        case .create(let transfer): return (self.create(transfer, in: session), .none)
        case .change(let task, let attributes):
            return self.change(task, of: identifier) { $0.attributes = attributes }
        case .resume(let task):
            return self.change(task, of: identifier) { $0.resume(delayedBy: backgroundDelay, now: now) }
        case .suspend(let task):
            return self.change(task, of: identifier) { transfer in
                transfer.isSuspended = true
                if transfer.phase == .running { transfer.phase = .waiting(until: nil) }
            }
        case .cancel(let task, let reason):
            guard let transfer = session.transfers[task] else { return (.unknownTransfer, .none) }
            let error = TransferError(
                code: URLError.Code.cancelled.rawValue, text: "cancelled", url: transfer.currentRequest.url,
                cancelledReason: reason)
            self.end(transfer, of: identifier, file: nil, error: error, now: now)
            return (.done, .stopAttempt)
        case .answerChallenge(let task, let challenge, let answer):
            return self.answer(answer, to: challenge, of: task, of: identifier, now: now)
        case .answerRequest(let task, let answer):
            return self.answer(answer, to: task, of: identifier, now: now)
        case .acknowledge(let sequence):
            _ = self.acknowledge(sequence, of: identifier)
            return (.done, .none)
        }
    }

    private mutating func create(_ transfer: TransferRecord, in session: Session) -> RequestOutcome {
        let identifier = session.record.identifier
        // The program repeats a request whose answer it did not get.
        guard session.transfers[transfer.identifier] == nil,
            !session.messages.contains(where: { $0.end.transfer.identifier == transfer.identifier })
        else { return .done }
        if let error = self.problem(of: transfer, in: session) { return .refused(error) }
        var transfer = transfer.asCreated
        if session.record.isLaunchedForEvents {
            transfer.backgroundOrdinal = session.record.backgroundTransfers + 1
            self.sessions[identifier]?.record.backgroundTransfers += 1
        }
        self.sessions[identifier]?.record.lastIdentifier = max(session.record.lastIdentifier, transfer.identifier)
        self.sessions[identifier]?.transfers[transfer.identifier] = transfer
        self.sessionChanged(identifier)
        self.changes.append(.transfer(session: identifier, transfer))
        return .done
    }

    private func problem(of transfer: TransferRecord, in session: Session) -> TransferError? {
        let url = transfer.originalRequest.url
        if session.transfers.count >= TransferProtocol.transferLimit {
            return TransferError(
                code: URLError.Code.resourceUnavailable.rawValue,
                text: "The session has \(TransferProtocol.transferLimit) transfers: more must wait for their end.",
                url: url)
        }
        let isNamed = transfer.body.map(TransferFolders.isFileName) ?? (transfer.kind == .download)
        guard isNamed, 1...TransferRecord.identifierLimit ~= transfer.identifier else {
            return TransferError(
                code: URLError.Code.unsupportedURL.rawValue, text: "The transfer is not valid.", url: url)
        }
        return transfer.excess
    }

    private mutating func change(
        _ task: Int, of identifier: String, _ body: (inout TransferRecord) -> Void
    ) -> (RequestOutcome, RequestAction) {
        guard var transfer = self.sessions[identifier]?.transfers[task] else { return (.unknownTransfer, .none) }
        let before = transfer
        body(&transfer)
        guard transfer != before else { return (.done, .none) }
        if let error = transfer.excess { return (.refused(error), .none) }
        self.store(transfer, of: identifier)
        let stops = before.phase == .running && transfer.phase != .running
        return (.done, stops ? .stopAttempt : .schedule)
    }

    private mutating func answer(
        _ answer: TransferChallengeAnswer, to challenge: TransferChallenge, of task: Int, of identifier: String,
        now: Date
    ) -> (RequestOutcome, RequestAction) {
        guard let transfer = self.sessions[identifier]?.transfers[task] else { return (.unknownTransfer, .none) }
        // A repeated answer may come when another server asks: it must not get the password.
        guard case .asksForCredential(let asked) = transfer.phase, challenge.isOfSpace(of: asked),
            challenge.failures == asked.failures
        else { return (.done, .none) }
        if answer == .cancel {
            return self.requested(.cancel(task: task, reason: nil), of: identifier, backgroundDelay: 0, now: now)
        }
        return self.change(task, of: identifier) {
            $0.setAnswer(answer, to: asked)
            $0.phase = .waiting(until: nil)
        }
    }

    private mutating func answer(
        _ answer: DelayedRequestAnswer, to task: Int, of identifier: String, now: Date
    ) -> (RequestOutcome, RequestAction) {
        guard let transfer = self.sessions[identifier]?.transfers[task] else { return (.unknownTransfer, .none) }
        guard transfer.phase == .asksForRequest else { return (.done, .none) }
        if answer == .cancel {
            return self.requested(.cancel(task: task, reason: nil), of: identifier, backgroundDelay: 0, now: now)
        }
        return self.change(task, of: identifier) { transfer in
            if case .replace(let request) = answer { transfer.currentRequest = request }
            transfer.hasAskedForRequest = true
            transfer.phase = .waiting(until: nil)
        }
    }

    // MARK: Attempts

    /// - Returns: the transfer to carry out; `nil` if it is not one that waits.
    package mutating func begin(_ task: Int, of identifier: String) -> TransferRecord? {
        guard var transfer = self.sessions[identifier]?.transfers[task], !transfer.isSuspended,
            case .waiting = transfer.phase
        else { return nil }
        transfer.phase = .running
        self.store(transfer, of: identifier)
        return transfer
    }

    /// The transfer must not begin before the program has confirmed its request.
    package mutating func askForRequest(_ task: Int, of identifier: String) {
        _ = self.change(task, of: identifier) { $0.phase = .asksForRequest }
    }

    /// No program is there to be asked: the request is sent as it is.
    package mutating func skipAskingForRequest(_ task: Int, of identifier: String) {
        _ = self.change(task, of: identifier) { transfer in
            transfer.hasAskedForRequest = true
            if transfer.phase == .asksForRequest { transfer.phase = .waiting(until: nil) }
        }
    }

    /// A response arrived whose content goes to the transfer's file.
    /// - Parameter partial: validator and size for resuming the download; `nil` if it cannot be resumed.
    /// - Returns: whether the transfer runs still.
    package mutating func responseReceived(
        _ response: TransferResponse, _ partial: PartialDownload?, for task: Int, of identifier: String
    ) -> Bool {
        guard var transfer = self.sessions[identifier]?.transfers[task], transfer.phase == .running else {
            return false
        }
        transfer.response = response
        transfer.partial = partial
        self.store(transfer, of: identifier)
        return true
    }

    /// So many bytes of the file are on the disk.
    package mutating func madeDurable(_ bytes: Int64, of task: Int, of identifier: String) {
        guard var transfer = self.sessions[identifier]?.transfers[task], transfer.phase == .running else { return }
        transfer.partial?.durable = bytes
        self.store(transfer, of: identifier)
    }

    /// The server of an upload named the resource where it is continued, or that one does not count any more.
    /// - Parameter data: what continues the upload; `nil` sends it again from its beginning.
    package mutating func uploadNamed(_ data: Data?, for task: Int, of identifier: String) {
        guard var transfer = self.sessions[identifier]?.transfers[task], transfer.phase == .running,
            transfer.uploadResumption != data
        else { return }
        transfer.uploadResumption = data
        self.store(transfer, of: identifier)
    }

    /// Counts are not written to the file for their own sake: they are lost with the process.
    /// - Returns: whether the transfer runs still.
    package mutating func progressed(_ counts: TransferCounts, of task: Int, of identifier: String) -> Bool {
        guard let transfer = self.sessions[identifier]?.transfers[task], transfer.phase == .running else {
            return false
        }
        self.sessions[identifier]?.transfers[task]?.counts = counts
        if counts.sent > transfer.counts.sent || counts.received > transfer.counts.received {
            self.sessions[identifier]?.transfers[task]?.failures = 0
        }
        return true
    }

    package enum AttemptAction: Hashable, Sendable {
        /// The message about the end waits for the program.
        case ended
        case retry(at: Date)
        /// The program is to be asked.
        case ask(TransferChallenge)
        /// The transfer was suspended, cancelled or has ended before.
        case ignore
    }

    /// - Parameter jitter: 0 to 1; spreads the attempts of many transfers.
    package mutating func attemptEnded(
        _ end: AttemptEnd, of task: Int, of identifier: String, now: Date, jitter: Double
    ) -> AttemptAction {
        guard var transfer = self.sessions[identifier]?.transfers[task], transfer.phase == .running else {
            return .ignore
        }
        switch end {
        case .finished(let response, let file):
            transfer.response = response
            self.end(transfer, of: identifier, file: file, error: nil, now: now)
            return .ended
        case .failed(let error, isTransient: false):
            self.end(transfer, of: identifier, file: nil, error: error, now: now)
            return .ended
        case .failed(_, isTransient: true):
            transfer.failures += 1
            let date = now + RetryPolicy.pause(afterFailures: transfer.failures, jitter: jitter)
            transfer.phase = .waiting(until: date)
            self.store(transfer, of: identifier)
            return .retry(at: date)
        case .challenged(let challenge):
            transfer.phase = .asksForCredential(challenge)
            transfer.setAnswer(nil, to: challenge)
            self.store(transfer, of: identifier)
            return .ask(challenge)
        }
    }

    /// Ends a transfer whose time is over.
    package mutating func expired(_ task: Int, of identifier: String, now: Date) {
        guard let transfer = self.sessions[identifier]?.transfers[task] else { return }
        let error = TransferError(
            code: URLError.Code.timedOut.rawValue, text: "The transfer took longer than timeoutIntervalForResource.",
            url: transfer.currentRequest.url)
        self.end(transfer, of: identifier, file: nil, error: error, now: now)
    }

    // MARK: Rows

    /// Replaces the transfer by a message about its end.
    private mutating func end(
        _ transfer: TransferRecord, of identifier: String, file: String?, error: TransferError?, now: Date
    ) {
        guard var session = self.sessions[identifier] else { return }
        session.record.lastSequence += 1
        // Bodies and secrets are not needed any more, and would make messages large.
        var transfer = transfer.summary
        transfer.uploadResumption = nil
        let end = TransferEnd(transfer: transfer, file: file, error: error, ended: now)
        session.transfers[transfer.identifier] = nil
        session.messages.append(Message(sequence: session.record.lastSequence, end: end))
        self.sessions[identifier] = session
        self.changes.append(.removeTransfer(session: identifier, task: transfer.identifier))
        self.changes.append(.message(session: identifier, sequence: session.record.lastSequence, end))
        self.sessionChanged(identifier)
    }

    private mutating func store(_ transfer: TransferRecord, of identifier: String) {
        self.sessions[identifier]?.transfers[transfer.identifier] = transfer
        self.changes.append(.transfer(session: identifier, transfer))
    }

    private mutating func sessionChanged(_ identifier: String) {
        if let record = self.sessions[identifier]?.record { self.changes.append(.session(record)) }
    }
}

extension TransferRecord {
    /// Largest identifier of a task: the integers that JSON's readers agree about.
    static let identifierLimit = 1 << 53

    /// Without what only the daemon knows.
    fileprivate var asCreated: TransferRecord {
        var transfer = TransferRecord(
            identifier: self.identifier, kind: self.kind, request: self.currentRequest, body: self.body,
            attributes: self.attributes)
        transfer.originalRequest = self.originalRequest
        // Of a download that is resumed.
        transfer.partial = self.partial
        transfer.counts = TransferCounts(
            totalToSend: max(0, self.counts.totalToSend), received: max(0, self.counts.received),
            totalToReceive: max(-1, self.counts.totalToReceive))
        return transfer
    }

    /// Why the transfer is too large for messages; `nil` if it is not.
    fileprivate var excess: TransferError? {
        let isLarge = [self.originalRequest, self.currentRequest].contains { request in
            let fields = request.fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
            return request.url.utf8.count + fields > TransferRequest.headLimit
                || request.body?.count ?? 0 > TransferRequest.bodyLimit
        }
        guard isLarge || self.attributes.label?.utf8.count ?? 0 > TransferAttributes.labelLimit else { return nil }
        return TransferError(
            code: URLError.Code.dataLengthExceedsMaximum.rawValue,
            text: """
                A background transfer has \(TransferRequest.headLimit) bytes of URL and fields, \
                \(TransferRequest.bodyLimit) bytes of body and \(TransferAttributes.labelLimit) bytes of taskDescription \
                at most.
                """, url: String(self.currentRequest.url.prefix(1000)))
    }

    /// Whether the numbers are such that the daemon can calculate with them.
    var isInRange: Bool {
        var counts = [self.failures, self.backgroundOrdinal] + (self.answers ?? []).map(\.challenge.failures)
        if case .asksForCredential(let challenge) = self.phase { counts.append(challenge.failures) }
        return 1...Self.identifierLimit ~= self.identifier && counts.allSatisfy { 0...Self.identifierLimit ~= $0 }
    }

    /// - Parameter base: see `TransferRules.backgroundDelay`.
    fileprivate mutating func resume(delayedBy base: TimeInterval, now: Date) {
        guard self.isSuspended else { return }
        self.isSuspended = false
        guard self.begun == nil else { return }
        self.begun = now
        let delay = TransferRules.backgroundDelay(ofTransfer: self.backgroundOrdinal, base: base)
        if delay > 0 { self.phase = .waiting(until: now + delay) }
    }
}
