import BackgroundTransfers
import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization

/// Creates tasks that load URLs, and owns what they share: connections, cookies, cache, credentials, a delegate.
///
/// Thread-safe. A session retains its delegate until it has become invalid, and tasks retain their session: a session
/// with a delegate lives until `finishTasksAndInvalidate` or `invalidateAndCancel`.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {  // Not final; thread-safe.
    public typealias AuthChallengeDisposition = URLSessionAuthChallengeDisposition
    public typealias ResponseDisposition = URLSessionResponseDisposition
    public typealias DelayedRequestDisposition = URLSessionDelayedRequestDisposition

    private static let sharedSession: URLSession = {
        let session = URLSession(configuration: .default)
        session.core.markShared()
        return session
    }()

    let core: SessionCore

    /// A session with the default configuration and no delegate. It cannot be invalidated.
    open class var shared: URLSession { self.sharedSession }

    /// As with the default configuration.
    @available(*, deprecated, message: "Use init(configuration:), or the shared session.")
    public override init() {  // Designated, so that a program's subclass may override it.
        self.core = SessionCore(.default, delegate: nil, queue: nil)
        super.init()
    }

    public init(configuration: URLSessionConfiguration) {
        self.core = SessionCore(configuration.independent, delegate: nil, queue: nil)
        super.init()
        self.core.openBackground(for: self)
    }

    /// - Parameters:
    ///   - configuration: copied; later changes have no effect on the session.
    ///   - delegate: retained until the session is invalid.
    ///   - queue: runs the delegate's methods and all completion handlers; `nil` creates a serial queue. On a
    ///     concurrent queue the delegate's methods for one task run in order, one at a time; those for different tasks
    ///     and the completion handlers of stream and WebSocket tasks run in any order. They run also after
    ///     `cancelAllOperations` of the queue.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.core = SessionCore(configuration.independent, delegate: delegate, queue: queue)
        super.init()
        self.core.openBackground(for: self)
    }

    deinit {
        self.core.executor.close()
        self.core.closeBackground()
    }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The session itself.
    open func copy(with zone: NSZone?) -> Any { self }

    open var delegateQueue: OperationQueue { self.core.delegateQueue.queue }

    /// `nil` once the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { self.core.delegate?.delegate }

    /// A copy: changing it has no effect on the session.
    open var configuration: URLSessionConfiguration { self.core.configuration.independent }

    /// A label for the program's use.
    open var sessionDescription: String? {
        get { self.core.state.withLock { $0.label } }
        set { self.core.state.withLock { $0.label = newValue } }
    }

    /// Returns immediately. New tasks fail; when all existing tasks have ended, the delegate is notified and released.
    /// Has no effect on the shared session.
    open func finishTasksAndInvalidate() { self.core.invalidate(self, cancels: false) }

    /// As `finishTasksAndInvalidate`, and cancels all tasks.
    open func invalidateAndCancel() { self.core.invalidate(self, cancels: true) }

    // MARK: Tasks

    // All tasks are created suspended. A task of an invalid session fails with `URLError.cancelled` when it is resumed.

    /// Loads the request with its own body.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        self.dataTask(request, consumer: .delegate)
    }

    /// Loads the URL by GET.
    open func dataTask(with url: URL) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), consumer: .delegate)
    }

    /// - Parameter completionHandler: called on the delegate queue; a 404 response is a success. The delegate does not
    ///   get the response and the content.
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

    /// Sends the file; the request's own body is ignored. A missing file fails the task with
    /// `URLError.fileDoesNotExist`.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), consumer: .delegate)
    }

    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData), consumer: .delegate)
    }

    /// Sends the stream that the delegate provides: chunked, unless the request has a Content-Length. If the delegate
    /// provides none, the request's own stream is sent.
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

    /// Continues an upload from the data of `cancel(byProducingResumeData:)` or of a failure. Invalid data fail the task
    /// with `URLError.unsupportedURL`, a file that was changed since with `URLError.cannotOpenFile`.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.uploadTask(resuming: resumeData, consumer: .delegate)
    }

    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(resuming: resumeData, consumer: .data(completionHandler))
    }

    /// Loads the request into a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        self.downloadTask(request, consumer: .delegate)
    }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), consumer: .delegate)
    }

    /// Resumes a download from the data of `cancel(byProducingResumeData:)` or of a failure. Invalid data fail the task
    /// with `URLError.unsupportedURL`. If the server cannot resume, the download starts over.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, consumer: .delegate)
    }

    /// - Parameter completionHandler: called on the delegate queue; the file is deleted when it returns.
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

    /// A TCP connection, opened when the task is resumed. The task's `originalRequest` is `nil`.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        self.streamTask(to: .host(hostname, port: port))
    }

    /// A WebSocket to a `ws` or `wss` URL; another scheme fails the task with `URLError.unsupportedURL`.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask {
        self.webSocketTask(URLRequest(url: url), protocols: [])
    }

    /// - Parameter protocols: subprotocols to offer, in order of preference.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        self.webSocketTask(URLRequest(url: url), protocols: protocols)
    }

    /// The opening handshake sends the fields of the request and uses its timeout.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        self.webSocketTask(request, protocols: [])
    }

    // MARK: Storage and task lists

    /// Removes all cookies, cached responses and credentials, with their files, and does as `flush`.
    /// - Parameter completionHandler: called on the delegate queue.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.urlCache?.removeAllCachedResponses()
        self.core.configuration.httpCookieStorage?.removeCookies(since: .distantPast)
        self.core.configuration.urlCredentialStorage?.removeAll()
        self.flush(completionHandler: completionHandler)
    }

    /// Writes cookies to their file, and forgets credentials in use and TLS sessions. The next request uses a new
    /// connection.
    /// - Parameter completionHandler: called on the delegate queue.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.httpCookieStorage?.flush()
        self.core.forgetConnections()
        self.core.delegateQueue.add(completionHandler)
    }

    /// The tasks that have not ended, in the order of their creation.
    /// - Parameter completionHandler: called on the delegate queue; upload tasks are in the second list only.
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

    /// All tasks of any kind that have not ended.
    /// - Parameter completionHandler: called on the delegate queue.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = self.core.liveTasks
        self.core.delegateQueue.add { completionHandler(tasks) }
    }
}

extension URLSessionConfiguration {
    fileprivate var independent: URLSessionConfiguration { self.copy(with: nil) as? URLSessionConfiguration ?? self }
}

extension URLSession {
    func dataTask(
        _ request: URLRequest, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDataTask {
        let task = URLSessionDataTask(self.makeMetadata(request), of: self)
        return self.assignLoader(task, body: TaskBody(request), consumer, delegate)
    }

    func uploadTask(
        _ request: URLRequest, body: TaskBody, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        self.assignLoader(URLSessionUploadTask(self.makeMetadata(request), of: self), body: body, consumer, delegate)
    }

    func downloadTask(
        _ request: URLRequest, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let task = URLSessionDownloadTask(self.makeMetadata(request), of: self)
        return self.assignLoader(task, body: TaskBody(request), consumer, delegate)
    }

    func downloadTask(
        resuming data: Data, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let resumption = DownloadResumption(data)
        let task = URLSessionDownloadTask(self.makeMetadata(resumption?.originalRequest), of: self)
        let error = LoadFailure.error(
            .unsupportedURL, url: nil, text: "The resume data cannot be read, or its file is gone.")
        return self.assignLoader(
            task, body: .none, consumer, delegate, resumption: resumption,
            initialError: resumption == nil ? error : nil)
    }

    func uploadTask(
        resuming data: Data, consumer: LoadConsumer, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        let resumption = UploadResumeData(data).map { UploadResumption($0) }
        let task = URLSessionUploadTask(self.makeMetadata(resumption?.data.originalRequest), of: self)
        let error = LoadFailure.error(.unsupportedURL, url: nil, text: "The resume data cannot be read.")
        return self.assignLoader(
            task, body: resumption.map { TaskBody($0.data.body) } ?? .none, consumer, delegate,
            uploadResumption: resumption, initialError: resumption == nil ? error : nil)
    }

    private func makeMetadata(_ request: URLRequest?) -> TaskMetadata {
        TaskMetadata(identifier: self.core.nextIdentifier(), request: request)
    }

    /// Gives a data, upload or download task its loader.
    private func assignLoader<LoadingTask: URLSessionTask>(
        _ task: LoadingTask, body: TaskBody, _ consumer: LoadConsumer, _ delegate: (any URLSessionTaskDelegate)?,
        resumption: DownloadResumption? = nil, uploadResumption: UploadResumption? = nil, initialError: URLError? = nil
    ) -> LoadingTask {
        let proxy = delegate.map { DelegateProxy($0) }
        task.metadata.withLock { metadata in
            metadata.expectedToSend = body.length(for: metadata.originalRequest)
            metadata.delegate = proxy
            metadata.prefersIncrementalDelivery = consumer.isDelegate && !(task is URLSessionDownloadTask)
        }
        let error =
            initialError ?? self.core.refusal(of: task, body, consumer, hasDelegate: delegate != nil)
            ?? self.createTransfer(of: task, body, resumption)
        if error != nil || task.driver == nil {
            task.setDriver(
                TaskLoader(
                    task, of: self, body: body, consumer: consumer, resumption: resumption,
                    uploadResumption: uploadResumption, initialError: error))
        }
        self.admit(task) { error in
            RefusedTask(task, error) { task, error in
                let loader = TaskLoader(task, of: self, body: .none, consumer: consumer)
                task.setDriver(loader)
                loader.core.executor.execute { loader.failed(error) }
            }
        }
        return task
    }

    /// Gives a download or upload task of a background session its driver; does nothing for other tasks.
    /// - Returns: the error with which the task must fail.
    private func createTransfer(
        of task: URLSessionTask, _ body: TaskBody, _ resumption: DownloadResumption?
    ) -> URLError? {
        guard let background = self.core.background, task is URLSessionDownloadTask || task is URLSessionUploadTask
        else { return nil }
        let driver = BackgroundTask(
            task, of: self, in: background, kind: task is URLSessionUploadTask ? .upload : .download,
            counts: TransferCounts())
        if let error = background.create(task, body, resuming: resumption) { return error }
        task.setDriver(driver)
        return nil
    }

    /// Registers a task and notifies the delegate.
    /// - Parameter refused: creates the driver of the task if the session is invalid.
    private func admit(_ task: URLSessionTask, refused: (URLError) -> RefusedTask) {
        if !self.core.register(task) {
            task.setDriver(
                refused(
                    LoadFailure.error(
                        .cancelled, url: task.originalRequest?.url, text: "The session is invalid: create another one.")
                ))
        }
        self.core.delegates(for: task).notifyFirst(.createdTask) { $0.task?.urlSession(self, didCreateTask: task) }
    }

    // MARK: Background sessions of the gateway

    /// Leaves the tasks of a background session to the daemon, as the end of the program does: the session becomes invalid, and
    /// a later one with its identifier has them.
    package func detach() { self.core.detach(self) }

    /// Whether messages that waited for the program are not passed to the delegate queue yet; it gets
    /// `urlSessionDidFinishEvents` behind them.
    package var hasWaitingMessages: Bool { self.core.background?.hasWaitingMessages ?? false }

    /// Permits a background session's connections other addresses from now on.
    /// - Returns: why the daemon does not know of that.
    package func permit(_ targets: [String]?) -> URLError? { self.core.background?.permit(targets) }

    // MARK: Connections

    /// A connection over a Unix socket, opened when the task is resumed; otherwise as `streamTask(withHostName:port:)`.
    /// An extension that Foundation does not have.
    /// - Parameter path: of the socket, at most 107 bytes; a leading `@` means the abstract namespace.
    public func streamTask(withSocketPath path: String) -> URLSessionStreamTask {
        self.streamTask(to: .unix(path: path))
    }

    private func streamTask(to endpoint: StreamEndpoint) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(self.makeMetadata(nil), of: self)
        var (error, proxies) = (endpoint.validationError, OpeningTarget.SelectProxies?.none)
        if let url = endpoint.proxiedURL {
            proxies = self.core.proxySelection(for: url, scheme: "stream", task: task, session: self) {
                [weak task] error in
                guard let driver = task?.driver as? StreamConnection else { return }
                driver.taskState.loop.execute { driver.fail(error) }
            }
        } else if case .host = endpoint, error == nil, self.core.usesProxies {
            error = LoadFailure.error(.badURL, url: nil, text: "No proxy can be asked for this host name.")
        }
        self.assignDriver(task, at: endpoint.url, unless: error) { [proxies] taskState in
            StreamConnection(taskState, to: endpoint.target, through: proxies, at: endpoint.url)
        }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    private func webSocketTask(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        var request = request
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = URLSessionWebSocketTask(self.makeMetadata(request), of: self)
        self.assignDriver(task, at: request.url, unless: WebSocketOpening.validationError(of: request)) {
            WebSocketConnection($0)
        }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    /// Replaces a data task whose connection left HTTP by a stream task with the same identifier. On the session's
    /// executor.
    func becomeStream(_ old: URLSessionDataTask, _ connection: DetachedConnection) {
        let task = URLSessionStreamTask(old.metadata.withLock { $0.ofSuccessor }, of: self)
        let taskState = ConnectionTaskState(task, of: self, on: connection.loop)
        taskState.stage = .running
        if let record = old.loader?.record { taskState.record = record }
        let driver = StreamConnection(taskState, at: old.currentRequest?.url)
        task.setDriver(driver)
        let delegates = self.core.delegates(for: task)
        connection.loop.execute {
            // Before any delegate call for the new task, and before the program can use it.
            self.core.delegateQueue.add(of: task) {
                old.becomes(task)
                delegates.notifyFirst(.becameStream) { $0.data?.urlSession(self, dataTask: old, didBecome: task) }
            }
            self.core.replace(with: task)
            if taskState.stage == .ended { connection.close() } else { driver.adopt(connection) }
        }
    }

    /// Gives a task its connection, or a driver that fails it.
    private func assignDriver(
        _ task: URLSessionTask, at url: URL?, unless error: URLError?,
        _ make: (ConnectionTaskState) -> any ConnectionTaskDriver
    ) {
        let error = error ?? self.core.refusal(of: url)
        guard error == nil, let loop = self.core.executor.nextLoop() else {
            let error = error ?? LoadFailure.outOfDescriptors(task.originalRequest?.url)
            return task.setDriver(RefusedTask(task, of: self, error))
        }
        task.setDriver(make(ConnectionTaskState(task, of: self, on: loop)))
    }
}
