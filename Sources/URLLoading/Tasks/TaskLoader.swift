import Foundation
import HTTPTransport
import Synchronization
import TLSEngine

/// The life of one data, upload or download task: starts a loader, hands on what that brings, and ends once.
///
/// What is told by loaders happens on the session's event loop, and so does everything here that is not said to be for
/// any thread.
final class TaskLoader: TaskDriver, @unchecked Sendable {
    enum Stage {
        case waiting
        case loading
        /// Everything is told, or on its way to the delegate queue.
        case ended
    }

    let core: SessionCore
    let session: URLSession
    /// Another one once a data task has become a download.
    private(set) var task: URLSessionTask
    let consumer: LoadConsumer
    private let body: TaskBody
    /// Why the task fails as soon as it is resumed; set before anybody has it.
    var initialError: URLError?
    /// What a download goes on from.
    var resumption: DownloadResumption?

    var stage = Stage.waiting
    var currentLoad: (any RequestLoad)?
    var sink = ContentSink.none
    var record = TaskMetricsRecord()
    /// Whether there is a delegate that could want metrics; known when the task begins.
    private(set) var isMeasured = false
    /// When the whole takes too long; `nil` while that clock stands still.
    private(set) var resourceDeadline: ContinuousClock.Instant?
    private var resourceTimeLeft: Duration
    private var hasBegun = false
    private var isHeld = false
    var multipart: MultipartSplitter?
    /// The delegate is asked what becomes of the response.
    var awaitsDisposition = false
    /// The end came before the answer.
    var isFinishPending = false
    /// Bytes that were taken and for which no others were asked for yet.
    var channelCredit = 0
    /// The answer was `becomeStream`.
    var becomesStream = false
    var upgradedConnection: UpgradedConnection?
    /// First used on the loop, and only then by the delegate queue.
    private(set) lazy var window = DeliveryWindow()
    /// Whether the delegate of an awaited task may want its content, which is then no faster than that takes it.
    private(set) var delegateReceivesContent = false
    /// Whether pieces of content may be told as one: what a protocol of the program cut stays cut.
    var coalescesContent = true

    init(_ task: URLSessionTask, of session: URLSession, body: TaskBody, result: LoadConsumer) {
        self.core = session.core
        self.session = session
        self.task = task
        self.body = body
        self.consumer = result
        self.resourceTimeLeft = Duration(timeout: session.core.configuration.timeoutIntervalForResource)
    }

    // MARK: From any thread

    func resumed() { self.core.pool.execute { self.reconcile() } }
    func suspended() { self.core.pool.execute { self.reconcile() } }

    func cancelled() {
        self.core.pool.execute { self.failed(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) }
    }

    func priorityChanged(_ priority: Float) {
        self.core.pool.execute { self.currentLoad?.setPriority(priority) }
    }

    /// What the task has, without looking at it as those do who want to hear of a change.
    var response: URLResponse? { self.task.metadata.withLock { $0.response } }
    var priority: Float { self.task.metadata.withLock { $0.priority } }

    /// For the idle clock of a request: its own, or the session's.
    func timeout(of request: URLRequest) -> Duration {
        Duration(timeout: request.chosenTimeout ?? self.core.configuration.timeoutIntervalForRequest)
    }

    var delegates: [DelegateProxy] { self.core.delegates(for: self.task) }

    /// The delegates that are told of the response, the content and a file's growth: of an awaited task its own alone, as
    /// FoundationNetworking does it, and of one with a completion handler none.
    var contentDelegates: [DelegateProxy] {
        switch self.consumer {
        case .delegate: self.delegates
        case .awaitedData, .lastingFile: self.task.metadata.withLock { $0.delegate }.map { [$0] } ?? []
        case .data, .file, .bytes: []
        }
    }

    // MARK: Going on and holding

    /// Does what the task's state asks for now, however often that changed meanwhile.
    private func reconcile() {
        guard self.stage != .ended else { return }
        switch self.task.metadata.withLock({ $0.state }) {
        case .running: self.hasBegun ? self.hold(false) : self.begin()
        case .suspended: self.hold(true)
        case .canceling, .completed: break
        }
    }

    private func begin() {
        self.hasBegun = true
        self.isMeasured = self.delegates.contains { $0.mayImplement(.metrics) }
        if case .awaitedData = self.consumer {
            self.delegateReceivesContent = self.contentDelegates.contains { $0.mayImplement(.data) }
        }
        self.stage = .loading
        self.startResourceTimer()
        if let initialError { return self.failed(initialError) }
        guard let request = self.resumption?.currentRequest ?? self.task.metadata.withLock({ $0.currentRequest }) else {
            return self.failed(LoadFailure.error(.badURL, url: nil, text: "The request has no URL."))
        }
        self.load(request)
    }

    private func load(_ request: URLRequest) {
        switch RequestLoadFactory.load(for: request, body: self.body, transfer: self) {
        case .success(let loader):
            self.currentLoad = loader
            self.coalescesContent = !(loader is ProtocolLoad)
            loader.start()
        case .failure(let error): self.failed(error)
        }
    }

    private func hold(_ isHeld: Bool) {
        guard self.hasBegun, self.isHeld != isHeld else { return }
        self.isHeld = isHeld
        if isHeld {
            self.resourceTimeLeft = self.resourceDeadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
            self.resourceDeadline = nil
        } else {
            self.startResourceTimer()
        }
        self.currentLoad?.hold(isHeld)
    }

    private func startResourceTimer() {
        let deadline = ContinuousClock.now + self.resourceTimeLeft
        self.resourceDeadline = deadline
        self.core.resourceTimer.arm(until: deadline, for: self.core)
    }

    func resourceTimeoutExpired() {
        self.failed(LoadFailure.error(.timedOut, url: self.task.currentRequest?.url))
    }

    /// Does `work` with an answer of a delegate, on the loop, if the transfer has not ended meanwhile.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (TaskLoader, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        { answer in
            self.core.pool.execute {
                guard self.stage != .ended else { return }
                work(self, answer)
            }
        }
    }

    // MARK: Becoming something else

    /// Goes on as another task with the same number.
    func replaceTask(with task: URLSessionTask) {
        self.task = task
        self.core.replace(with: task)
    }

    // MARK: Ending

    /// Everything has come.
    func finished() {
        guard self.stage == .loading else { return }
        guard !self.awaitsDisposition else { return self.isFinishPending = true }
        self.multipart?.ended(self)
        self.sink.finish { error in
            self.core.pool.execute {
                self.end(error.map { LoadFailure.error($0.code, url: self.task.currentRequest?.url, cause: $0.cause) })
            }
        }
    }

    /// Nothing more will come. What a download has is kept for another attempt, if the network was to blame.
    func failed(_ error: any Error) {
        guard self.stage != .ended else { return }
        if let error = error as? URLError, error.code != .cancelled, case .file = self.sink {
            self.failKeepingResumeData(error) { _ in }
        } else {
            self.end(error)
        }
    }

    /// Begins anew, with another request that is not of the same loader.
    func restart(with request: URLRequest) {
        guard self.stage == .loading else { return }
        self.currentLoad?.stop()
        self.currentLoad = nil
        self.requestChanged(request)
        self.load(request)
    }

    func end(_ error: (any Error)?) {
        guard self.stage != .ended else { return }
        self.stop()
        self.notifyEnd(error)
    }

    /// Lets nothing more happen.
    func stop() {
        self.stage = .ended
        self.resourceDeadline = nil
        self.currentLoad?.stop()
        self.currentLoad = nil
    }
}

extension Duration {
    /// A timeout in seconds as programs write it; what is no positive number of seconds means a year.
    init(timeout: TimeInterval) {
        let year = 365.0 * 86_400
        self = .seconds(timeout > 0 && timeout < year ? timeout : year)
    }
}

extension TaskLoader {
    /// What becomes of the load once its response is known; `allow` where nobody is asked.
    func askDisposition(_ response: URLResponse, _ answer: @escaping @Sendable (TaskLoader, URLSession.ResponseDisposition) -> Void)
    {
        guard let task = self.task as? URLSessionDataTask else { return answer(self, .allow) }
        let session = self.session
        let questions = self.contentDelegates.map { face in
            DelegateRequest<URLSession.ResponseDisposition>(
                delegate: face, method: .response, asyncMethod: .responseAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, didReceive: response) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, didReceive: response) ?? .allow })
        }
        self.core.delegateQueue.ask(questions, self.awaiting { answer($0, $1 ?? .allow) })
    }

    /// Whether a redirect is followed, and by which request; it is where nobody is asked.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.core.askRedirect(response, to: request, about: self.task, of: self.session, answer)
    }

    /// A body that can be read from its beginning; `nil` where nobody has one.
    func askBodyStream(_ answer: @escaping @Sendable (Carried<InputStream?>) -> Void) {
        let (task, session) = (self.task, self.session)
        let questions = self.delegates.map { face in
            DelegateRequest<Carried<InputStream?>>(
                delegate: face, method: .newBodyStream, asyncMethod: .newBodyStreamAsync,
                call: { face, once in
                    face.task?.urlSession(session, task: task) { stream in once(Carried(stream)) }
                },
                callAsync: { face in
                    Carried(await face.task?.urlSession(session, needNewBodyStreamForTask: task))
                })
        }
        self.core.delegateQueue.ask(questions) { answer($0 ?? Carried(nil)) }
    }

    func askChallenge(_ challenge: URLAuthenticationChallenge, _ answer: @escaping @Sendable (ChallengeAnswer) -> Void)
    {
        self.core.ask(challenge, about: self.task, of: self.session, answer)
    }

    func askTrust(
        _ request: VerificationRequest, at url: URL,
        _ answer: @escaping @Sendable (VerificationDecision, URLError?) -> Void
    ) {
        self.core.askTrust(request, at: url, for: self.task, of: self.session, answer)
    }

    func askIdentity(
        _ issuers: [[UInt8]], at url: URL,
        _ answer: @escaping @Sendable (TLSIdentity?, URLError?) -> Void
    ) {
        self.core.askIdentity(issuers, at: url, for: self.task, of: self.session, answer)
    }

    /// Whether a response may be kept, and how; only who hears of its content is asked.
    func askToCache(_ proposal: CachedURLResponse, _ answer: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard self.consumer.isDelegate, let task = self.task as? URLSessionDataTask else { return answer(proposal) }
        let session = self.session
        let questions = self.delegates.map { face in
            DelegateRequest<CachedURLResponse?>(
                delegate: face, method: .cacheProposal, asyncMethod: .cacheProposalAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) })
        }
        self.core.delegateQueue.ask(questions) { answer($0 ?? proposal) }
    }
}

extension TaskLoader {
    /// The content of a data task goes to a file from here on.
    func becomeDownload(_ response: URLResponse) {
        guard let old = self.task as? URLSessionDataTask else { return }
        let facts = old.metadata.withLock { $0 }
        let new = URLSessionDownloadTask(facts, of: self.session)
        new.setDriver(self)
        self.replaceTask(with: new)
        // The new task has it.
        old.metadata.withLock { $0.delegate = nil }
        let session = self.session
        self.core.delegateQueue.notify(self.delegates, .becameDownload) { face in
            face.data?.urlSession(session, dataTask: old, didBecome: new)
        }
        self.startFile(response)
        if self.isFinishPending { self.finished() }
    }

    /// The connection becomes a stream task's, once it has left HTTP.
    func becomeStream() {
        self.becomesStream = true
        guard (self.task.response as? HTTPURLResponse)?.statusCode != 101 else { return self.settleUpgrade() }
        self.failed(
            LoadFailure.error(
                .unsupportedURL, url: self.task.currentRequest?.url,
                text: "Only a connection that the server upgraded (101) can become a stream."))
    }

    /// The server switched protocols.
    func upgraded(_ connection: UpgradedConnection) {
        guard self.stage == .loading else { return connection.close() }
        self.upgradedConnection = connection
        if !self.awaitsDisposition { self.settleUpgrade() }
    }

    /// Gives the connection to whom the answer names, once both are there.
    func settleUpgrade() {
        guard let connection = self.upgradedConnection else { return }
        self.upgradedConnection = nil
        guard self.becomesStream, let old = self.task as? URLSessionDataTask else {
            connection.close()
            return self.finished()
        }
        self.stop()
        self.session.becomeStream(old, connection)
    }

    func recordLocalTransaction(_ response: URLResponse, bytes: Int) {
        let now = ContinuousClock.now
        guard let request = self.task.currentRequest else { return }
        self.recordTransaction(
            TransactionRecord(
                request: request, response: response,
                source: .other(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(bytes)))
    }
}

extension TaskLoader {
    /// The last messages, in their order: metrics, then the end. On the loop, once.
    func notifyEnd(_ error: (any Error)?) {
        let (task, session, core, result) = (self.task, self.session, self.core, self.consumer)
        let record = self.record
        let endedAt = ContinuousClock.now
        let sink = self.sink
        self.sink = .none
        if case .awaitedData(let handler) = result, !self.delegateReceivesContent {
            // Nobody but a delegate could want these on its queue.
            self.complete(task, error)
            handler(error == nil ? sink.data : nil, self.response, error)
            self.notifyMetrics(record, endedAt)
            return core.delegateQueue.add {
                task.metadata.withLock { $0.delegate = nil }
                core.taskEnded(task, of: session)
                task.setDriver(nil)
            }
        }
        core.delegateQueue.add {
            // Behind `cancel()` and all that it could be asked in: `completed` is what its handlers see.
            if error == nil { self.notifyDownloadFinished(sink) }
            // Its delegate has had the file, and hears of the end when that is gone.
            if result.isDelegate { sink.discard() }
            self.complete(task, error)
            let faces = self.delegates
            for face in faces where face.mayImplement(.metrics) {
                let metrics = record.metrics(completedAt: endedAt)
                if face.notify(.metrics, { face.task?.urlSession(session, task: task, didFinishCollecting: metrics) }) {
                    break
                }
            }
            // The task is over: its delegate hears of it, and is let go.
            task.metadata.withLock { $0.delegate = nil }
            self.deliverResult(result, sink, error, faces)
            if !result.isDelegate { sink.discard() }
            core.taskEnded(task, of: session)
            task.setDriver(nil)
        }
    }

    private func notifyMetrics(_ record: TaskMetricsRecord, _ endedAt: ContinuousClock.Instant) {
        let (task, session) = (self.task, self.session)
        self.core.delegateQueue.notify(self.delegates, .metrics) { face in
            let metrics = record.metrics(completedAt: endedAt)
            face.task?.urlSession(session, task: task, didFinishCollecting: metrics)
        }
    }

    private func complete(_ task: URLSessionTask, _ error: (any Error)?) {
        let isUnseen = task.mutateIfUnobserved {
            $0.error = error
            $0.state = .completed
        }
        guard !isUnseen else { return }
        task.mutate(\.error) { $0.error = error }
        task.mutate(\.state) { $0.state = .completed }
        if error == nil { task.metadata.withLock { $0.progress }?.finish() }
    }

    private func notifyDownloadFinished(_ sink: ContentSink) {
        guard self.consumer.isDelegate, case .file(let file) = sink, let task = self.task as? URLSessionDownloadTask
        else { return }
        let session = self.session
        for face in self.delegates where face.mayImplement(.finishedDownload) {
            let told = face.notify(.finishedDownload) {
                face.download?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
            }
            if told { return }
        }
    }

    private func deliverResult(
        _ result: LoadConsumer, _ sink: ContentSink, _ error: (any Error)?, _ faces: [DelegateProxy]
    ) {
        let response = self.response
        switch result {
        case .delegate:
            let (task, session) = (self.task, self.session)
            for face in faces where face.mayImplement(.completion) {
                if face.notify(.completion, { face.task?.urlSession(session, task: task, didCompleteWithError: error) }) {
                    return
                }
            }
        // Beside a failure there is the response that had come, but none of its content.
        case .data(let handler), .awaitedData(let handler): handler(error == nil ? sink.data : nil, response, error)
        case .file(let handler): handler(error == nil ? sink.fileURL : nil, response, error)
        case .lastingFile(let handler):
            if error == nil { sink.keep() }
            handler(error == nil ? sink.fileURL : nil, response, error)
        case .bytes(let channel, let answer):
            if let error { answer(.failure(error)) }
            channel.finish(error)
        }
    }
}

extension ContentSink {
    /// Empty rather than missing: a response without content was a success.
    var data: Data {
        if case .memory(let data) = self { data } else { Data() }
    }

    var fileURL: URL? {
        if case .file(let file) = self { file.url } else { nil }
    }

    /// The file stays where it is.
    func keep() {
        if case .file(let file) = self { file.keep() }
    }

    /// Takes the file away, unless somebody moved it or it is to stay.
    func discard() {
        if case .file(let file) = self { file.discard() }
    }
}
