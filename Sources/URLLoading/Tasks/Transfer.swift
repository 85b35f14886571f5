import Foundation
import HTTPTransport
import Synchronization
import TLSEngine

/// The life of one data, upload or download task: starts a loader, hands on what that brings, and ends once.
///
/// What is told by loaders happens on the session's event loop, and so does everything here that is not said to be for
/// any thread.
final class Transfer: TaskDriver, @unchecked Sendable {
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
    let result: LoadResult
    private let body: TaskBody
    /// Why the task fails as soon as it is resumed; set before anybody has it.
    var flaw: URLError?
    /// What a download goes on from.
    var resumption: DownloadResumption?

    var stage = Stage.waiting
    var loader: (any Loader)?
    var sink = ContentSink.none
    var record = TaskMetricsRecord()
    /// Whether there is a delegate that could want metrics; known when the task begins.
    private(set) var isMeasured = false
    /// When the whole takes too long; `nil` while that clock stands still.
    private(set) var resourceDeadline: ContinuousClock.Instant?
    private var resourceTimeLeft: Duration
    private var begun = false
    private var isHeld = false
    var parts: PartsSplitting?
    /// The delegate is asked what becomes of the response.
    var awaitsAnswer = false
    /// The end came before the answer.
    var finishWaits = false
    /// Bytes that were taken and for which no others were asked for yet.
    var owedToChannel = 0
    /// The answer was `becomeStream`.
    var becomesStream = false
    var upgradedConnection: UpgradedConnection?
    /// First used on the loop, and only then by the delegate queue.
    private(set) lazy var window = DeliveryWindow()
    /// Whether the delegate of an awaited task may want its content, which is then no faster than that takes it.
    private(set) var tellsAwaitedContent = false
    /// Whether pieces of content may be told as one: what a protocol of the program cut stays cut.
    var joinsPieces = true

    init(_ task: URLSessionTask, of session: URLSession, body: TaskBody, result: LoadResult) {
        self.core = session.core
        self.session = session
        self.task = task
        self.body = body
        self.result = result
        self.resourceTimeLeft = Duration(timeout: session.core.configuration.timeoutIntervalForResource)
    }

    // MARK: From any thread

    func resumed() { self.core.pool.execute { self.reconcile() } }
    func suspended() { self.core.pool.execute { self.reconcile() } }

    func cancelled() {
        self.core.pool.execute { self.failed(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) }
    }

    func priorityChanged(_ priority: Float) {
        self.core.pool.execute { self.loader?.setPriority(priority) }
    }

    /// What the task has, without looking at it as those do who want to hear of a change.
    var response: URLResponse? { self.task.facts.withLock { $0.response } }
    var priority: Float { self.task.facts.withLock { $0.priority } }

    /// For the idle clock of a request: its own, or the session's.
    func timeout(of request: URLRequest) -> Duration {
        Duration(timeout: request.chosenTimeout ?? self.core.configuration.timeoutIntervalForRequest)
    }

    var faces: [DelegateProxy] { self.core.faces(for: self.task) }

    /// The delegates that are told of the response, the content and a file's growth: of an awaited task its own alone, as
    /// FoundationNetworking does it, and of one with a completion handler none.
    var contentFaces: [DelegateProxy] {
        switch self.result {
        case .delegate: self.faces
        case .awaitedData, .lastingFile: self.task.facts.withLock { $0.delegate }.map { [$0] } ?? []
        case .data, .file, .bytes: []
        }
    }

    // MARK: Going on and holding

    /// Does what the task's state asks for now, however often that changed meanwhile.
    private func reconcile() {
        guard self.stage != .ended else { return }
        switch self.task.facts.withLock({ $0.state }) {
        case .running: self.begun ? self.hold(false) : self.begin()
        case .suspended: self.hold(true)
        case .canceling, .completed: break
        }
    }

    private func begin() {
        self.begun = true
        self.isMeasured = self.faces.contains { $0.mayAnswer(.metrics) }
        if case .awaitedData = self.result {
            self.tellsAwaitedContent = self.contentFaces.contains { $0.mayAnswer(.data) }
        }
        self.stage = .loading
        self.startResourceClock()
        if let flaw { return self.failed(flaw) }
        guard let request = self.resumption?.currentRequest ?? self.task.facts.withLock({ $0.currentRequest }) else {
            return self.failed(LoadFailure.error(.badURL, url: nil, text: "The request has no URL."))
        }
        self.load(request)
    }

    private func load(_ request: URLRequest) {
        switch LoaderChoice.loader(for: request, body: self.body, transfer: self) {
        case .success(let loader):
            self.loader = loader
            self.joinsPieces = !(loader is ProtocolLoad)
            loader.start()
        case .failure(let error): self.failed(error)
        }
    }

    private func hold(_ isHeld: Bool) {
        guard self.begun, self.isHeld != isHeld else { return }
        self.isHeld = isHeld
        if isHeld {
            self.resourceTimeLeft = self.resourceDeadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
            self.resourceDeadline = nil
        } else {
            self.startResourceClock()
        }
        self.loader?.hold(isHeld)
    }

    private func startResourceClock() {
        let deadline = ContinuousClock.now + self.resourceTimeLeft
        self.resourceDeadline = deadline
        self.core.resourceClock.watch(until: deadline, for: self.core)
    }

    func tookTooLong() {
        self.failed(LoadFailure.error(.timedOut, url: self.task.currentRequest?.url))
    }

    /// Does `work` with an answer of a delegate, on the loop, if the transfer has not ended meanwhile.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (Transfer, Answer) -> Void)
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
    func become(_ task: URLSessionTask) {
        self.task = task
        self.core.replace(with: task)
    }

    // MARK: Ending

    /// Everything has come.
    func finished() {
        guard self.stage == .loading else { return }
        guard !self.awaitsAnswer else { return self.finishWaits = true }
        self.parts?.ended(self)
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
            self.breakOff(error) { _ in }
        } else {
            self.end(error)
        }
    }

    /// Begins anew, with another request that is not of the same loader.
    func restart(with request: URLRequest) {
        guard self.stage == .loading else { return }
        self.loader?.stop()
        self.loader = nil
        self.requestChanged(request)
        self.load(request)
    }

    func end(_ error: (any Error)?) {
        guard self.stage != .ended else { return }
        self.stop()
        self.tellEnd(error)
    }

    /// Lets nothing more happen.
    func stop() {
        self.stage = .ended
        self.resourceDeadline = nil
        self.loader?.stop()
        self.loader = nil
    }
}

extension Duration {
    /// A timeout in seconds as programs write it; what is no positive number of seconds means a year.
    init(timeout: TimeInterval) {
        let year = 365.0 * 86_400
        self = .seconds(timeout > 0 && timeout < year ? timeout : year)
    }
}

extension Transfer {
    /// What becomes of the load once its response is known; `allow` where nobody is asked.
    func ask(_ response: URLResponse, _ answer: @escaping @Sendable (Transfer, URLSession.ResponseDisposition) -> Void)
    {
        guard let task = self.task as? URLSessionDataTask else { return answer(self, .allow) }
        let session = self.session
        let questions = self.contentFaces.map { face in
            DelegateRequest<URLSession.ResponseDisposition>(
                face: face, method: .response, asyncMethod: .responseAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, didReceive: response) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, didReceive: response) ?? .allow })
        }
        self.core.line.ask(questions, self.awaiting { answer($0, $1 ?? .allow) })
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
        let questions = self.faces.map { face in
            DelegateRequest<Carried<InputStream?>>(
                face: face, method: .newBodyStream, asyncMethod: .newBodyStreamAsync,
                call: { face, once in
                    face.task?.urlSession(session, task: task) { stream in once(Carried(stream)) }
                },
                callAsync: { face in
                    Carried(await face.task?.urlSession(session, needNewBodyStreamForTask: task))
                })
        }
        self.core.line.ask(questions) { answer($0 ?? Carried(nil)) }
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
    func askToKeep(_ proposal: CachedURLResponse, _ answer: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard self.result.isDelegate, let task = self.task as? URLSessionDataTask else { return answer(proposal) }
        let session = self.session
        let questions = self.faces.map { face in
            DelegateRequest<CachedURLResponse?>(
                face: face, method: .cacheProposal, asyncMethod: .cacheProposalAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) })
        }
        self.core.line.ask(questions) { answer($0 ?? proposal) }
    }
}

extension Transfer {
    /// The content of a data task goes to a file from here on.
    func becomeDownload(_ response: URLResponse) {
        guard let old = self.task as? URLSessionDataTask else { return }
        let facts = old.facts.withLock { $0 }
        let new = URLSessionDownloadTask(facts, of: self.session)
        new.use(self)
        self.become(new)
        // The new task has it.
        old.facts.withLock { $0.delegate = nil }
        let session = self.session
        self.core.line.tell(self.faces, .becameDownload) { face in
            face.data?.urlSession(session, dataTask: old, didBecome: new)
        }
        self.beginFile(response)
        if self.finishWaits { self.finished() }
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
        if !self.awaitsAnswer { self.settleUpgrade() }
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

    func noteLocal(_ response: URLResponse, bytes: Int) {
        let now = ContinuousClock.now
        guard let request = self.task.currentRequest else { return }
        self.note(
            TransactionRecord(
                request: request, response: response,
                source: .other(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(bytes)))
    }
}

extension Transfer {
    /// The last messages, in their order: metrics, then the end. On the loop, once.
    func tellEnd(_ error: (any Error)?) {
        let (task, session, core, result) = (self.task, self.session, self.core, self.result)
        let record = self.record
        let endedAt = ContinuousClock.now
        let sink = self.sink
        self.sink = .none
        if case .awaitedData(let handler) = result, !self.tellsAwaitedContent {
            // Nobody but a delegate could want these on its queue.
            self.complete(task, error)
            handler(error == nil ? sink.data : nil, self.response, error)
            self.tellMetrics(record, endedAt)
            return core.line.add {
                task.facts.withLock { $0.delegate = nil }
                core.ended(task, of: session)
                task.use(nil)
            }
        }
        core.line.add {
            // Behind `cancel()` and all that it could be asked in: `completed` is what its handlers see.
            if error == nil { self.tellFile(sink) }
            // Its delegate has had the file, and hears of the end when that is gone.
            if result.isDelegate { sink.discard() }
            self.complete(task, error)
            let faces = self.faces
            for face in faces where face.mayAnswer(.metrics) {
                let metrics = record.metrics(completedAt: endedAt)
                if face.tell(.metrics, { face.task?.urlSession(session, task: task, didFinishCollecting: metrics) }) {
                    break
                }
            }
            // The task is over: its delegate hears of it, and is let go.
            task.facts.withLock { $0.delegate = nil }
            self.tellResult(result, sink, error, faces)
            if !result.isDelegate { sink.discard() }
            core.ended(task, of: session)
            task.use(nil)
        }
    }

    private func tellMetrics(_ record: TaskMetricsRecord, _ endedAt: ContinuousClock.Instant) {
        let (task, session) = (self.task, self.session)
        self.core.line.tell(self.faces, .metrics) { face in
            let metrics = record.metrics(completedAt: endedAt)
            face.task?.urlSession(session, task: task, didFinishCollecting: metrics)
        }
    }

    private func complete(_ task: URLSessionTask, _ error: (any Error)?) {
        let isUnseen = task.changeUnseen {
            $0.error = error
            $0.state = .completed
        }
        guard !isUnseen else { return }
        task.change(\.error) { $0.error = error }
        task.change(\.state) { $0.state = .completed }
        if error == nil { task.facts.withLock { $0.progress }?.finish() }
    }

    private func tellFile(_ sink: ContentSink) {
        guard self.result.isDelegate, case .file(let file) = sink, let task = self.task as? URLSessionDownloadTask
        else { return }
        let session = self.session
        for face in self.faces where face.mayAnswer(.finishedDownload) {
            let told = face.tell(.finishedDownload) {
                face.download?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
            }
            if told { return }
        }
    }

    private func tellResult(
        _ result: LoadResult, _ sink: ContentSink, _ error: (any Error)?, _ faces: [DelegateProxy]
    ) {
        let response = self.response
        switch result {
        case .delegate:
            let (task, session) = (self.task, self.session)
            for face in faces where face.mayAnswer(.completion) {
                if face.tell(.completion, { face.task?.urlSession(session, task: task, didCompleteWithError: error) }) {
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
