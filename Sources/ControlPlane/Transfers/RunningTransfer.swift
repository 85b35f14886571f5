import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import NIOPosix
import StreamTransport
import Synchronization
import URLLoading

/// One transfer, from the order to the end, over as many attempts as it takes. From any thread.
final class RunningTransfer: Sendable {
    /// How far an attempt came, once its task is gone.
    struct Counts: Sendable {
        var sent: Int64 = 0
        var expectedToSend: Int64 = 0
        var received: Int64 = 0
        var expectedToReceive: Int64 = -1
        var currentURL: String?
        var response: HTTPURLResponse?
    }

    struct State {
        var stage: TransferStage
        /// From 1 up; 0 before the first.
        var attempt = 0
        var task: URLSessionTask?
        /// Of this transfer alone.
        var session: URLSession?
        var counts = Counts()
        var content = Data()
        var written: Int64?
        var expectedToWrite: Int64?
        var resumedAt: Int64?
        var resumeData: Data?
        /// What is told in place of the error that the task ends with.
        var reason: TransferFailure?
        var failure: TransferFailure?
        var metrics: URLSessionTaskMetrics?
        var isSaving = false
        /// The task is over, while its file is still on its way.
        var isTaskOver = false
        /// Nobody can ask for it any more.
        var isForgotten = false
        var startedAt: MonotonicInstant?
        var endedAt: MonotonicInstant?
        var timer: Task<Void, Never>?
        var description: String?
        var priority: Float
        var labels: [String: String]
    }

    let number: UInt64
    let plan: TransferPlan
    let createdAt: MonotonicInstant
    let registry: TransferRegistry
    let state: Mutex<State>

    init(_ order: TransferPlan, number: UInt64, on host: TransferRegistry) {
        self.plan = order
        self.number = number
        self.registry = host
        self.createdAt = host.now
        self.state = Mutex(
            State(
                stage: order.isStreamed ? .waiting : .suspended, description: order.description,
                priority: order.priority, labels: order.labels))
    }

    var stage: TransferStage { self.state.withLock { $0.stage } }

    // MARK: Attempts

    /// Makes a task and lets it begin.
    /// - Parameters:
    ///   - resumeData: of an attempt before; `nil` begins anew.
    ///   - pipe: that brings the body, of a streamed one.
    ///   - bodyLength: of a streamed one; `nil` where it is not known.
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
            state.counts = Counts()
            (state.written, state.expectedToWrite, state.resumedAt, state.resumeData) = (nil, nil, nil, nil)
            (state.reason, state.failure, state.metrics, state.endedAt) = (nil, nil, nil, nil)
            (state.isSaving, state.isTaskOver) = (false, false)
            state.startedAt = self.registry.now
            task.priority = state.priority
            return state.attempt
        }
        task.delegate = TransferDelegate(self, attempt: attempt, pipe: pipe, targets: self.registry.targets)
        self.startTimer(attempt)
        self.publish(.transferStarted, attempt)
        task.resume()
    }

    /// With what proves who asks.
    private func request(bodyLength: Int64?) throws(ControlProblem) -> URLRequest {
        var request = self.plan.request
        if let bodyLength { request.setValue("\(bodyLength)", forHTTPHeaderField: "Content-Length") }
        if let credential = self.plan.credential, case .token(let token) = credential.secret {
            do throws(GatewayPlanError) {
                request.setValue("Bearer \(try TLSMaterial.text(of: token))", forHTTPHeaderField: "Authorization")
            } catch {
                throw ControlProblem(
                    409, "credential-unusable", "The credential \(credential.name) cannot be read; see its file.")
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
        case .none: return session.dataTask(with: request)
        case .data(let data): return session.uploadTask(with: request, from: data)
        case .file(let file, _):
            return session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file.path, isDirectory: false))
        case .streamed: return session.uploadTask(withStreamedRequest: request)
        }
    }

    private func startTimer(_ attempt: Int) {
        let timeout = self.plan.timeout
        let timer = Task { [weak self] in
            do {
                try await Task.sleep(for: timeout)
            } catch {
                return
            }
            self?.fail(
                attempt: attempt, TransferFailure("timed-out", "It took longer than timeoutMs.", isRetryable: true))
        }
        self.state.withLock { state in
            state.timer?.cancel()
            state.timer = timer
        }
    }

    // MARK: Verbs

    /// - Returns: whether there was anything to suspend.
    func suspend() -> Bool {
        let task = self.state.withLock { state -> URLSessionTask? in
            guard state.stage == .running else { return nil }
            state.stage = .suspended
            return state.task
        }
        task?.suspend()
        return task != nil
    }

    /// Goes on, or begins.
    func resume() throws(ControlProblem) {
        let (task, begins) = self.state.withLock { state -> (URLSessionTask?, Bool) in
            guard state.stage == .suspended else { return (nil, false) }
            guard let task = state.task else { return (nil, true) }
            state.stage = .running
            return (task, false)
        }
        task?.resume()
        if begins { try self.begin() }
    }

    /// Ends it; what a download received is kept where that can be gone on with.
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

    /// Ends the attempt for a reason of our own.
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

    func change(description: String?, priority: Float?, labels: [String: String]?) {
        let task = self.state.withLock { state in
            if let description { state.description = description.isEmpty ? nil : description }
            if let priority { state.priority = priority }
            if let labels { state.labels = labels }
            return state.task
        }
        if let priority { task?.priority = priority }
    }

    /// What a later attempt can go on from; of no use to anybody where the transfer is forgotten, or went on without
    /// it.
    func storeResumeData(_ resumeData: Data?, attempt: Int) {
        let useless = self.state.withLock { state -> Data? in
            guard state.attempt == attempt, !state.isForgotten else { return resumeData }
            state.resumeData = resumeData
            return nil
        }
        if let useless { Self.remove(useless) }
    }

    private static func remove(_ resumeData: Data) {
        if let file = ResumeData(resumeData)?.file { unlink(file.url.path) }
    }

    /// Lets go of everything that it holds.
    func forget() {
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
}

/// What the delegate of an attempt hears. What comes of an attempt that is not the last one any more says nothing.
extension RunningTransfer {
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
                "content-too-large", "The content does not fit into memory; name a destination, and it goes to a file.")
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

    /// The file is taken away when this returns.
    func downloaded(_ location: URL, attempt: Int) {
        guard let place = self.plan.destination else { return }
        self.update(attempt) { state in
            state.isSaving = true
            // Everything is there: only the disk may still take its time.
            state.timer?.cancel()
        }
        do throws(FileError) {
            let draft = try place.makeOutput()
            let source = draft.link(location.path) ? nil : try OpenFile(open(location.path, O_RDONLY | O_CLOEXEC))
            NIOThreadPool.singleton.submit { _ in self.save(draft, source, attempt) }
        } catch {
            self.saved(error, attempt)
        }
    }

    private func save(_ draft: TransferOutput, _ source: OpenFile?, _ attempt: Int) {
        do throws(FileError) {
            if let source { try draft.copy(source) }
            try draft.publish(overwrites: self.plan.overwrites)
            self.saved(nil, attempt)
        } catch {
            draft.discard()
            self.saved(error, attempt)
        }
    }

    private func saved(_ refusal: FileError?, _ attempt: Int) {
        self.update(attempt) { state in
            state.isSaving = false
            if let refusal {
                state.reason = TransferFailure("file-unusable", "The destination: \(refusal.description).")
            }
            if state.isTaskOver { self.end(&state, error: nil) }
        }
    }

    func completed(_ error: (any Error)?, attempt: Int) {
        // Not under the lock: whoever lets go of a session ends its connections.
        let session = self.state.withLock { $0.attempt == attempt ? $0.session.take() : nil }
        session?.finishTasksAndInvalidate()
        if let data = (error as? URLError)?.downloadTaskResumeData { self.storeResumeData(data, attempt: attempt) }
        self.update(attempt) { state in
            state.isTaskOver = true
            if let task = state.task { state.counts = Counts(task) }
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
}

extension RunningTransfer.Counts {
    init(_ task: URLSessionTask) {
        self.init(
            sent: task.countOfBytesSent, expectedToSend: task.countOfBytesExpectedToSend,
            received: task.countOfBytesReceived, expectedToReceive: task.countOfBytesExpectedToReceive,
            currentURL: task.currentRequest?.url?.absoluteString, response: task.response as? HTTPURLResponse)
    }
}

extension RunningTransfer {
    /// As it is now.
    func snapshot(_ anchor: TimeAnchor) -> Transfer {
        self.state.withLock { state in
            let counts = state.task.map { Counts($0) } ?? state.counts
            let url = self.plan.request.url?.absoluteString ?? ""
            var shown = Transfer(
                id: "\(self.number)", kind: self.plan.kind.rawValue, state: state.stage.rawValue,
                method: self.plan.request.httpMethod ?? "GET", url: url, priority: state.priority.decimal,
                createdAt: anchor.text(self.createdAt), attempt: state.attempt, sentBytes: counts.sent,
                receivedBytes: counts.received, canResume: state.resumeData != nil)
            shown.currentUrl = counts.currentURL == url ? nil : counts.currentURL
            if case .file(_, let path) = self.plan.body { shown.file = path }
            shown.destination = self.plan.destination?.path
            shown.credential = self.plan.credential?.name
            shown.description = state.description
            shown.labels = state.labels.isEmpty ? nil : state.labels
            shown.startedAt = state.startedAt.map { anchor.text($0) }
            shown.endedAt = state.endedAt.map { anchor.text($0) }
            shown.expectedSendBytes = counts.expectedToSend < 0 ? nil : counts.expectedToSend
            shown.expectedReceiveBytes = counts.expectedToReceive < 0 ? nil : counts.expectedToReceive
            shown.writtenBytes = state.written
            shown.expectedWriteBytes = state.expectedToWrite
            shown.resumedAtBytes = state.resumedAt
            shown.progress = Self.progress(state, counts)
            shown.contentBytes = Self.contentLength(state, self.plan)
            shown.response = counts.response.map { TransferResponse($0) }
            shown.error = state.failure?.wireError
            shown.metrics = state.metrics.map { TransferMetrics($0) }
            return shown
        }
    }

    private static func progress(_ state: borrowing State, _ counts: Counts) -> Double? {
        if state.stage == .finished { return 1 }
        func part(_ done: Int64?, _ whole: Int64?) -> Double? {
            guard let done, let whole, whole > 0 else { return nil }
            return (min(1, Double(done) / Double(whole)) * 10_000).rounded() / 10_000
        }
        return part(state.written, state.expectedToWrite)
            ?? (counts.expectedToSend > 0 && counts.response == nil
                ? part(counts.sent, counts.expectedToSend) : part(counts.received, counts.expectedToReceive))
    }

    private static func contentLength(_ state: borrowing State, _ order: TransferPlan) -> Int64? {
        guard state.stage == .finished else { return nil }
        return order.destination == nil ? Int64(state.content.count) : state.written ?? 0
    }
}

extension TransferResponse {
    fileprivate init(_ response: HTTPURLResponse) {
        let headers = response.allHeaderFields.map { name, value in
            let name = "\(name)"
            return Header(name: name, value: name.lowercased() == "set-cookie" ? "(hidden)" : "\(value)")
        }
        self.init(
            status: response.statusCode, headers: headers.sorted { $0.name.lowercased() < $1.name.lowercased() },
            mediaType: response.mimeType)
    }
}

extension TransferMetrics {
    fileprivate init(_ metrics: URLSessionTaskMetrics) {
        self.init(
            durationMs: metrics.taskInterval.duration.wireMilliseconds, redirects: metrics.redirectCount,
            transactions: metrics.transactionMetrics.map { TransferTransaction($0) })
    }
}

extension TransferTransaction {
    fileprivate init(_ metrics: URLSessionTaskTransactionMetrics) {
        func span(_ from: Date?, _ to: Date?) -> Double? {
            guard let from, let to else { return nil }
            return to.timeIntervalSince(from).wireMilliseconds
        }
        func place(_ host: String?, _ port: Int?) -> String? {
            guard let host, let port else { return nil }
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
        let version: String? =
            switch metrics.negotiatedTLSProtocolVersion {
            case .TLSv12?: "TLS 1.2"
            case .TLSv13?: "TLS 1.3"
            default: nil
            }
        self.init(
            method: metrics.request.httpMethod ?? "GET", url: metrics.request.url?.absoluteString ?? "",
            status: (metrics.response as? HTTPURLResponse)?.statusCode, protocol: metrics.networkProtocolName,
            reusedConnection: metrics.isReusedConnection,
            localAddress: place(metrics.localAddress, metrics.localPort),
            remoteAddress: place(metrics.remoteAddress, metrics.remotePort), tlsVersion: version,
            lookupMs: span(metrics.domainLookupStartDate, metrics.domainLookupEndDate),
            connectMs: span(metrics.connectStartDate, metrics.connectEndDate),
            secureMs: span(metrics.secureConnectionStartDate, metrics.secureConnectionEndDate),
            requestMs: span(metrics.requestStartDate, metrics.requestEndDate),
            responseAfterMs: span(metrics.requestStartDate, metrics.responseStartDate),
            responseMs: span(metrics.responseStartDate, metrics.responseEndDate),
            sentBytes: metrics.countOfRequestHeaderBytesSent + metrics.countOfRequestBodyBytesSent,
            receivedBytes: metrics.countOfResponseHeaderBytesReceived + metrics.countOfResponseBodyBytesReceived)
    }
}

extension TimeInterval {
    /// To the microsecond.
    fileprivate var wireMilliseconds: Double { (self * 1_000_000).rounded() / 1000 }
}

/// What is told of a transfer to those who follow events.
extension RunningTransfer {
    /// - Parameter attempt: from 1 up; 0 for one that ended before its first.
    func publish(_ kind: GatewayEvent.Kind, _ attempt: Int, reason: String? = nil, detail: String? = nil) {
        guard let journal = self.registry.eventLog else { return }
        var event = GatewayEvent(kind)
        event.transfer = "\(self.number)"
        event.url = self.plan.request.url?.absoluteString
        event.count = attempt
        event.reason = reason
        event.detail = detail
        journal.publish(event)
    }

    /// It is over: `finished`, `cancelled`, or the code of what went wrong.
    func publishEnd(_ state: borrowing State) {
        if let failure = state.failure {
            self.publish(.transferFailed, state.attempt, reason: failure.code, detail: failure.detail)
        } else {
            self.publish(.transferEnded, state.attempt, reason: state.stage.rawValue)
        }
    }
}

/// Where a transfer is in its life.
enum TransferStage: String, CaseIterable, Sendable {
    /// For its body, which another request brings.
    case waiting
    case suspended
    case running
    case cancelling
    /// Everything is there, and is being put in its place.
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
