import Foundation
import HTTPTransport
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
        session.core.share()
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

    open var delegateQueue: OperationQueue { self.core.line.queue }

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
        self.dataTask(request, result: .delegate)
    }

    /// Loads the URL by GET.
    open func dataTask(with url: URL) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), result: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; a response of 404 is a success. The delegate hears nothing
    ///   of the response and the content.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(request, result: .data(completionHandler))
    }

    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), result: .data(completionHandler))
    }

    /// Sends the file; what body the request has counts for nothing. A file that is not there fails the task with
    /// `URLError.fileDoesNotExist`.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), result: .delegate)
    }

    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData), result: .delegate)
    }

    /// Sends what the delegate gives when it is asked for a stream: in chunks, unless the request names a
    /// Content-Length. Without such a delegate the request's own stream is sent.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        self.uploadTask(request, body: .stream(first: nil), result: .delegate)
    }

    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), result: .data(completionHandler))
    }

    /// - Parameter bodyData: `nil` is an empty body.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData ?? Data()), result: .data(completionHandler))
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
        self.downloadTask(request, result: .delegate)
    }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), result: .delegate)
    }

    /// Goes on with a download by what `cancel(byProducingResumeData:)` or a failure gave. What cannot be read fails
    /// the task with `URLError.unsupportedURL`; where the server does not go on, the download begins again.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, result: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; the file is taken away when it returns.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(request, result: .file(completionHandler))
    }

    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), result: .file(completionHandler))
    }

    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, result: .file(completionHandler))
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
        self.core.line.add(completionHandler)
    }

    /// The tasks that have not ended, those too that were never resumed, in the order in which they were made.
    /// - Parameter completionHandler: on the delegate queue; upload tasks are in the second list alone.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = self.core.liveTasks
        self.core.line.add {
            completionHandler(
                tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                tasks.compactMap { $0 as? URLSessionUploadTask }, tasks.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// All tasks that have not ended, of every kind.
    /// - Parameter completionHandler: on the delegate queue.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = self.core.liveTasks
        self.core.line.add { completionHandler(tasks) }
    }
}

extension URLSessionConfiguration {
    /// A copy of this one.
    var independent: URLSessionConfiguration { self.copy(with: nil) as? URLSessionConfiguration ?? self }
}
