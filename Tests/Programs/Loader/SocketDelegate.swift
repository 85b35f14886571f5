import Foundation
import URLLoading

/// The delegate of a session with one WebSocket task.
final class SocketDelegate: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
    private enum End {
        case success
        case failure(any Error)

        var error: (any Error)? {
            if case .failure(let error) = self { error } else { nil }
        }
    }

    private let answers: ChallengeAnswers
    private let lock = NSLock()
    private var heard: [String] = []
    private var collected: URLSessionTaskMetrics?
    private var isOpen = false
    private var end: End?
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(answers: ChallengeAnswers) {
        self.answers = answers
    }

    var events: [String] { self.lock.withLock { self.heard } }
    var metrics: URLSessionTaskMetrics? { self.lock.withLock { self.collected } }

    private func happened(_ event: String) {
        self.lock.withLock { self.heard.append(event) }
    }

    /// Waits until the handshake is done, or failed.
    func opened() async throws {
        await self.wait { self.isOpen || self.end != nil }
        if let error = self.lock.withLock({ self.isOpen ? nil : self.end?.error }) { throw error }
    }

    /// Waits for the last message of the task.
    func completed() async -> (any Error)? {
        await self.wait { self.end != nil }
        return self.lock.withLock { self.end?.error }
    }

    private func wait(_ condition: () -> Bool) async {
        while true {
            await withCheckedContinuation { continuation in
                let isDone = self.lock.withLock { () -> Bool in
                    if condition() { return true }
                    self.waiters.append(continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
            if self.lock.withLock(condition) { return }
        }
    }

    private func change(_ work: () -> Void) {
        let waiting = self.lock.withLock { () -> [CheckedContinuation<Void, Never>] in
            work()
            defer { self.waiters = [] }
            return self.waiters
        }
        for one in waiting { one.resume() }
    }

    // MARK: Delegate calls

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        self.happened("open \(`protocol` ?? "-")")
        self.change { self.isOpen = true }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        self.happened("close \(closeCode.rawValue) \(String(decoding: reason ?? Data(), as: UTF8.self))")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let method = challenge.protectionSpace.authenticationMethod.dropFirst("NSURLAuthenticationMethod".count)
        self.happened("challenge \(method) \(challenge.previousFailureCount)")
        let (disposition, credential) = self.answers.answer(challenge)
        completionHandler(disposition, credential)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.happened("redirection \(response.statusCode) to \(request.url?.path ?? "")")
        completionHandler(request)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.happened("metrics")
        self.lock.withLock { self.collected = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.happened("completed")
        self.change { self.end = error.map(End.failure) ?? .success }
    }
}
