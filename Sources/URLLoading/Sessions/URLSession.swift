import Foundation
import HTTPTransport
import StreamTransport
import Synchronization

/// Loads what URLs stand for, and holds what its tasks share: connections, cookies, cache, credentials, a delegate.
///
/// For any number of threads. The session holds its delegate until it has become invalid, and so do its tasks the
/// session: one that has a delegate lives until `finishTasksAndInvalidate` or `invalidateAndCancel`.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {
    public typealias AuthChallengeDisposition = URLSessionAuthChallengeDisposition
    public typealias ResponseDisposition = URLSessionResponseDisposition
    public typealias DelayedRequestDisposition = URLSessionDelayedRequestDisposition

    private static let sharedSession: URLSession = {
        let session = URLSession(configuration: .default)
        session.core.markShared()
        return session
    }()

    let core: SessionCore

    /// The session of the program: the default configuration, no delegate. It cannot be invalidated.
    open class var shared: URLSession { self.sharedSession }

    /// As with the default configuration.
    @available(*, deprecated, message: "Use init(configuration:), or the shared session.")
    public override convenience init() {
        self.init(configuration: .default)
    }

    /// A session without a delegate.
    public init(configuration: URLSessionConfiguration) {
        self.core = SessionCore(configuration.independent, delegate: nil, queue: nil)
        super.init()
    }

    /// - Parameters:
    ///   - configuration: copied; what is changed in it later changes nothing here.
    ///   - delegate: held until the session is invalid.
    ///   - queue: on which the delegate's messages and all completion handlers run; `nil` makes a serial one. Of a queue
    ///     that runs several operations at a time messages come in any order.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.core = SessionCore(configuration.independent, delegate: delegate, queue: queue)
        super.init()
    }

    deinit { self.core.pool.close() }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The session itself.
    open func copy(with zone: NSZone?) -> Any { self }

    open var delegateQueue: OperationQueue { self.core.delegateQueue.queue }

    /// `nil` once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { self.core.delegate?.delegate }

    /// A copy: changing it changes nothing here.
    open var configuration: URLSessionConfiguration { self.core.configuration.independent }

    /// A label of the program's own.
    open var sessionDescription: String? {
        get { self.core.state.withLock { $0.label } }
        set { self.core.state.withLock { $0.label = newValue } }
    }

    /// Returns at once. No new task loads any more; when those there are have ended, the delegate is told and dropped.
    /// The shared session goes on.
    open func finishTasksAndInvalidate() { self.core.invalidate(self, cancels: false) }

    /// As `finishTasksAndInvalidate`, and cancels the tasks there are. The shared session goes on.
    open func invalidateAndCancel() { self.core.invalidate(self, cancels: true) }

    // MARK: Tasks

    // All tasks are made suspended: nothing happens before `resume()`. One that is made by a session which is invalid
    // fails with `URLError.cancelled` once it is resumed.

    /// Loads the request; its body is what the request has.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        self.dataTask(request, consumer: .delegate)
    }

    /// Loads the URL by GET.
    open func dataTask(with url: URL) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), consumer: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; a response of 404 is a success. The delegate hears nothing
    ///   of the response and the content.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(request, consumer: .data(completionHandler))
    }

    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), consumer: .data(completionHandler))
    }

    /// Sends the file; what body the request has counts for nothing. A file that is not there fails the task with
    /// `URLError.fileDoesNotExist`.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), consumer: .delegate)
    }

    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData), consumer: .delegate)
    }

    /// Sends what the delegate gives when it is asked for a stream: in chunks, unless the request names a
    /// Content-Length. Without such a delegate the request's own stream is sent.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        self.uploadTask(request, body: .stream(first: nil), consumer: .delegate)
    }

    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), consumer: .data(completionHandler))
    }

    /// - Parameter bodyData: `nil` is an empty body.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData ?? Data()), consumer: .data(completionHandler))
    }

    /// Uploads that can be resumed are still to come: the task fails with `URLError.unsupportedURL`.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.unsupportedUpload(.delegate)
    }

    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.unsupportedUpload(.data(completionHandler))
    }

    /// Loads the request into a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        self.downloadTask(request, consumer: .delegate)
    }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), consumer: .delegate)
    }

    /// Goes on with a download by what `cancel(byProducingResumeData:)` or a failure gave. What cannot be read fails
    /// the task with `URLError.unsupportedURL`; where the server does not go on, the download begins again.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, consumer: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; the file is taken away when it returns.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(request, consumer: .file(completionHandler))
    }

    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), consumer: .file(completionHandler))
    }

    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, consumer: .file(completionHandler))
    }

    /// A connection over TCP, opened when the task is resumed. Its original request is `nil`.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        self.streamTask(to: .host(hostname, port: port))
    }

    /// A WebSocket to a `ws` or `wss` URL; another scheme fails the task with `URLError.unsupportedURL`.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        self.webSocketTask(URLRequest(url: url), protocols: [])
    }

    /// - Parameter protocols: subprotocols that are offered, the preferred one first.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        self.webSocketTask(URLRequest(url: url), protocols: protocols)
    }

    /// The fields of the request go along with the opening handshake; its timeout is that of the handshake.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        self.webSocketTask(request, protocols: [])
    }

    // MARK: Stores and lists of tasks

    /// Empties cookies, cache and credentials, with their files, and forgets all connections.
    /// - Parameter completionHandler: on the delegate queue.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.urlCache?.removeAllCachedResponses()
        self.core.configuration.httpCookieStorage?.removeCookies(since: .distantPast)
        self.core.configuration.urlCredentialStorage?.removeAll()
        self.flush(completionHandler: completionHandler)
    }

    /// Writes cookies to their file, forgets credentials that were in use and TLS sessions; the next request uses a new
    /// connection.
    /// - Parameter completionHandler: on the delegate queue.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.httpCookieStorage?.flush()
        self.core.forgetConnections()
        self.core.delegateQueue.add(completionHandler)
    }

    /// The tasks that have not ended, those too that were never resumed, in the order in which they were made.
    /// - Parameter completionHandler: on the delegate queue; upload tasks are in the second list alone.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = self.core.liveTasks
        self.core.delegateQueue.add {
            completionHandler(
                tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                tasks.compactMap { $0 as? URLSessionUploadTask }, tasks.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// All tasks that have not ended, of every kind.
    /// - Parameter completionHandler: on the delegate queue.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = self.core.liveTasks
        self.core.delegateQueue.add { completionHandler(tasks) }
    }
}

extension URLSessionConfiguration {
    /// A copy of this one.
    var independent: URLSessionConfiguration { self.copy(with: nil) as? URLSessionConfiguration ?? self }
}

extension URLSession {
    func dataTask(
        _ request: URLRequest, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDataTask {
        let task = URLSessionDataTask(self.makeMetadata(request), of: self)
        self.begin(task, body: TaskBody(request), consumer: consumer, delegate)
        return task
    }

    func uploadTask(
        _ request: URLRequest, body: TaskBody, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        let task = URLSessionUploadTask(self.makeMetadata(request), of: self)
        self.begin(task, body: body, consumer: consumer, delegate)
        return task
    }

    func downloadTask(
        _ request: URLRequest, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let task = URLSessionDownloadTask(self.makeMetadata(request), of: self)
        self.begin(task, body: TaskBody(request), consumer: consumer, delegate)
        return task
    }

    func downloadTask(
        resuming data: Data, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let resumption = DownloadResumption(data)
        let task = URLSessionDownloadTask(self.makeMetadata(resumption?.originalRequest), of: self)
        let transfer = self.begin(task, body: .none, consumer: consumer, delegate)
        if let resumption {
            transfer.resumption = resumption
        } else {
            transfer.initialError = LoadFailure.error(
                .unsupportedURL, url: nil, text: "The resume data cannot be read, or its file is gone.")
        }
        return task
    }

    func unsupportedUpload(
        _ consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        let task = URLSessionUploadTask(self.makeMetadata(nil), of: self)
        self.begin(task, body: .none, consumer: consumer, delegate).initialError = LoadFailure.error(
            .unsupportedURL, url: nil, text: "Uploads cannot be resumed yet: send the whole body again.")
        return task
    }

    func makeMetadata(_ request: URLRequest?) -> TaskMetadata {
        TaskMetadata(identifier: self.core.nextIdentifier(), request: request)
    }

    @discardableResult
    private func begin(
        _ task: URLSessionTask, body: TaskBody, consumer: LoadConsumer, _ delegate: (any URLSessionTaskDelegate)?
    ) -> TaskLoader {
        let face = delegate.map { DelegateProxy($0) }
        task.metadata.withLock { facts in
            facts.expectedToSend = body.length(for: facts.originalRequest)
            facts.delegate = face
            facts.prefersIncrementalDelivery = consumer.isDelegate && !(task is URLSessionDownloadTask)
        }
        let transfer = TaskLoader(task, of: self, body: body, consumer: consumer)
        task.setDriver(transfer)
        self.admit(task) { error in
            RefusedTask(task, error) { task, error in
                let transfer = TaskLoader(task, of: self, body: .none, consumer: consumer)
                task.setDriver(transfer)
                transfer.core.pool.execute { transfer.failed(error) }
            }
        }
        return transfer
    }

    /// Registers a task, and tells the delegate of it.
    /// - Parameter refused: makes what drives the task where the session is invalid.
    func admit(_ task: URLSessionTask, refused: (URLError) -> RefusedTask) {
        if !self.core.register(task) {
            task.setDriver(
                refused(
                    LoadFailure.error(
                        .cancelled, url: task.originalRequest?.url, text: "The session is invalid: make another one.")))
        }
        for face in self.core.delegates(for: task) where face.mayImplement(.createdTask) {
            if face.notify(.createdTask, { face.task?.urlSession(self, didCreateTask: task) }) { return }
        }
    }
}

extension URLSession {
    /// A connection over a Unix socket, opened when the task is resumed; else as `streamTask(withHostName:port:)`. Ours:
    /// other platforms do not have it.
    /// - Parameter path: of the socket, at most 107 bytes; a leading `@` stands for the abstract name space.
    public func streamTask(withSocketPath path: String) -> URLSessionStreamTask {
        self.streamTask(to: .unix(path: path))
    }

    func streamTask(to place: StreamEndpoint) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(self.makeMetadata(nil), of: self)
        let refusal = place.proxiedURL.flatMap { self.core.refusal(ofConnectionFor: $0, scheme: "stream") }
        self.assignDriver(task, at: place.url, unless: place.validationError ?? refusal) { life in
            StreamConnection(life, to: place.target, at: place.url)
        }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    func webSocketTask(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        var request = request
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = URLSessionWebSocketTask(self.makeMetadata(request), of: self)
        let flaw = WebSocketOpening.flaw(of: request)
        self.assignDriver(task, at: request.url, unless: flaw) { WebSocketConnection($0) }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    /// The connection of a data task that left HTTP becomes a stream task's, with the same number. On the loop of the
    /// session.
    func becomeStream(_ old: URLSessionDataTask, _ connection: UpgradedConnection) {
        guard let loop = SharedLoops.next() else {
            connection.close()
            let record = old.loader?.record ?? TaskMetricsRecord()
            old.setDriver(nil)
            return self.core.notifyEnd(of: old, Self.outOfDescriptors(old.currentRequest?.url), record, session: self)
        }
        let task = URLSessionStreamTask(old.metadata.withLock { $0 }, of: self)
        let life = ConnectionTaskState(task, of: self, on: loop)
        life.stage = .running
        if let record = old.loader?.record { life.record = record }
        let driver = StreamConnection(life, at: old.currentRequest?.url)
        task.setDriver(driver)
        self.core.replace(with: task)
        old.mutate(\.state) { $0.state = .completed }
        // The new task has it; and what drove the old one holds that in turn.
        old.metadata.withLock { $0.delegate = nil }
        old.setDriver(nil)
        loop.execute {
            // Before anything of the new task is told, and before anything can be asked of it.
            life.tell(.becameStream) { $0.data?.urlSession(self, dataTask: old, didBecome: task) }
            driver.adopt(connection)
        }
    }

    // MARK: Making

    /// Gives a task its driver.
    private func assignDriver(
        _ task: URLSessionTask, at url: URL?, unless flaw: URLError?,
        _ make: (ConnectionTaskState) -> any ConnectionTaskDriver
    ) {
        let flaw = flaw ?? self.core.refusal(of: url)
        guard flaw == nil, let loop = SharedLoops.next() else {
            return task.setDriver(RefusedTask(task, of: self, flaw ?? Self.outOfDescriptors(task.originalRequest?.url)))
        }
        task.setDriver(make(ConnectionTaskState(task, of: self, on: loop)))
    }

    private static func outOfDescriptors(_ url: URL?) -> URLError {
        LoadFailure.error(
            .cannotConnectToHost, url: url, cause: POSIXError(.EMFILE),
            text: "There are too few descriptors or threads left in this process.")
    }
}

/// Cancelling the Swift task that waits cancels the session's task: what is thrown is `URLError.cancelled` then.
///
/// A delegate that is given here is asked before the session's. It alone hears of the response, which it may refuse, of
/// the data as they come, and of the growth of a file; as in FoundationNetworking, and unlike other platforms.
extension URLSession {
    /// Loads the request into memory.
    public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult { self.dataTask(request, consumer: .awaitedData($0), delegate: delegate) }
    }

    /// Loads the URL into memory.
    public func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends the file, and loads the answer into memory.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .file(fileURL), consumer: .awaitedData($0), delegate: delegate)
        }
    }

    /// Sends the data, and loads the answer into memory.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .data(bodyData), consumer: .awaitedData($0), delegate: delegate)
        }
    }

    /// Uploads that can be resumed are still to come: this throws `URLError.unsupportedURL`.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult { self.unsupportedUpload(.awaitedData($0), delegate: delegate) }
    }

    /// Loads the request into a file, which stays: it is the caller's.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult { self.downloadTask(request, consumer: .lastingFile($0), delegate: delegate) }
    }

    /// Loads the URL into a file, which stays: it is the caller's.
    public func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Goes on with a download.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult {
            self.downloadTask(resuming: resumeData, consumer: .lastingFile($0), delegate: delegate)
        }
    }

    private func awaitResult<Value: Sendable>(
        _ make: (@escaping @Sendable (Value?, URLResponse?, (any Error)?) -> Void) -> URLSessionTask
    ) async throws -> (Value, URLResponse) {
        let waiting = AwaitedTask()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let task = make { value, response, error in
                    if let value, let response, error == nil {
                        continuation.resume(returning: (value, response))
                    } else {
                        continuation.resume(throwing: error ?? URLError(.badServerResponse))
                    }
                }
                waiting.start(task)
            }
        } onCancel: {
            waiting.cancel()
        }
    }
}

/// The session's task of a Swift task that waits for it, which may be cancelled before it is there.
final class AwaitedTask: Sendable {
    private struct State {
        var task: URLSessionTask?
        var isCancelled = false
    }
    private let state = Mutex(State())

    /// Resumes the task; cancelled ones end without having begun.
    func start(_ task: URLSessionTask) {
        let isCancelled = self.state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        isCancelled ? task.cancel() : task.resume()
    }

    /// Once it is there.
    var task: URLSessionTask? { self.state.withLock { $0.task } }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}

extension URLSession {
    /// As `reset(completionHandler:)`.
    public func reset() async {
        await withCheckedContinuation { continuation in self.reset { continuation.resume() } }
    }

    /// As `flush(completionHandler:)`.
    public func flush() async {
        await withCheckedContinuation { continuation in self.flush { continuation.resume() } }
    }

    /// As `getTasksWithCompletionHandler`.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await withCheckedContinuation { continuation in
                self.getTasksWithCompletionHandler { continuation.resume(returning: ($0, $1, $2)) }
            }
        }
    }

    /// As `getAllTasks(completionHandler:)`.
    public var allTasks: [URLSessionTask] {
        get async { self.core.liveTasks }
    }
}
