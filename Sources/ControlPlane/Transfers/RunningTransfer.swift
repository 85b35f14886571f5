import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import NIOPosix
import StreamTransport
import Synchronization
import URLLoading

/// One transfer with all its attempts. Thread-safe.
final class RunningTransfer: Sendable {
    /// The progress of an attempt.
    private struct Progress: Sendable {
        var sent: Int64 = 0
        var expectedToSend: Int64 = 0
        var received: Int64 = 0
        var expectedToReceive: Int64 = -1
        var currentURL: String?
        var response: HTTPURLResponse?

        init() {}

        init(_ task: URLSessionTask) {
            self.sent = task.countOfBytesSent
            self.expectedToSend = task.countOfBytesExpectedToSend
            self.received = task.countOfBytesReceived
            self.expectedToReceive = task.countOfBytesExpectedToReceive
            self.currentURL = task.currentRequest?.url?.absoluteString
            self.response = task.response as? HTTPURLResponse
        }
    }

    private struct State {
        var stage: TransferStage
        /// Number of the current attempt; 0 before the first.
        var attempt = 0
        var task: URLSessionTask?
        /// Set if the transfer does not share the registry's session.
        var session: URLSession?
        /// Set when the task has ended.
        var progress = Progress()
        var content = Data()
        var written: Int64?
        var expectedToWrite: Int64?
        var resumedAt: Int64?
        var resumeData: Data?
        /// Reported instead of the error with which the task ends.
        var reason: TransferFailure?
        var failure: TransferFailure?
        var metrics: URLSessionTaskMetrics?
        var isSaving = false
        /// The task has ended; its file may still be copied.
        var isTaskOver = false
        /// The transfer is no longer in the registry.
        var isForgotten = false
        var startedAt: MonotonicInstant?
        var endedAt: MonotonicInstant?
        var timer: Task<Void, Never>?
        var description: String?
        var priority: Float
        var labels: [String: String]
        /// The file of a background download was stored.
        var isStored = false

        /// A background transfer may be suspended and resumed from a shell too.
        @discardableResult
        mutating func follow(_ plan: TransferPlan) -> TransferStage {
            guard plan.runsInBackground, self.stage == .running || self.stage == .suspended, let task else {
                return self.stage
            }
            switch task.state {
            case .suspended: self.stage = .suspended
            case .running: self.stage = .running
            case .canceling, .completed: break
            }
            return self.stage
        }
    }

    let number: UInt64
    let plan: TransferPlan
    let createdAt: MonotonicInstant
    let registry: TransferRegistry
    private let state: Mutex<State>

    init(_ plan: TransferPlan, number: UInt64, on registry: TransferRegistry) {
        self.plan = plan
        self.number = number
        self.registry = registry
        self.createdAt = registry.now
        self.state = Mutex(
            State(
                stage: plan.isStreamed ? .waiting : .suspended, description: plan.description,
                priority: plan.priority, labels: plan.labels))
    }

    /// A transfer that the daemon carries out, as an earlier gateway described it.
    init(
        number: UInt64, restoring record: BackgroundTransferRecord, _ task: URLSessionTask,
        settings: TransferSettings, on registry: TransferRegistry
    ) {
        self.plan = TransferPlan(restoring: record, task, settings: settings)
        self.number = number
        self.registry = registry
        self.createdAt = record.instant(record.createdAt, now: registry.now)
        var state = State(
            stage: task.state == .suspended ? .suspended : .running, attempt: record.attempt, task: task,
            description: record.description, priority: task.priority, labels: record.labels)
        state.startedAt = record.startedAt.map { record.instant($0, now: registry.now) }
        if self.plan.kind == .download {
            state.written = task.countOfBytesReceived
            state.expectedToWrite = task.countOfBytesExpectedToReceive < 0 ? nil : task.countOfBytesExpectedToReceive
        }
        self.state = Mutex(state)
    }

    var stage: TransferStage { self.state.withLock { $0.follow(self.plan) } }
    var resumeData: Data? { self.state.withLock { $0.resumeData } }
    var content: (stage: TransferStage, data: Data) { self.state.withLock { ($0.stage, $0.content) } }
    var attempt: Int { self.state.withLock { $0.attempt } }

    // MARK: Attempts

    /// Starts an attempt.
    /// - Parameters:
    ///   - resumeData: of an earlier attempt; `nil` starts from the beginning.
    ///   - pipe: provides a streamed body.
    ///   - bodyLength: of a streamed body, if known.
    func begin(resuming resumeData: Data? = nil, pipe: BodyPipe? = nil, bodyLength: Int64? = nil) throws(ControlProblem)
    {
        let request = try self.request(bodyLength: bodyLength)
        let session = self.registry.session(for: self.plan)
        let task = self.task(session, request, resumeData)
        let attempt = self.state.withLock { state in
            self.registry.memory.release(state.content.count)
            state.attempt += 1
            state.stage = .running
            state.task = task
            state.session = self.plan.canShareSession ? nil : session
            state.content = Data()
            state.progress = Progress()
            (state.written, state.expectedToWrite, state.resumedAt, state.resumeData) = (nil, nil, nil, nil)
            (state.reason, state.failure, state.metrics, state.endedAt) = (nil, nil, nil, nil)
            (state.isSaving, state.isTaskOver, state.isStored) = (false, false, false)
            state.startedAt = self.registry.now
            task.priority = state.priority
            return state.attempt
        }
        let delegate = TransferDelegate(self, attempt: attempt, pipe: pipe, targets: self.registry.targets)
        if self.plan.runsInBackground {
            self.registry.background?.adopt(task, delegate)
            // In the journal before the task is resumed.
            task.taskDescription = self.backgroundRecord
        } else {
            task.delegate = delegate
        }
        self.startTimer(attempt)
        self.publish(.transferStarted, attempt)
        task.resume()
    }

    /// Starts the attempt of a streamed transfer.
    /// - Returns: `false` if its body was sent already.
    func begin(streaming pipe: BodyPipe, bodyLength: Int64?) throws(ControlProblem) -> Bool {
        let isFirst = self.state.withLock { state in
            guard state.stage == .waiting else { return false }
            state.stage = .running
            return true
        }
        guard isFirst else { return false }
        do throws(ControlProblem) {
            try self.begin(pipe: pipe, bodyLength: bodyLength)
        } catch {
            self.state.withLock { $0.stage = .waiting }
            throw error
        }
        return true
    }

    /// The request with its credentials.
    private func request(bodyLength: Int64?) throws(ControlProblem) -> URLRequest {
        var request = self.plan.request
        if let bodyLength { request.setValue("\(bodyLength)", forHTTPHeaderField: "Content-Length") }
        if let credential = self.plan.credential, case .token(let token) = credential.secret {
            do throws(GatewayPlanError) {
                request.setValue("Bearer \(try TLSMaterial.text(of: token))", forHTTPHeaderField: "Authorization")
            } catch {
                throw ControlProblem(error, ofCredential: credential.name)
            }
        }
        return request
    }

    private func task(_ session: URLSession, _ request: URLRequest, _ resumeData: Data?) -> URLSessionTask {
        if let resumeData { return session.downloadTask(withResumeData: resumeData) }
        var request = request
        if self.plan.destination != nil {
            if case .data(let data) = self.plan.body { request.httpBody = data }
            return session.downloadTask(with: request)
        }
        switch self.plan.body {
        case .none, .copied: return session.dataTask(with: request)
        case .data(let data): return session.uploadTask(with: request, from: data)
        case .file(let file, _):
            return session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file.path, isDirectory: false))
        case .streamed: return session.uploadTask(withStreamedRequest: request)
        }
    }

    func startTimer(_ attempt: Int) {
        // That of a transfer of an earlier gateway began with it.
        let begun = self.state.withLock { $0.startedAt } ?? self.registry.now
        let timeout = max(.zero, self.plan.timeout - begun.duration(to: self.registry.now))
        let timer = Task { [weak self] in
            do {
                try await Waiting.sleep(for: timeout)
            } catch {
                return
            }
            self?.fail(
                attempt: attempt,
                TransferFailure("timed-out", "The transfer took longer than timeoutMs.", isRetryable: true))
        }
        self.state.withLock { state in
            state.timer?.cancel()
            state.timer = timer
        }
    }

    // MARK: Control

    /// - Returns: whether the transfer was running.
    func suspend() -> Bool {
        let task = self.state.withLock { state -> URLSessionTask? in
            guard state.follow(self.plan) == .running else { return nil }
            state.stage = .suspended
            return state.task
        }
        task?.suspend()
        return task != nil
    }

    /// Resumes, or starts the first attempt.
    func resume() throws(ControlProblem) {
        let (task, begins) = self.state.withLock { state -> (URLSessionTask?, Bool) in
            guard state.follow(self.plan) == .suspended else { return (nil, false) }
            guard let task = state.task else { return (nil, true) }
            state.stage = .running
            return (task, false)
        }
        task?.resume()
        if begins { try self.begin() }
    }

    func cancel(keepsResumeData: Bool) {
        let task = self.state.withLock { state -> URLSessionTask? in
            switch state.stage {
            case .waiting: break
            case .suspended where state.task == nil: break
            case .suspended, .running:
                state.stage = .cancelling
                return state.task
            case .cancelling, .saving, .finished, .failed, .cancelled: return nil
            }
            state.stage = .cancelled
            state.endedAt = self.registry.now
            self.publishEnd(state)
            return nil
        }
        guard keepsResumeData, let download = task as? URLSessionDownloadTask else {
            task?.cancel()
            return
        }
        let attempt = self.state.withLock { $0.attempt }
        download.cancel { self.storeResumeData($0, attempt: attempt) }
    }

    /// Cancels the attempt and reports `reason` as its failure.
    func fail(attempt: Int, _ reason: TransferFailure) {
        let task = self.state.withLock { state -> URLSessionTask? in
            guard state.attempt == attempt, !state.stage.isOver, !state.isSaving else { return nil }
            state.reason = state.reason ?? reason
            return state.task
        }
        guard reason.isRetryable, let download = task as? URLSessionDownloadTask else {
            task?.cancel()
            return
        }
        download.cancel { self.storeResumeData($0, attempt: attempt) }
    }

    /// Goes on with the timeout of an earlier gateway's transfer; gives up one whose destination is not allowed any more.
    func restored(attempt: Int) {
        self.startTimer(attempt)
        guard self.plan.isRefusedDownload else { return }
        self.fail(
            attempt: attempt,
            TransferFailure("file-unusable", "The destination is not below a directory of control.transfers any more."))
    }

    func change(description: String?, priority: Float?, labels: [String: String]?) {
        let task = self.state.withLock { state in
            if let description { state.description = description.isEmpty ? nil : description }
            if let priority { state.priority = priority }
            if let labels { state.labels = labels }
            return state.task
        }
        if let priority { task?.priority = priority }
        if self.plan.runsInBackground { task?.taskDescription = self.backgroundRecord }
    }

    /// State of the transfer for the next gateway.
    private var backgroundRecord: String? {
        self.state.withLock { state in
            let instants = [self.createdAt, state.startedAt ?? self.registry.now]
            let record = BackgroundTransferRecord(
                self.plan, number: self.number, attempt: state.attempt, instants: instants, now: self.registry.now,
                description: state.description, labels: state.labels)
            return record.text
        }
    }

    /// Keeps resume data for a later attempt; removes it if the transfer is forgotten or has a later attempt already.
    private func storeResumeData(_ resumeData: Data?, attempt: Int) {
        let obsolete = self.state.withLock { state -> Data? in
            guard state.attempt == attempt, !state.isForgotten else { return resumeData }
            state.resumeData = resumeData
            return nil
        }
        if let obsolete { Self.remove(obsolete) }
    }

    private static func remove(_ resumeData: Data) {
        if let file = ResumeData(resumeData)?.file { unlink(file.url.path) }
    }

    /// The gateway ends: the transfer too, unless the daemon carries it out.
    func stop() {
        guard self.plan.runsInBackground else { return self.forget() }
        self.state.withLock { $0.timer?.cancel() }
    }

    /// Cancels the transfer and releases its memory and files.
    func forget() {
        // A later gateway does not know its end.
        if self.plan.runsInBackground { self.state.withLock { $0.task }?.taskDescription = nil }
        self.cancel(keepsResumeData: false)
        let resumeData = self.state.withLock { state in
            state.isForgotten = true
            self.registry.memory.release(state.content.count + self.plan.bodyBytesInMemory)
            state.content = Data()
            state.timer?.cancel()
            return state.resumeData.take()
        }
        if let resumeData { Self.remove(resumeData) }
    }

    // MARK: Delegate events

    /// Ignores events of an earlier attempt.
    private func update(_ attempt: Int, _ body: (inout State) -> Void) {
        self.state.withLock { if $0.attempt == attempt { body(&$0) } }
    }

    func received(_ data: Data, attempt: Int) {
        let isFull = self.state.withLock { state in
            guard state.attempt == attempt, [.running, .suspended].contains(state.stage), state.reason == nil else {
                return false
            }
            let fits = state.content.count + data.count <= self.plan.bodyLimit
            guard fits, self.registry.memory.reserve(data.count, limit: self.plan.memoryLimit) else { return true }
            state.content.append(data)
            return false
        }
        guard isFull else { return }
        self.fail(
            attempt: attempt,
            TransferFailure(
                "content-too-large", "The content does not fit into memory; use a destination file.")
        )
    }

    func wrote(_ total: Int64, of expected: Int64, attempt: Int) {
        self.update(attempt) { state in
            state.written = total
            state.expectedToWrite = expected < 0 ? nil : expected
        }
    }

    func resumed(at offset: Int64, attempt: Int) {
        self.update(attempt) { $0.resumedAt = offset }
    }

    func measured(_ metrics: URLSessionTaskMetrics, attempt: Int) {
        self.update(attempt) { $0.metrics = metrics }
    }

    /// Links or opens the file, as the caller removes it when this returns.
    func downloaded(_ location: URL, attempt: Int) {
        guard let destination = self.plan.destination else { return }
        self.update(attempt) { state in
            state.isSaving = true
            // The timeout does not cover the copying.
            state.timer?.cancel()
        }
        if self.plan.runsInBackground { return self.store(location, at: destination, attempt) }
        do throws(FileError) {
            let output = try destination.makeOutput()
            let source = output.link(location.path) ? nil : try OpenFile(open(location.path, O_RDONLY | O_CLOEXEC))
            NIOThreadPool.singleton.submit { _ in self.save(output, source, attempt) }
        } catch {
            self.saved(error, attempt)
        }
    }

    /// Saves the file of a background download: when the delegate returns the daemon may remove it. If the gateway is killed
    /// before, a later one finds the destination as this one left it.
    private func store(_ location: URL, at destination: TransferFile, _ attempt: Int) {
        do throws(FileError) {
            let output = try destination.makeOutput(tag: "transfer-\(self.number)")
            do throws(FileError) {
                if !output.link(location.path) {
                    try output.copy(try OpenFile(open(location.path, O_RDONLY | O_CLOEXEC)))
                }
                try output.publish(overwrites: self.plan.overwrites)
            } catch {
                output.discard()
                guard error.kind == .exists, try output.isPublished(location.path) else { throw error }
            }
            self.update(attempt) { $0.isStored = true }
            self.saved(nil, attempt)
        } catch {
            self.saved(error, attempt)
        }
    }

    private func save(_ output: TransferOutput, _ source: OpenFile?, _ attempt: Int) {
        do throws(FileError) {
            if let source { try output.copy(source) }
            try output.publish(overwrites: self.plan.overwrites)
            self.saved(nil, attempt)
        } catch {
            output.discard()
            self.saved(error, attempt)
        }
    }

    private func saved(_ error: FileError?, _ attempt: Int) {
        self.update(attempt) { state in
            state.isSaving = false
            if let error {
                state.reason = TransferFailure("file-unusable", "The destination: \(error.description).")
            }
            if state.isTaskOver { self.end(&state, error: nil) }
        }
    }

    func completed(_ error: (any Error)?, attempt: Int) {
        // Outside the lock, as releasing a session closes its connections.
        let session = self.state.withLock { $0.attempt == attempt ? $0.session.take() : nil }
        session?.finishTasksAndInvalidate()
        if let data = (error as? URLError)?.downloadTaskResumeData { self.storeResumeData(data, attempt: attempt) }
        self.update(attempt) { state in
            if self.plan.runsInBackground, self.plan.kind == .download, error == nil, !state.isStored {
                state.reason = state.reason ?? TransferFailure("file-unusable", "The downloaded file is gone.")
            }
            state.isTaskOver = true
            if let task = state.task { state.progress = Progress(task) }
            state.task = nil
            if state.isSaving, error == nil {
                state.stage = .saving
            } else {
                self.end(&state, error: error)
            }
        }
    }

    private func end(_ state: inout State, error: (any Error)?) {
        state.timer?.cancel()
        state.timer = nil
        state.endedAt = self.registry.now
        let isCancelled = (error as? URLError)?.code == .cancelled && state.reason == nil
        state.failure = state.reason ?? (isCancelled ? nil : error.map { TransferFailure($0) })
        state.stage = isCancelled ? .cancelled : state.failure == nil ? .finished : .failed
        self.publishEnd(state)
        guard state.stage != .finished else { return }
        self.registry.memory.release(state.content.count)
        state.content = Data()
    }

    // MARK: Wire model

    func snapshot(_ anchor: TimeAnchor) -> Transfer {
        self.state.withLock { state in
            state.follow(self.plan)
            let progress = state.task.map { Progress($0) } ?? state.progress
            let url = self.plan.request.url?.absoluteString ?? ""
            var transfer = Transfer()
            transfer.id = "\(self.number)"
            transfer.kind = self.plan.kind.rawValue
            transfer.state = state.stage.rawValue
            transfer.method = self.plan.request.httpMethod ?? "GET"
            transfer.url = url
            transfer.currentUrl = progress.currentURL == url ? nil : progress.currentURL
            transfer.file = self.plan.bodyPath
            transfer.background = self.plan.runsInBackground ? true : nil
            transfer.destination = self.plan.destination?.path
            transfer.credential = self.plan.credential?.name
            transfer.description = state.description
            transfer.priority = state.priority.decimal
            transfer.labels = state.labels.isEmpty ? nil : state.labels
            transfer.createdAt = anchor.text(self.createdAt)
            transfer.startedAt = state.startedAt.map { anchor.text($0) }
            transfer.endedAt = state.endedAt.map { anchor.text($0) }
            transfer.attempt = state.attempt
            transfer.sentBytes = progress.sent
            transfer.expectedSendBytes = progress.expectedToSend < 0 ? nil : progress.expectedToSend
            transfer.receivedBytes = progress.received
            transfer.expectedReceiveBytes = progress.expectedToReceive < 0 ? nil : progress.expectedToReceive
            transfer.writtenBytes = state.written
            transfer.expectedWriteBytes = state.expectedToWrite
            transfer.resumedAtBytes = state.resumedAt
            transfer.progress = Self.fraction(state, progress)
            transfer.contentBytes = self.contentBytes(state)
            transfer.canResume = state.resumeData != nil
            transfer.response = progress.response.map { TransferResponse($0) }
            transfer.error = state.failure?.wireError
            transfer.metrics = state.metrics.map { TransferMetrics($0) }
            return transfer
        }
    }

    /// `nil` before the end.
    private func contentBytes(_ state: borrowing State) -> Int64? {
        guard state.stage == .finished else { return nil }
        return self.plan.destination == nil ? Int64(state.content.count) : state.written ?? 0
    }

    /// The progress from 0 to 1, with four decimal places.
    private static func fraction(_ state: borrowing State, _ progress: Progress) -> Double? {
        if state.stage == .finished { return 1 }
        func ratio(_ done: Int64?, _ total: Int64?) -> Double? {
            guard let done, let total, total > 0 else { return nil }
            return (min(1, Double(done) / Double(total)) * 10_000).rounded() / 10_000
        }
        return ratio(state.written, state.expectedToWrite)
            ?? (progress.expectedToSend > 0 && progress.response == nil
                ? ratio(progress.sent, progress.expectedToSend)
                : ratio(progress.received, progress.expectedToReceive))
    }

    // MARK: Gateway events

    /// - Parameter attempt: 0 for a transfer that ended before its first attempt.
    private func publish(_ kind: GatewayEvent.Kind, _ attempt: Int, reason: String? = nil, detail: String? = nil) {
        guard let eventLog = self.registry.eventLog else { return }
        var event = GatewayEvent(kind)
        event.transfer = "\(self.number)"
        event.url = self.plan.request.url?.absoluteString
        event.count = attempt
        event.reason = reason
        event.detail = detail
        eventLog.publish(event)
    }

    /// The reason is `finished`, `cancelled`, or the code of the failure.
    private func publishEnd(_ state: borrowing State) {
        if let failure = state.failure {
            self.publish(.transferFailed, state.attempt, reason: failure.code, detail: failure.detail)
        } else {
            self.publish(.transferEnded, state.attempt, reason: state.stage.rawValue)
        }
    }
}

/// The state of a transfer.
enum TransferStage: String, CaseIterable, Sendable {
    /// Waits for its streamed body.
    case waiting
    case suspended
    case running
    case cancelling
    /// The content is being saved to its destination.
    case saving
    case finished
    case failed
    case cancelled

    var isOver: Bool {
        switch self {
        case .waiting, .suspended, .running, .cancelling, .saving: false
        case .finished, .failed, .cancelled: true
        }
    }
}
