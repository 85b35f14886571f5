import Foundation
import Synchronization
import URLLoading

/// A delegate of background sessions that records its calls.
final class BackgroundRecorder: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, DaemonHolding,
    Sendable
{
    struct Recording: Sendable {
        var files: [Int: Data] = [:]
        var data: [Int: Data] = [:]
        var errors: [Int: URLError] = [:]
        var completed: [URLSessionTask] = []
        var written: [Int64] = []
        var sent: Int64 = 0
        var challenges: [URLAuthenticationChallenge] = []
        var metrics = 0
    }

    typealias ChallengeHandler =
        @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    typealias DelayedHandler = @Sendable (URLRequest) -> (URLSession.DelayedRequestDisposition, URLRequest?)

    let log = EventLog()
    private let daemon = Mutex<BackgroundDaemon?>(nil)
    let delayed: DelayedHandler?
    let credential: URLCredential?
    private let decide: ChallengeHandler?
    private let state = Mutex(Recording())

    /// - Parameter decide: answers challenges, instead of the credential.
    init(delayed: DelayedHandler? = nil, credential: URLCredential? = nil, decide: ChallengeHandler? = nil) {
        self.delayed = delayed
        self.decide = decide
        self.credential = credential
    }

    func hold(_ daemon: BackgroundDaemon) { self.daemon.withLock { $0 = daemon } }

    var notes: Recording { self.state.withLock { $0 } }

    private func note(_ event: String, folding: Bool = false, _ body: (inout Recording) -> Void = { _ in }) {
        self.state.withLock { body(&$0) }
        self.log.add(event, folding: folding)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { self.note("invalid") }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { self.note("events") }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let content = try? Data(contentsOf: location)
        self.note("file \(downloadTask.taskIdentifier)") { $0.files[downloadTask.taskIdentifier] = content }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.note("written", folding: true) { $0.written.append(totalBytesWritten) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data \(dataTask.taskIdentifier)", folding: true) {
            $0.data[dataTask.taskIdentifier, default: Data()].append(data)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.note("sent", folding: true) { $0.sent = totalBytesSent }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        self.note("delayed \(task.taskIdentifier)")
        let (disposition, request) = self.delayed?(request) ?? (.continueLoading, nil)
        completionHandler(disposition, request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.note("redirect")
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge \(task.taskIdentifier)") { $0.challenges.append(challenge) }
        let (disposition, credential) = self.decide?(challenge) ?? (.useCredential, self.credential)
        completionHandler(disposition, credential)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.note("metrics", folding: true) { $0.metrics += 1 }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.note("completed \(task.taskIdentifier)") {
            $0.errors[task.taskIdentifier] = error as? URLError
            $0.completed.append(task)
        }
    }
}

/// The same request in its asynchronous form.
final class AsyncBackgroundDelegate: NSObject, URLSessionDownloadDelegate, DaemonHolding, Sendable {
    let log = EventLog()
    private let daemon = Mutex<BackgroundDaemon?>(nil)
    let replacement: URL

    init(replacement: URL) {
        self.replacement = replacement
    }

    func hold(_ daemon: BackgroundDaemon) { self.daemon.withLock { $0 = daemon } }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        self.log.add("delayed")
        return (.useNewRequest, URLRequest(url: self.replacement))
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        self.log.add((try? String(contentsOf: location, encoding: .utf8)) ?? "no file")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.log.add("completed")
    }
}
