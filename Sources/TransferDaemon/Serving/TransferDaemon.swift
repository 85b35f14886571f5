import BackgroundTransfers
import Foundation
import SQLiteStorage
import StreamTransport
import URLLoading

/// Serves the programs of one user and carries out their transfers. Confined to its loop.
///
/// Each event changes the journal, the changes are written, and only then is anything sent or started. If the journal cannot
/// be written, the daemon ends: the next one begins where the file says.
package final class TransferDaemon {
    /// Most programs connected at a time.
    private static let clientLimit = 1000
    private static let loggedRowLimit = 20

    private struct Attempt {
        /// Reports of an earlier attempt have another.
        let number: Int
        /// Carries it out; others may begin with later settings meanwhile.
        let loads: SessionLoads
    }

    private let loop: Loop
    private let folders: TransferFolders
    private let settings: DaemonSettings
    private let file: JournalFile
    private var journal: TransferJournal
    private var listener: SocketListener?
    /// The socket's file, if this process has bound it.
    private var socketFile: SocketFile?
    private var clients: [ObjectIdentifier: ClientConnection] = [:]
    private var owners: [String: ClientConnection] = [:]
    private var loads: [String: SessionLoads] = [:]
    private var attempts: [TransferSchedule.Task: Attempt] = [:]
    private var lastAttempt = 0
    /// With the time at which they were read; `nil` before discretionary transfers need them.
    private var conditions: (value: MachineConditions, read: Date)?
    private var isReadingConditions = false
    private var isScheduling = false
    private let scheduleTimer = LoopTimer()
    private let idleTimer = LoopTimer()
    private var gaveUp: Set<String> = []
    /// Rows of the journal that no daemon could read.
    private let unreadable: [UnreadableRow]
    /// Called once, when nothing is left or the journal cannot be written.
    private let finished: (SQLiteFailure?) -> Void
    private var isFinished = false

    /// - Parameters:
    ///   - folders: exist already.
    ///   - finished: called on the loop.
    /// - Throws: if the journal cannot be read.
    package init(
        _ file: JournalFile, folders: TransferFolders, settings: DaemonSettings, on loop: Loop,
        finished: @escaping (SQLiteFailure?) -> Void
    ) throws(SQLiteFailure) {
        self.loop = loop
        self.folders = folders
        self.settings = settings
        self.file = file
        self.journal = TransferJournal(try file.read())
        self.unreadable = try file.unreadableRows()
        self.finished = finished
    }

    /// Begins to serve. On the loop.
    /// - Parameter descriptor: a listening socket that the service manager passed; `nil` opens the folder's.
    package func start(adopting descriptor: Descriptor?) throws(SystemError) {
        if let descriptor {
            self.listener = try SocketListener(adopting: descriptor, on: self.loop, owner: self)
        } else {
            var options = ListenOptions()
            options.mode = 0o600
            self.listener = try SocketListener(
                .unix(path: self.folders.socket), options: options, on: self.loop, owner: self)
            self.socketFile = self.loop.system.socketFile(at: self.folders.socket)
        }
        if self.file.isNew, UnusedFiles.exist(in: self.folders) {
            self.log(
                "journal \(self.folders.journal): it was missing or empty, but there are files in \(self.folders.transfers): "
                    + "the transfers that they belong to are lost; start them again in their programs")
        }
        for row in self.unreadable.prefix(Self.loggedRowLimit) {
            self.log("journal \(self.folders.journal): \(row)")
        }
        if self.unreadable.count > Self.loggedRowLimit {
            self.log("journal \(self.folders.journal): \(self.unreadable.count) rows in all cannot be read")
        }
        UnusedFiles(self.folders, self.journal, self.unreadable).remove(before: self.settings.now() - 86_400)
        self.schedule()
    }

    private func log(_ text: String) { self.settings.log(text) }

    // MARK: The journal

    /// Writes what has changed.
    /// - Returns: `false` if that failed: nothing may be sent or started any more.
    private func commit() -> Bool {
        guard !self.isFinished else { return false }
        do throws(SQLiteFailure) {
            try self.file.write(self.journal.takeChanges())
            return true
        } catch {
            self.log("the journal cannot be written: \(error)")
            self.finish(error)
            return false
        }
    }

    private func finish(_ failure: SQLiteFailure?) {
        guard !self.isFinished else { return }
        self.isFinished = true
        self.loop.disarm(self.scheduleTimer)
        self.loop.disarm(self.idleTimer)
        if let listener = self.listener, let socketFile = self.socketFile {
            self.loop.system.remove(socketFile)
            listener.close()
        }
        for client in self.clients.values { client.close() }
        for loads in self.loads.values { loads.close() }
        for attempt in self.attempts.values { attempt.loads.close() }
        self.finished(failure)
    }

    // MARK: Programs

    func received(_ message: ClientMessage, from client: ClientConnection) {
        guard !self.isFinished else { return }
        switch (message, client.role) {
        case (.attach(let attachment), .unknown): self.attach(attachment, client)
        case (.observe(let version), .unknown): self.observe(version, client)
        case (.request(let number, .acknowledge(let sequence)), .owner(let session)):
            self.acknowledge(sequence, of: session) { client.send(.reply(number: number, .done)) }
        case (.request(let number, let request), .owner(let session)):
            self.perform(request, of: session) { client.send(.reply(number: number, $0)) }
        case (.steer(let number, let session, let task, let verb), .observer):
            let request: SessionRequest =
                switch verb {
                case .resume: .resume(task: task)
                case .suspend: .suspend(task: task)
                case .cancel: .cancel(task: task, reason: URLErrorReason.userForceQuitApplication)
                }
            self.perform(request, of: session) { outcome in
                client.send(.reply(number: number, outcome))
                self.notifyOwner(of: task, session)
            }
        case (.attach, _), (.observe, _), (.request, _), (.steer, _): client.refuse(.malformed)
        }
    }

    private func attach(_ attachment: SessionAttachment, _ client: ClientConnection) {
        let name = attachment.identifier
        do throws(Refusal) {
            try self.journal.attach(attachment)
        } catch {
            return client.refuse(error)
        }
        guard self.commit(), let session = self.journal.sessions[name] else { return }
        self.loads[name]?.permit(attachment.settings.permittedTargets)
        let folder = self.folders.session(name)
        if let problem = TransferFolders.create(folder) {
            self.log("\(folder) \(problem)")
            self.journal.detach(name)
            _ = self.commit()
            return client.refuse(.busy)
        }
        client.role = .owner(session: name)
        self.owners[name] = client
        self.gaveUp.remove(name)
        let asks = session.transfers.values.contains { $0.phase.isQuestion }
        client.send(
            .attached(
                AttachedSession(
                    lastIdentifier: session.record.lastIdentifier, folder: folder,
                    waitingMessages: session.messages.count, hasQuestions: asks)))
        client.list(session.transfers.keys.sorted().map { TransferSchedule.Task(session: name, identifier: $0) })
        self.writeMore(to: client)
        self.schedule()
    }

    private func observe(_ version: Int, _ client: ClientConnection) {
        guard version == TransferProtocol.version else { return client.refuse(.version) }
        client.role = .observer
        client.list(
            self.journal.sessions.sorted { $0.key < $1.key }.flatMap { name, session in
                session.transfers.keys.sorted().map { TransferSchedule.Task(session: name, identifier: $0) }
            })
        self.writeMore(to: client)
    }

    /// Sends more of what the program has not got yet, as far as it reads: first its transfers, then messages.
    func writeMore(to client: ClientConnection) {
        while client.takesMore, let task = client.nextListed() {
            // It may have ended meanwhile.
            guard let transfer = self.journal.transfer(task.identifier, of: task.session) else { continue }
            client.send(.transfer(session: task.session, transfer.summary))
        }
        guard client.finishList(), case .owner(let session) = client.role else { return }
        self.deliverMessages(of: session)
    }

    func ended(_ client: ClientConnection) {
        self.clients[ObjectIdentifier(client)] = nil
        guard case .owner(let session) = client.role, self.owners[session] === client else { return self.schedule() }
        self.owners[session] = nil
        self.journal.detach(session)
        guard self.commit() else { return }
        if self.journal.sessions[session] == nil {
            self.loads.removeValue(forKey: session)?.close()
            // Only if it is empty.
            _ = rmdir(self.folders.session(session))
        }
        self.schedule()
    }

    private func perform(
        _ request: SessionRequest, of session: String, _ reply: (RequestOutcome) -> Void
    ) {
        let (outcome, action) = self.journal.requested(
            request, of: session, backgroundDelay: self.settings.backgroundDelay, now: self.settings.now())
        guard self.commit() else { return }
        reply(outcome)
        if case .configure(let settings) = request { self.loads[session]?.permit(settings.permittedTargets) }
        self.notifyObservers(of: request.task, session)
        switch action {
        case .none: break
        case .schedule: self.schedule()
        case .stopAttempt:
            self.stopAttempt(TransferSchedule.Task(session: session, identifier: request.task))
            self.deliverMessages(of: session)
            self.schedule()
        }
    }

    private func acknowledge(_ sequence: Int, of session: String, _ reply: () -> Void) {
        let files = self.journal.acknowledge(sequence, of: session)
        guard self.commit() else { return }
        reply()
        let folder = self.folders.session(session)
        for file in files where TransferFolders.isFileName(file) { _ = unlink("\(folder)/\(file)") }
        self.deliverMessages(of: session)
    }

    /// Sends the messages that fit into the window; more when the program has read them.
    private func deliverMessages(of session: String) {
        guard let client = self.owners[session], let messages = self.journal.sessions[session]?.messages else { return }
        guard client.hasList else { return }
        for message in messages.prefix(TransferProtocol.messageWindow) where message.sequence > client.sentThrough {
            guard client.takesMore else { return }
            client.sentThrough = message.sequence
            client.send(.ended(sequence: message.sequence, message.end))
        }
    }

    private func notifyOwner(of task: Int, _ session: String) {
        guard let transfer = self.journal.transfer(task, of: session) else { return }
        self.owners[session]?.send(.transfer(session: session, transfer.summary))
    }

    private func notifyObservers(of task: Int, _ session: String) {
        let observers = self.clients.values.filter { if case .observer = $0.role { true } else { false } }
        guard !observers.isEmpty else { return }
        let message: DaemonMessage
        if let transfer = self.journal.transfer(task, of: session) {
            message = .transfer(session: session, transfer.summary)
        } else {
            let end = self.journal.sessions[session]?.messages.last { $0.end.transfer.identifier == task }
            message = .removed(session: session, task: task, end?.end.error)
        }
        for observer in observers { observer.send(message) }
    }

    // MARK: Attempts

    private func startAttempt(_ task: TransferSchedule.Task) {
        guard let transfer = self.journal.begin(task.identifier, of: task.session), self.commit(),
            let settings = self.journal.sessions[task.session]?.record.settings
        else { return }
        self.lastAttempt += 1
        let (number, loads) = (self.lastAttempt, self.loads(of: task.session, settings))
        self.attempts[task] = Attempt(number: number, loads: loads)
        let box = LoopIsolated(self, on: self.loop)
        loads.start(transfer) { event in
            box.execute { $0.reported(event, of: task, attempt: number) }
        }
        self.notifyObservers(of: task.identifier, task.session)
    }

    private func loads(of session: String, _ settings: SessionSettings) -> SessionLoads {
        let former = self.loads[session]
        if let former, former.carriesOut(settings) { return former }
        let configuration = URLSessionConfiguration(settings)
        self.settings.prepare(configuration)
        let loads = SessionLoads(
            settings, configuration, folder: self.folders.session(session), permission: self.settings.permission,
            following: former)
        self.loads[session] = loads
        // Its attempts continue.
        former?.finish()
        return loads
    }

    private func stopAttempt(_ task: TransferSchedule.Task) {
        self.attempts.removeValue(forKey: task)?.loads.stop(task.identifier)
    }

    private func reported(_ event: AttemptEvent, of task: TransferSchedule.Task, attempt: Int) {
        guard !self.isFinished, self.attempts[task]?.number == attempt else {
            if case .response(_, _, _, _, let proceed) = event { proceed(false) }
            return
        }
        switch event {
        case .response(let response, let partial, let offset, let total, let proceed):
            let runs = self.journal.responseReceived(response, partial, for: task.identifier, of: task.session)
            guard self.commit() else { return proceed(false) }
            if let offset {
                self.owners[task.session]?.send(.resumed(task: task.identifier, offset: offset, total: total))
            }
            proceed(runs)
        case .counts(let counts):
            guard self.journal.progressed(counts, of: task.identifier, of: task.session) else { return }
            self.notifyProgress(counts, of: task)
        case .uploadNamed(let data):
            self.journal.uploadNamed(data, for: task.identifier, of: task.session)
            guard self.commit() else { return }
            self.notifyObservers(of: task.identifier, task.session)
        case .durable(let bytes):
            self.journal.madeDurable(bytes, of: task.identifier, of: task.session)
            _ = self.commit()
        case .ended(let end): self.attemptEnded(end, of: task)
        }
    }

    private func notifyProgress(_ counts: TransferCounts, of task: TransferSchedule.Task) {
        let message = DaemonMessage.progress(session: task.session, task: task.identifier, counts)
        self.owners[task.session]?.send(message)
        for client in self.clients.values { if case .observer = client.role { client.send(message) } }
    }

    private func attemptEnded(_ end: AttemptEnd, of task: TransferSchedule.Task) {
        self.attempts[task] = nil
        let action = self.journal.attemptEnded(
            end, of: task.identifier, of: task.session, now: self.settings.now(), jitter: self.settings.jitter())
        guard self.commit() else { return }
        switch action {
        case .ended: self.deliverMessages(of: task.session)
        case .ask: self.notifyOwner(of: task.identifier, task.session)
        case .retry, .ignore: break
        }
        self.notifyObservers(of: task.identifier, task.session)
        self.schedule()
    }

    // MARK: The schedule

    /// Computes the schedule once at the end of this turn or in the next.
    private func schedule() {
        guard !self.isScheduling, !self.isFinished else { return }
        self.isScheduling = true
        let box = LoopIsolated(self, on: self.loop)
        self.loop.execute { box.value.runSchedule() }
    }

    private func runSchedule() {
        self.isScheduling = false
        guard !self.isFinished else { return }
        let now = self.settings.now()
        let plan = TransferSchedule(
            self.journal, conditions: self.currentConditions(now) ?? .unknown, now: now,
            limit: self.settings.runningLimit)
        for task in plan.expired { self.journal.expired(task.identifier, of: task.session, now: now) }
        for task in plan.questions { self.ask(task) }
        guard self.commit() else { return }
        for task in plan.expired {
            self.stopAttempt(task)
            self.deliverMessages(of: task.session)
            self.notifyObservers(of: task.identifier, task.session)
        }
        for task in plan.questions { self.notifyOwner(of: task.identifier, task.session) }
        for task in plan.starts { self.startAttempt(task) }
        if plan.waitsForConditions { self.refreshConditions(now) }
        let launch = self.launchPrograms(now)
        // Asked about or skipped: the rest of the schedule follows at once.
        if !plan.questions.isEmpty || !plan.expired.isEmpty { self.schedule() }
        self.arm(at: [plan.nextChange, launch].compactMap(\.self).min(), now)
        self.updateIdleTimer()
    }

    private func ask(_ task: TransferSchedule.Task) {
        guard let session = self.journal.sessions[task.session] else { return }
        let settings = session.record.settings
        let canAsk = session.isAttached || settings.sendsLaunchEvents && settings.launch != nil
        if settings.asksForDelayedRequests, canAsk {
            self.journal.askForRequest(task.identifier, of: task.session)
        } else {
            self.journal.skipAskingForRequest(task.identifier, of: task.session)
        }
    }

    private func arm(at date: Date?, _ now: Date) {
        guard let date, !self.isFinished else { return self.loop.disarm(self.scheduleTimer) }
        // At least a millisecond, so that rounding does not make it fire too early again and again; at most an hour, so
        // that a change of the clock is seen.
        let seconds = min(3600, max(0.001, date.timeIntervalSince(now)))
        self.loop.arm(self.scheduleTimer, after: .seconds(seconds), target: self)
    }

    /// - Returns: `nil` if they must be read again.
    private func currentConditions(_ now: Date) -> MachineConditions? {
        guard let conditions else { return nil }
        let age = now.timeIntervalSince(conditions.read)
        return age >= 0 && age < TransferSchedule.conditionsInterval ? conditions.value : nil
    }

    private func refreshConditions(_ now: Date) {
        guard !self.isReadingConditions, self.currentConditions(now) == nil else { return }
        let (read, box) = (self.settings.conditions, LoopIsolated(self, on: self.loop))
        self.isReadingConditions = SystemThread.start(named: "conditions") {
            let value = read()
            box.execute { daemon in
                daemon.isReadingConditions = false
                daemon.conditions = (value, daemon.settings.now())
                daemon.schedule()
            }
        }
    }

    /// - Returns: when the next program is to be started.
    private func launchPrograms(_ now: Date) -> Date? {
        guard let launch = self.settings.launch else { return nil }
        var next: Date?
        for (name, session) in self.journal.sessions {
            switch LaunchPolicy.decide(session, now: now) {
            case .none: break
            case .wait(let date): next = min(next ?? date, date)
            case .giveUp:
                if self.gaveUp.insert(name).inserted {
                    self.log("session \(name): its program was started \(LaunchPolicy.limit) times and took no message")
                }
            case .launch:
                guard let command = session.record.settings.launch else { continue }
                self.journal.launched(name, now: now)
                guard self.commit() else { return nil }
                let started = launch(command, name)
                self.log("session \(name): \(started ? "started" : "cannot start") \(command.executable)")
                let date = now + LaunchPolicy.pause(afterLaunches: session.record.launches + 1)
                next = min(next ?? date, date)
            }
        }
        return next
    }

    /// The daemon ends when no program is connected and no transfer can continue.
    private func updateIdleTimer() {
        guard !self.isFinished else { return }
        let isBusy =
            !self.clients.isEmpty
            || self.journal.sessions.values.contains { session in
                session.goesOn || self.mayLaunch(session)
            }
        if isBusy {
            self.loop.disarm(self.idleTimer)
        } else if self.idleTimer.deadline == nil {
            self.loop.arm(self.idleTimer, after: self.settings.idleLimit, target: self)
        }
    }

    private func mayLaunch(_ session: TransferJournal.Session) -> Bool {
        guard self.settings.launch != nil else { return false }
        switch LaunchPolicy.decide(session, now: self.settings.now()) {
        case .launch, .wait: return true
        case .none, .giveUp: return false
        }
    }
}

extension TransferDaemon: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        if timer === self.scheduleTimer { self.schedule() } else { self.finish(nil) }
    }
}

extension TransferDaemon: SocketListenerOwner {
    package func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        // Others cannot enter the socket's folder; this is for a socket that is elsewhere.
        guard PeerCredentials.user(of: socket.descriptor) == PeerCredentials.ownUser,
            self.clients.count < Self.clientLimit
        else { return self.loop.system.close(socket.descriptor) }
        guard let connection = try? SocketConnection(adopting: socket.descriptor, peer: socket.peer, on: self.loop)
        else { return }
        let client = ClientConnection(connection, of: self)
        self.clients[ObjectIdentifier(client)] = client
        self.loop.disarm(self.idleTimer)
    }

    package func acceptingPaused(by listener: SocketListener, _ error: SystemError) {
        self.log("no more programs can connect: \(error)")
    }

    package func acceptingResumed(by listener: SocketListener) {}
}

extension TransferRecord.Phase {
    /// Whether the program's answer is needed.
    var isQuestion: Bool {
        switch self {
        case .asksForRequest, .asksForCredential: true
        case .waiting, .running: false
        }
    }
}

extension TransferJournal.Session {
    /// Whether a transfer runs, or will.
    fileprivate var goesOn: Bool {
        self.record.needsSettings != true && self.transfers.values.contains { !$0.isSuspended && !$0.phase.isQuestion }
    }
}

extension SessionRequest {
    /// The identifier of the task that it is about.
    var task: Int {
        switch self {
        case .create(let transfer): transfer.identifier
        case .change(let task, _), .resume(let task), .suspend(let task), .cancel(let task, _),
            .answerChallenge(let task, _, _), .answerRequest(let task, _):
            task
        case .acknowledge, .configure: 0
        }
    }
}

/// Raw values of `URLError.BackgroundTaskCancelledReason`.
private enum URLErrorReason {
    static let userForceQuitApplication = 0
}
