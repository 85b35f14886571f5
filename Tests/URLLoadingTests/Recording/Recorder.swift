import Foundation
import Synchronization
import URLLoading

/// A delegate of tasks that records its calls. `DataRecorder` and `DownloadRecorder` record more.
class Recorder: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    struct Sent: Equatable, Sendable {
        let now: Int64
        let total: Int64
        let expected: Int64
    }

    struct Recording: Sendable {
        var data = Data()
        var pieces: [Data] = []
        var response: URLResponse?
        var responses: [URLResponse] = []
        var error: (any Error)?
        var completions = 0
        var redirects: [(response: HTTPURLResponse, request: URLRequest)] = []
        var challenges: [URLAuthenticationChallenge] = []
        var sent: [Sent] = []
        var written: [Sent] = []
        var informational: [HTTPURLResponse] = []
        var metrics: URLSessionTaskMetrics?
        var created: [URLSessionTask] = []
        var stateAtCompletion: URLSessionTask.State?
        var file: URL?
        var fileContent: Data?
        var resumes: [(offset: Int64, expected: Int64)] = []
        var download: URLSessionDownloadTask?
        var streamTask: URLSessionStreamTask?
        var queues: Set<ObjectIdentifier> = []
        var cached: [CachedURLResponse] = []
        var invalidity: (any Error)?
    }

    let log = EventLog()
    let policies: Policies
    private let state = Mutex(Recording())
    private let completed = Outcome<Bool>()

    init(_ policies: Policies = Policies()) { self.policies = policies }

    var notes: Recording { self.state.withLock { $0 } }
    var events: [String] { self.log.names }
    /// Without the session's invalidation, which may be reported before or after this is read.
    var eventsOfTheTask: [String] { self.events.filter { $0 != "invalid" } }
    var error: URLError? { self.notes.error as? URLError }

    /// Waits for the end of the (only) task.
    @discardableResult
    func end() async throws -> Recording {
        _ = try await self.completed.value()
        return self.notes
    }

    func note(_ event: String, folding: Bool = false, _ body: (inout Recording) -> Void = { _ in }) {
        self.state.withLock { notes in
            if let queue = OperationQueue.current { notes.queues.insert(ObjectIdentifier(queue)) }
            body(&notes)
        }
        self.log.add(event, folding: folding)
    }

    // MARK: Session

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.note("invalid") { $0.invalidity = error }
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if challenge.isOfTheVariant { return completionHandler(.performDefaultHandling, nil) }
        let method = challenge.protectionSpace.authenticationMethod.dropFirst("NSURLAuthenticationMethod".count)
        self.note("session challenge \(method)") { $0.challenges.append(challenge) }
        guard let answer = self.policies.sessionChallenge else {
            return completionHandler(.performDefaultHandling, nil)
        }
        answer(challenge, completionHandler)
    }

    // MARK: Task

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        self.note("created") { $0.created.append(task) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.note("redirect \(response.statusCode)") { $0.redirects.append((response, request)) }
        guard let answer = self.policies.redirect else { return completionHandler(request) }
        answer(response, request, completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let method = challenge.protectionSpace.authenticationMethod.dropFirst("NSURLAuthenticationMethod".count)
        self.note("challenge \(method)") { $0.challenges.append(challenge) }
        guard let answer = self.policies.challenge else { return completionHandler(.performDefaultHandling, nil) }
        answer(challenge, completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.note("needs body")
        guard let answer = self.policies.stream else { return completionHandler(nil) }
        answer(completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.note("needs body from \(offset)")
        completionHandler(self.policies.streamRest?(offset))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.note("sent", folding: true) {
            $0.sent.append(Sent(now: bytesSent, total: totalBytesSent, expected: totalBytesExpectedToSend))
        }
        self.policies.sent?(task, totalBytesSent)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        self.note("informational \(response.statusCode)") { $0.informational.append(response) }
        self.policies.informational?(response)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.note("metrics") { $0.metrics = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.note("complete") {
            $0.completions += 1
            $0.error = error
            $0.stateAtCompletion = task.state
        }
        self.policies.completed?(task)
        self.completed.give(true)
    }
}
