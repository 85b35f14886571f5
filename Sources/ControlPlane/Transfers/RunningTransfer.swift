import Foundation
import GatewayCore
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
    let order: TransferOrder
    let createdAt: MonotonicInstant
    let host: TransferShelf
    let state: Mutex<State>

    init(_ order: TransferOrder, number: UInt64, on host: TransferShelf) {
        self.order = order
        self.number = number
        self.host = host
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
        let session = self.host.session(for: self.order)
        let task = self.task(session, request, resumeData)
        let attempt = self.state.withLock { state in
            self.host.memory.release(state.content.count)
            state.attempt += 1
            state.stage = .running
            state.task = task
            state.session = self.order.isPlain ? nil : session
            state.content = Data()
            state.counts = Counts()
            (state.written, state.expectedToWrite, state.resumedAt, state.resumeData) = (nil, nil, nil, nil)
            (state.reason, state.failure, state.metrics, state.endedAt) = (nil, nil, nil, nil)
            (state.isSaving, state.isTaskOver) = (false, false)
            state.startedAt = self.host.now
            task.priority = state.priority
            return state.attempt
        }
        task.delegate = TransferDelegate(self, attempt: attempt, pipe: pipe, targets: self.host.targets)
        self.startTimer(attempt)
        self.tell(.transferStarted, attempt)
        task.resume()
    }

    /// With what proves who asks.
    private func request(bodyLength: Int64?) throws(ControlProblem) -> URLRequest {
        var request = self.order.request
        if let bodyLength { request.setValue("\(bodyLength)", forHTTPHeaderField: "Content-Length") }
        if let credential = self.order.credential, case .token(let token) = credential.secret {
            do throws(PlanFault) {
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
        if self.order.destination != nil {
            if case .data(let data) = self.order.body { request.httpBody = data }
            return session.downloadTask(with: request)
        }
        switch self.order.body {
        case .none: return session.dataTask(with: request)
        case .data(let data): return session.uploadTask(with: request, from: data)
        case .file(let file, _):
            return session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file.path, isDirectory: false))
        case .streamed: return session.uploadTask(withStreamedRequest: request)
        }
    }

    private func startTimer(_ attempt: Int) {
        let timeout = self.order.timeout
        let timer = Task { [weak self] in
            do {
                try await Task.sleep(for: timeout)
            } catch {
                return
            }
            self?.give(up: attempt, TransferFailure("timed-out", "It took longer than timeoutMs.", isRetryable: true))
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
            state.endedAt = self.host.now
            self.tellEnd(state)
            return nil
        }
        guard keepsResumeData, let download = task as? URLSessionDownloadTask else {
            task?.cancel()
            return
        }
        let attempt = self.state.withLock { $0.attempt }
        download.cancel { self.keep($0, attempt: attempt) }
    }

    /// Ends the attempt for a reason of our own.
    func give(up attempt: Int, _ reason: TransferFailure) {
        let task = self.state.withLock { state -> URLSessionTask? in
            guard state.attempt == attempt, !state.stage.isOver, !state.isSaving else { return nil }
            state.reason = state.reason ?? reason
            return state.task
        }
        guard reason.isRetryable, let download = task as? URLSessionDownloadTask else {
            task?.cancel()
            return
        }
        download.cancel { self.keep($0, attempt: attempt) }
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

    /// What a later attempt can go on from; of no use to anybody where the transfer is forgotten, or went on without it.
    func keep(_ resumeData: Data?, attempt: Int) {
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
            self.host.memory.release(state.content.count + self.order.heldBytes)
            state.content = Data()
            state.timer?.cancel()
            return state.resumeData.take()
        }
        if let resumeData { Self.remove(resumeData) }
    }
}
