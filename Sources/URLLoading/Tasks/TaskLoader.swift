import Foundation
import HTTPTransport
import StreamTransport
import Synchronization
import TLSEngine

/// Drives one data, upload or download task: runs a `RequestLoad`, passes its response and content to the consumer, and
/// ends the task once.
///
/// Confined to the session's executor, except for members that say otherwise.
final class TaskLoader: TaskDriver, @unchecked Sendable {  // Its vars are used on the session's executor only.
    let core: SessionCore
    let session: URLSession
    /// Replaced when a data task becomes a download task.
    private(set) var task: URLSessionTask
    let consumer: LoadConsumer
    private var body: TaskBody
    /// For a download that was created from resume data.
    let resumption: DownloadResumption?
    /// For an upload that was created from resume data.
    let uploadResumption: UploadResumption?
    /// Fails the task when it is resumed.
    private let initialError: URLError?

    var transfer: TransferMachine<DetachedConnection>
    var currentLoad: (any RequestLoad)?
    private var credit = PullCredit()
    var sink = ContentSink.none
    private(set) var record = TaskMetricsRecord()
    /// Whether a delegate may implement the metrics method; set when the task begins.
    private(set) var isMeasured = false
    /// Whether the delegate knows that the task waited for connectivity.
    private var hasWaited = false
    /// Whether a delegate was notified of anything, which may still be on the delegate queue.
    private var hasNotified = false
    /// For a `multipart/x-mixed-replace` response.
    var multipart: MultipartSplitter?
    /// Bytes that the `ByteChannel` accepted and that were not yet credited to the load.
    var channelCredit = 0
    /// First used on the loop, and only then by the delegate queue.
    private(set) lazy var window = DeliveryWindow()
    /// For an awaited task: whether its delegate may implement `didReceive data`; the delegate then paces the content.
    private(set) var delegateReceivesContent = false
    /// Whether pieces of content may be joined. The pieces of a program's `URLProtocol` are delivered as they are.
    private(set) var coalescesContent = true

    init(
        _ task: URLSessionTask, of session: URLSession, body: TaskBody, consumer: LoadConsumer,
        resumption: DownloadResumption? = nil, uploadResumption: UploadResumption? = nil, initialError: URLError? = nil
    ) {
        self.core = session.core
        self.session = session
        self.task = task
        self.body = body
        self.consumer = consumer
        self.resumption = resumption
        self.uploadResumption = uploadResumption
        self.initialError = initialError
        self.transfer = TransferMachine(
            timeout: Duration(timeout: session.core.requestSettings.resourceTimeout))
    }

    // MARK: Events of the task, from any thread

    func resumed() { self.core.executor.execute { self.applyTaskState() } }
    func suspended() { self.core.executor.execute { self.applyTaskState() } }

    func cancelled() {
        self.core.executor.execute {
            let load = self.transfer.hasEnded ? nil : self.currentLoad as? HTTPLoad
            self.failed(LoadFailure.error(.cancelled, url: self.task.latestRequest?.url))
            // Without resume data it cannot be continued.
            load?.deleteUpload()
        }
    }

    func priorityChanged(_ priority: Float) {
        self.core.executor.execute { self.currentLoad?.setPriority(priority) }
    }

    // These read the task's metadata directly: reading its properties would register an observation.
    var response: URLResponse? { self.task.metadata.withLock { $0.response } }
    var priority: Float { self.task.metadata.withLock { $0.priority } }

    /// The idle timeout of `request`: its own, or the session's.
    func timeout(of request: URLRequest) -> Duration { self.core.requestSettings.timeout(of: request) }

    // MARK: Starting and suspending

    /// Idempotent: several changes of the task's state may arrive as one.
    private func applyTaskState() {
        switch self.task.metadata.withLock({ $0.state }) {
        case .running: self.resume()
        case .suspended:
            self.transfer.suspended(now: .now)
            self.currentLoad?.demandChanged()
        case .canceling, .completed: break
        }
    }

    private func resume() {
        switch self.transfer.resumed(now: .now) {
        case .ignore: break
        case .begin(let deadline):
            self.core.resourceTimer.arm(until: deadline, for: self.core)
            self.begin()
        case .proceed(let deadline):
            self.core.resourceTimer.arm(until: deadline, for: self.core)
            self.currentLoad?.demandChanged()
        }
    }

    private func begin() {
        self.isMeasured = self.delegates.contains { $0.mayImplement(.metrics) }
        if case .awaitedData = self.consumer {
            self.delegateReceivesContent = self.contentDelegates.contains { $0.mayImplement(.data) }
        }
        if let initialError { return self.failed(initialError) }
        let resumed = self.resumption?.currentRequest ?? self.uploadResumption?.data.currentRequest
        guard let request = resumed ?? self.task.latestRequest else {
            return self.failed(LoadFailure.error(.badURL, url: nil, text: "The request has no URL."))
        }
        self.load(request)
    }

    private func load(_ request: URLRequest, mayReadLocally: Bool = true) {
        switch RequestLoadFactory.load(
            for: request, body: self.body, loader: self, mayReadLocally: mayReadLocally)
        {
        case .success(let load): self.start(load)
        case .failure(let error): self.failed(error)
        }
    }

    private func start(_ load: any RequestLoad) {
        self.currentLoad = load
        self.coalescesContent = !(load is ProtocolLoad)
        load.start()
    }

    /// Continues with a protocol of the program that accepts `request`, the target of a redirect.
    /// - Returns: `false` if there is none; the current load then continues.
    func restartByProtocol(with request: URLRequest, body: TaskBody) -> Bool {
        guard self.transfer.isActive, !ProtocolLoad.classes(for: self.core).isEmpty else { return false }
        // The protocols are asked about the task.
        self.requestChanged(request)
        guard let load = ProtocolLoad.load(for: request, body: body, loader: self) else { return false }
        self.body = body
        self.stopLoad()
        self.start(load)
        return true
    }

    /// Restarts the task with another request, such as one that a `URLProtocol` redirected to: with its own body, or that
    /// of an upload, unless the method changes.
    /// - Parameter redirectedByServer: the URL may be the server's choice, which must not make the program read its files.
    func restart(with request: URLRequest, redirectedByServer: Bool = false) {
        guard self.transfer.isActive else { return }
        let keepsBody = self.task is URLSessionUploadTask && request.httpMethod == self.task.latestRequest?.httpMethod
        if !keepsBody || request.body != .none { self.body = TaskBody(request) }
        self.currentLoad?.stop()
        self.currentLoad = nil
        self.requestChanged(request)
        self.load(request, mayReadLocally: !redirectedByServer)
    }

    fileprivate func resourceTimeoutExpired() {
        self.failed(LoadFailure.error(.timedOut, url: self.task.latestRequest?.url))
    }

    // MARK: Demand

    /// Bytes of content that the load may deliver now; `Int.max` is unlimited. 0 while the task is suspended.
    var demand: Int { self.demandUnlessSuspended ?? 0 }
    var demandUnlessSuspended: Int? { self.transfer.isSuspended ? nil : max(0, self.credit.bytes) }

    /// Allows `count` more bytes of content to be delivered, `Int.max` for all.
    func pull(_ count: Int) {
        self.credit.add(count)
        self.currentLoad?.demandChanged()
    }

    /// `count` bytes were delivered. Pieces are not cut, so slightly more than the demand may be delivered.
    func spend(_ count: Int) { self.credit.spend(count) }

    // MARK: Metrics

    func countRedirect() { self.record.countRedirect() }

    /// - Parameter transaction: evaluated only if a delegate may implement the metrics method.
    func recordTransaction(_ transaction: @autoclosure () -> TransactionRecord) {
        if self.isMeasured { self.record.add(transaction()) }
    }

    /// Records a transaction that used no network and has just completed.
    func recordLocalTransaction(_ response: URLResponse, bytes: Int) {
        let now = ContinuousInstant.now
        guard let request = self.task.latestRequest else { return }
        self.recordTransaction(
            TransactionRecord(
                request: request, response: response,
                source: .other(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(bytes)))
    }

    // MARK: Asking the delegate

    var delegates: [DelegateProxy] { self.core.delegates(for: self.task) }

    /// The delegates that receive the response, the content and a file's progress: for an awaited task only its own, as
    /// in FoundationNetworking; for a task with a completion handler none.
    var contentDelegates: [DelegateProxy] {
        switch self.consumer {
        case .delegate: self.delegates
        case .awaitedData, .lastingFile: self.task.metadata.withLock { $0.delegate }.map { [$0] } ?? []
        case .data, .file, .bytes: []
        }
    }

    /// Calls the delegate on its queue, in order. The result of an awaited task waits for the call.
    func notifyDelegate(_ method: DelegateMethod, _ call: @escaping @Sendable (DelegateProxy) -> Void) {
        if self.core.delegateQueue.notify(self.delegates, of: self.task, method, call) { self.hasNotified = true }
    }

    /// Wraps `work` so that it runs on the loop, and only if the task has not ended.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (TaskLoader, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        { answer in
            self.core.executor.execute {
                guard !self.transfer.hasEnded else { return }
                work(self, answer)
            }
        }
    }

    /// - Parameter answer: gets the request to follow, or `nil` to stop here; `request` if no delegate answers.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.core.askRedirect(response, to: request, about: self.task, of: self.session, answer)
    }

    /// This machine has no way to the server. The delegate is notified once.
    func waitingForConnectivity() {
        guard !self.hasWaited else { return }
        self.hasWaited = true
        let (task, session) = (self.task, self.session)
        self.notifyDelegate(.waiting) { delegate in
            delegate.task?.urlSession(session, taskIsWaitingForConnectivity: task)
        }
    }

    func askChallenge(_ challenge: URLAuthenticationChallenge, _ answer: @escaping @Sendable (ChallengeAnswer) -> Void)
    {
        self.core.ask(challenge, about: self.task, of: self.session, answer)
    }

    /// - Parameter answer: gets an unopened body stream; `nil` if no delegate has one.
    func askBodyStream(_ answer: @escaping @Sendable (UncheckedTransfer<InputStream?>) -> Void) {
        let (task, session) = (self.task, self.session)
        let request = DelegateRequest<UncheckedTransfer<InputStream?>>(
            method: .newBodyStream, asyncMethod: .newBodyStreamAsync,
            call: { delegate, handler in
                delegate.task?.urlSession(session, task: task) { stream in handler(UncheckedTransfer(stream)) }
            },
            callAsync: { UncheckedTransfer(await $0.task?.urlSession(session, needNewBodyStreamForTask: task)) })
        self.core.delegateQueue.ask(self.delegates, about: self.task, request) { answer($0 ?? UncheckedTransfer(nil)) }
    }

    /// - Parameter answer: gets the response to cache, or `nil`; `proposal` unless the content goes to a delegate that
    ///   decides otherwise.
    func askToCache(_ proposal: CachedURLResponse, _ answer: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard self.consumer.isDelegate, let task = self.task as? URLSessionDataTask else { return answer(proposal) }
        let session = self.session
        let request = DelegateRequest<CachedURLResponse?>(
            method: .cacheProposal, asyncMethod: .cacheProposalAsync,
            call: { delegate, handler in
                delegate.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) { handler($0) }
            },
            callAsync: { await $0.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) })
        self.core.delegateQueue.ask(self.delegates, about: self.task, request) { answer($0 ?? proposal) }
    }

    // MARK: Becoming another task

    /// Continues as a download task with the same identifier.
    func becomeDownload(_ response: URLResponse) {
        guard let old = self.task as? URLSessionDataTask else { return }
        let new = URLSessionDownloadTask(old.metadata.withLock { $0.ofSuccessor }, of: self.session)
        new.setDriver(self)
        self.task = new
        let (session, delegates) = (self.session, self.delegates)
        self.core.delegateQueue.add(of: new) {
            old.becomes(new)
            delegates.notifyFirst(.becameDownload) { $0.data?.urlSession(session, dataTask: old, didBecome: new) }
        }
        self.core.replace(with: new)
        if self.transfer.isActive { self.startFile(response) }
    }

    /// Whether the delegate may answer `becomeStream`, or has done so.
    var mayBecomeStream: Bool {
        switch self.transfer.phase {
        case .deciding(nil), .becomingStream: self.consumer.isDelegate
        case .waiting, .loading, .deciding, .finishing, .ended: false
        }
    }

    /// The server answered 101 Switching Protocols, or the task becomes a stream.
    func detached(_ connection: DetachedConnection) {
        switch self.transfer.detached(connection) {
        case .keep: break
        case .close(let connection): connection.close()
        case .closeAndFinish(let connection):
            connection.close()
            self.finish()
        case .becomeStream(let connection): self.becomeStream(connection)
        }
    }

    func becomeStream(_ connection: DetachedConnection) {
        self.stopLoad()
        guard let old = self.task as? URLSessionDataTask else { return connection.close() }
        self.session.becomeStream(old, connection)
    }

    // MARK: Ending

    /// The load has delivered the whole content.
    func finished() {
        if self.transfer.loadFinished() { self.finish() }
    }

    /// Writes the last content, then ends the task.
    func finish() {
        // Each part's response waits for its disposition, after which this is called again.
        guard self.multipart?.ended(self) ?? true else { return }
        self.sink.finish { failure in
            self.core.executor.execute {
                self.end(failure.map { LoadFailure.error($0, url: self.task.latestRequest?.url) })
            }
        }
    }

    /// The load failed. A download or upload can be resumed afterwards, unless it was cancelled.
    func failed(_ error: any Error) {
        guard !self.transfer.hasEnded else { return }
        guard let error = error as? URLError, error.code != .cancelled else { return self.end(error) }
        if self.resumption != nil { return self.failKeepingResumeData(error) { _ in } }
        if case .file = self.sink { return self.failKeepingResumeData(error) { _ in } }
        self.failKeepingUpload(error) { _ in }
    }

    func end(_ error: (any Error)?) {
        if self.stop() { self.notifyEnd(error) }
    }

    /// - Returns: `false` if the transfer has ended before.
    func stop() -> Bool {
        guard case .complete(let unusedConnection) = self.transfer.end() else { return false }
        unusedConnection?.close()
        self.stopLoad()
        return true
    }

    func stopLoad() {
        self.currentLoad?.stop()
        self.currentLoad = nil
    }

    /// Completes the task and makes its last calls: metrics, then completion. Called once, after `stop()`.
    func notifyEnd(_ outcome: (any Error)?) {
        let (task, session, core, record) = (self.task, self.session, self.core, self.record)
        let endedAt = ContinuousInstant.now
        let sink = self.sink
        self.sink = .none
        if case .awaitedData(let handler) = self.consumer, !self.mayNotifyBeforeEnd {
            // No call for a delegate comes before the result, so that need not wait for the delegate queue.
            let error = outcome ?? task.finalError(nil)
            task.complete(error)
            handler(error == nil ? sink.data : nil, self.response, error)
            return core.delegateQueue.add(of: task) { self.release() }
        }
        core.delegateQueue.add(of: task) {
            let error = outcome ?? task.finalError(nil)
            if error == nil { self.notifyDownloadFinished(sink) }
            // The delegate has used the file; it must be gone before the completion call.
            if self.consumer.isDelegate { sink.discard() }
            task.complete(error)
            let delegates = self.delegates
            delegates.notifyFirst(.metrics) { delegate in
                let metrics = record.metrics(completedAt: endedAt)
                delegate.task?.urlSession(session, task: task, didFinishCollecting: metrics)
            }
            task.metadata.withLock { $0.delegate = nil }
            self.deliverResult(sink, error, delegates)
            if !self.consumer.isDelegate { sink.discard() }
            self.release()
        }
    }

    /// Whether there may be calls for a delegate that come before the result of an awaited task.
    private var mayNotifyBeforeEnd: Bool {
        self.delegateReceivesContent || self.hasNotified || self.delegates.contains { $0.mayImplement(.metrics) }
    }

    private func notifyDownloadFinished(_ sink: ContentSink) {
        guard self.consumer.isDelegate, case .file(let file) = sink, let task = self.task as? URLSessionDownloadTask
        else { return }
        self.delegates.notifyFirst(.finishedDownload) { delegate in
            delegate.download?.urlSession(self.session, downloadTask: task, didFinishDownloadingTo: file.url)
        }
    }

    /// Breaks the reference cycles of the ended task. On the delegate queue, after the task's last call.
    private func release() {
        self.task.metadata.withLock { $0.delegate = nil }
        self.core.taskEnded(self.task, of: self.session)
        self.task.setDriver(nil)
    }

    private func deliverResult(_ sink: ContentSink, _ error: (any Error)?, _ delegates: [DelegateProxy]) {
        let response = self.response
        switch self.consumer {
        case .delegate:
            delegates.notifyFirst(.completion) { delegate in
                delegate.task?.urlSession(self.session, task: self.task, didCompleteWithError: error)
            }
        // A failure comes with the response, if one arrived, but without its content.
        case .data(let handler), .awaitedData(let handler): handler(error == nil ? sink.data : nil, response, error)
        case .file(let handler): handler(error == nil ? sink.fileURL : nil, response, error)
        case .lastingFile(let handler):
            if error == nil { sink.keep() }
            handler(error == nil ? sink.fileURL : nil, response, error)
        case .bytes(let channel, let handler):
            if let error { handler(.failure(error)) }
            channel.finish(error)
        }
    }
}

/// Receives the result of a load.
enum LoadConsumer: Sendable {
    case delegate
    /// The completion handler of a data or upload task.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// The completion handler of a download task; the file is deleted when it returns.
    case file(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// An `async` download; the caller owns the file.
    case lastingFile(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// An `async` data or upload task. Called on the loop, or on the delegate queue if a delegate is called before.
    case awaitedData(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// `bytes(for:)`: the handler gets the response, the channel the content.
    case bytes(ByteChannel, @Sendable (Result<URLResponse, any Error>) -> Void)

    var isDelegate: Bool {
        if case .delegate = self { true } else { false }
    }
}

/// Fails the tasks of one session that exceed `timeoutIntervalForResource`. Since nearly all tasks end long before, one
/// timer serves them all: it fires at the earliest deadline and then looks for the next one.
///
/// Used on the session's executor.
final class ResourceTimer: @unchecked Sendable {  // Its var is used on the session's executor only.
    private struct Armed {
        let deadline: ContinuousInstant
        let timer: any DispatchSourceTimer
    }
    /// A serial queue gets a thread even if the program blocks all threads of the system's pool.
    private static let queue = DispatchQueue(label: "URLSession timeouts")
    private var armed: Armed?

    deinit { self.armed?.timer.cancel() }

    /// Makes the timer fire at `deadline` or before.
    func arm(until deadline: ContinuousInstant, for core: SessionCore) {
        if let armed, armed.deadline <= deadline { return }
        self.armed?.timer.cancel()
        let timer = DispatchSource.makeTimerSource(queue: Self.queue)
        let fire: @Sendable () -> Void = { [weak self, weak core] in
            if let self, let core { self.fire(core) }
        }
        timer.setEventHandler { [weak core] in core?.executor.execute(fire) }
        timer.schedule(deadline: .now() + .milliseconds(Self.milliseconds(until: deadline)))
        timer.activate()
        self.armed = Armed(deadline: deadline, timer: timer)
    }

    /// Rounded up.
    private static func milliseconds(until deadline: ContinuousInstant) -> Int {
        let left = max(.zero, ContinuousInstant.now.duration(to: deadline)).components
        return Int(clamping: left.seconds) * 1000 + Int(left.attoseconds / 1_000_000_000_000_000) + 1
    }

    private func fire(_ core: SessionCore) {
        self.armed = nil
        let now = ContinuousInstant.now
        var next: ContinuousInstant?
        for task in core.state.withLock({ Array($0.tasks.values) }) {
            guard let loader = task.driver as? TaskLoader, let deadline = loader.transfer.deadline else { continue }
            if deadline <= now {
                loader.resourceTimeoutExpired()
            } else {
                next = min(next ?? deadline, deadline)
            }
        }
        if let next { self.arm(until: next, for: core) }
    }
}

extension Duration {
    /// A timeout in seconds. Zero, negative numbers, NaN and more than a year mean one year.
    init(timeout: TimeInterval) {
        let year = 365.0 * 86_400
        let bounded = timeout > 0 && timeout < year ? timeout : year
        // Much faster than `seconds(_:)`, and precise enough.
        self = .nanoseconds(Int64(bounded * 1_000_000_000))
    }
}
