import Foundation

/// Receives the events of a whole session. Every method is optional; a method with a completion handler can be
/// implemented in its asynchronous form instead.
///
/// Methods are called on the session's delegate queue, asynchronous ones on the executor of their class. A program may
/// call a method that a delegate does not implement, as when it forwards its calls: the method's other form answers, or it
/// gets the default answer.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session's last call.
    /// - Parameter error: `nil` if the program invalidated the session.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A TLS handshake asks whether to trust the server, or for a client certificate. If not implemented, the task's
    /// method is called. `completionHandler` may be called from any thread; calls after the first are ignored.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// A background session has delivered all messages about transfers that ended while no program had it. Called once for
    /// a session, if there were such messages or if the daemon started the program for an answer to a challenge.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        MissingMethodFlag.set(self, .becameInvalid)
    }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if MissingMethodFlag.set(self, .sessionChallenge) { return }
        DelegateProxy.answer(for: self, by: .sessionChallengeAsync, otherwise: (.performDefaultHandling, nil)) {
            completionHandler($0.0, $0.1)
        } call: {
            await self.urlSession(session, didReceive: challenge)
        }
    }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if MissingMethodFlag.set(self, .sessionChallengeAsync) { return (.performDefaultHandling, nil) }
        return await DelegateProxy.answer(for: self, by: .sessionChallenge, otherwise: (.performDefaultHandling, nil)) {
            handler in
            self.urlSession(session, didReceive: challenge) { handler(($0, $1)) }
        }
    }

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        MissingMethodFlag.set(self, .finishedEvents)
    }
}

/// Receives the events of one task of any kind. Every method is optional: one that the task's own delegate does not
/// implement is called on the session's delegate.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// The task's first call: on the thread that creates the task, before the creating method returns.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// The `earliestBeginDate` of a background session's task has come. If not implemented, the request is sent as it is.
    /// - Parameter completionHandler: takes what to do, and the request to send instead for `useNewRequest`; `cancel` ends
    ///   the task with `URLError.cancelled`.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// The task has no network to its server and waits for one, with `waitsForConnectivity`. At most once for a task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// The server redirects the request.
    /// - Parameter completionHandler: takes the request to follow, usually `request`; `nil` makes the redirect response
    ///   itself the result.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// The server asks for a user name and a password; also called for challenges of the session whose method
    /// `URLSessionDelegate` does not implement.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// A streamed upload needs its body: for the first request, and each time the body must be sent again.
    /// - Parameter completionHandler: takes a stream that is not open; `nil` fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// A streamed upload was interrupted, and its server has the first `offset` bytes.
    /// - Parameter completionHandler: takes a stream that is not open and begins at `offset`; `nil` fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void)

    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream?

    /// More of the body was sent. Counts are bytes of the body, counted from 0 when it is sent again;
    /// `totalBytesExpectedToSend` is -1 if unknown.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An informational (1xx) response other than 101; the final response follows.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// The task's metrics, immediately before `didCompleteWithError`.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task's last call. A response with an error status such as 404 is not an error.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        MissingMethodFlag.set(self, .createdTask)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        if MissingMethodFlag.set(self, .delayedRequest) { return }
        DelegateProxy.answer(for: self, by: .delayedRequestAsync, otherwise: (.continueLoading, nil)) {
            completionHandler($0.0, $0.1)
        } call: {
            await self.urlSession(session, task: task, willBeginDelayedRequest: request)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        if MissingMethodFlag.set(self, .delayedRequestAsync) { return (.continueLoading, nil) }
        return await DelegateProxy.answer(for: self, by: .delayedRequest, otherwise: (.continueLoading, nil)) {
            handler in
            self.urlSession(session, task: task, willBeginDelayedRequest: request) { handler(($0, $1)) }
        }
    }

    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        MissingMethodFlag.set(self, .waiting)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        if MissingMethodFlag.set(self, .redirection) { return }
        DelegateProxy.answer(for: self, by: .redirectionAsync, otherwise: request, to: completionHandler) {
            await self.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        if MissingMethodFlag.set(self, .redirectionAsync) { return request }
        return await DelegateProxy.answer(for: self, by: .redirection, otherwise: request) { handler in
            self.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request
            ) { handler($0) }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if MissingMethodFlag.set(self, .taskChallenge) { return }
        DelegateProxy.answer(for: self, by: .taskChallengeAsync, otherwise: (.performDefaultHandling, nil)) {
            completionHandler($0.0, $0.1)
        } call: {
            await self.urlSession(session, task: task, didReceive: challenge)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if MissingMethodFlag.set(self, .taskChallengeAsync) { return (.performDefaultHandling, nil) }
        return await DelegateProxy.answer(for: self, by: .taskChallenge, otherwise: (.performDefaultHandling, nil)) {
            handler in
            self.urlSession(session, task: task, didReceive: challenge) { handler(($0, $1)) }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        if MissingMethodFlag.set(self, .newBodyStream) { return }
        DelegateProxy.answer(for: self, by: .newBodyStreamAsync, otherwise: UncheckedTransfer(nil)) {
            completionHandler($0.value)
        } call: {
            UncheckedTransfer(await self.urlSession(session, needNewBodyStreamForTask: task))
        }
    }

    public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
        if MissingMethodFlag.set(self, .newBodyStreamAsync) { return nil }
        return await DelegateProxy.answer(for: self, by: .newBodyStream, otherwise: UncheckedTransfer(nil)) { handler in
            self.urlSession(session, task: task) { handler(UncheckedTransfer($0)) }
        }.value
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        if MissingMethodFlag.set(self, .bodyStreamFromOffset) { return }
        DelegateProxy.answer(for: self, by: .bodyStreamFromOffsetAsync, otherwise: UncheckedTransfer(nil)) {
            completionHandler($0.value)
        } call: {
            UncheckedTransfer(await self.urlSession(session, needNewBodyStreamForTask: task, from: offset))
        }
    }

    public func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream? {
        if MissingMethodFlag.set(self, .bodyStreamFromOffsetAsync) { return nil }
        return await DelegateProxy.answer(for: self, by: .bodyStreamFromOffset, otherwise: UncheckedTransfer(nil)) {
            handler in
            self.urlSession(session, task: task, needNewBodyStreamFrom: offset) { handler(UncheckedTransfer($0)) }
        }.value
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        MissingMethodFlag.set(self, .sentBody)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        MissingMethodFlag.set(self, .informationalResponse)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        MissingMethodFlag.set(self, .metrics)
    }

    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        MissingMethodFlag.set(self, .completion)
    }
}

/// Receives the response and the content of data and upload tasks.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The response head has arrived; its content is held back until `completionHandler` is called. Called for each
    /// part of `multipart/x-mixed-replace`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The disposition was `becomeDownload`; no more methods are called for `dataTask`.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// The disposition was `becomeStream`; no more methods are called for `dataTask`.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// The next piece of the content.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// The content is complete and may be cached.
    /// - Parameter completionHandler: takes the response to cache; `nil` caches nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if MissingMethodFlag.set(self, .response) { return }
        DelegateProxy.answer(for: self, by: .responseAsync, otherwise: .allow, to: completionHandler) {
            await self.urlSession(session, dataTask: dataTask, didReceive: response)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        if MissingMethodFlag.set(self, .responseAsync) { return .allow }
        return await DelegateProxy.answer(for: self, by: .response, otherwise: .allow) { handler in
            self.urlSession(session, dataTask: dataTask, didReceive: response) { handler($0) }
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        MissingMethodFlag.set(self, .becameDownload)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
    ) {
        MissingMethodFlag.set(self, .becameStream)
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        MissingMethodFlag.set(self, .data)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        if MissingMethodFlag.set(self, .cacheProposal) { return }
        DelegateProxy.answer(for: self, by: .cacheProposalAsync, otherwise: proposedResponse, to: completionHandler) {
            await self.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        if MissingMethodFlag.set(self, .cacheProposalAsync) { return proposedResponse }
        return await DelegateProxy.answer(for: self, by: .cacheProposal, otherwise: proposedResponse) { handler in
            self.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) { handler($0) }
        }
    }
}

/// Receives the progress and the file of a download task.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file is complete. It is deleted when this returns: move it, or open it. Called for error statuses such as
    /// 404 as well.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// More was written. Counts are bytes after decoding; `totalBytesExpectedToWrite` is -1 if unknown.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// The download resumes from resume data: called once, before anything is written.
    /// - Parameters:
    ///   - fileOffset: bytes kept from the earlier attempt; 0 if they could not be used.
    ///   - expectedTotalBytes: size of the whole file; -1 if unknown.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        MissingMethodFlag.set(self, .wroteData)
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        MissingMethodFlag.set(self, .resumedAtOffset)
    }
}

/// Receives the events of a stream task.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The reading side was closed, by either end; bytes received before can still be read.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The writing side was closed; later writes fail.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// New connections to the server would now use another network interface or another local address: the program may
    /// open a new one instead.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// Completes `captureStreams()`; the streams are not open. The task's last call.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream)
}

extension URLSessionStreamDelegate {
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        MissingMethodFlag.set(self, .readClosed)
    }

    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        MissingMethodFlag.set(self, .writeClosed)
    }

    public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        MissingMethodFlag.set(self, .betterRoute)
    }

    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        MissingMethodFlag.set(self, .capturedStreams)
    }
}

/// Receives the opening and the closing of a WebSocket.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The opening handshake has completed.
    /// - Parameter protocol: the subprotocol that the server selected; `nil` for none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The peer's Close frame was received; `closeCode` is `noStatusReceived` if it has no code. If the
    /// connection ends without one after `cancel(with:reason:)`, the code and the reason are the program's own.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        MissingMethodFlag.set(self, .webSocketOpened)
    }

    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        MissingMethodFlag.set(self, .webSocketClosed)
    }
}
