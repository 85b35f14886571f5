import BackgroundTransfers
import Foundation
import Synchronization
import URLLoading

/// Carries out the attempts of one background session's transfers, on a session of its own. Thread-safe.
final class SessionLoads: Sendable {
    private let session: URLSession
    private let delegate: LoadDelegate
    private let folder: String

    /// - Parameter folder: of the session's files.
    init(_ settings: SessionSettings, folder: String) {
        self.folder = folder
        self.delegate = LoadDelegate()
        self.session = URLSession(
            configuration: URLSessionConfiguration(settings), delegate: self.delegate, delegateQueue: nil)
    }

    /// - Parameter report: called in order, until the end of the attempt.
    func start(_ transfer: TransferRecord, _ report: @escaping TransferAttempt.Report) {
        let attempt = TransferAttempt(transfer, in: self.folder, boot: MachineBoot.identifier, report)
        self.delegate.start(attempt, transfer, in: self.session)
    }

    /// Ends an attempt without a report.
    func stop(_ identifier: Int) {
        // Behind the start of the attempt.
        self.session.delegateQueue.addOperation { self.delegate.stop(identifier) }
    }

    func close() { self.session.invalidateAndCancel() }
}

/// The delegate of one session's attempts.
private final class LoadDelegate: NSObject, URLSessionDataDelegate {
    private struct Running {
        let transfer: TransferRecord
        let attempt: TransferAttempt
    }

    private struct State {
        /// By the identifier of the session's task.
        var running: [Int: Running] = [:]
        /// The session's task, by the transfer's identifier.
        var tasks: [Int: URLSessionTask] = [:]
    }
    private let state = Mutex(State())

    func start(_ attempt: TransferAttempt, _ transfer: TransferRecord, in session: URLSession) {
        session.delegateQueue.addOperation { self.begin(attempt, transfer, in: session) }
    }

    private func begin(_ attempt: TransferAttempt, _ transfer: TransferRecord, in session: URLSession) {
        guard let request = attempt.request else {
            return attempt.ended(URLError(.badURL))
        }
        let task =
            attempt.body.map { session.uploadTask(with: request, fromFile: $0) } ?? session.dataTask(with: request)
        task.priority = transfer.attributes.priority
        let previous = self.state.withLock { state in
            state.running[task.taskIdentifier] = Running(transfer: transfer, attempt: attempt)
            return state.tasks.updateValue(task, forKey: transfer.identifier)
        }
        previous?.cancel()
        task.resume()
    }

    func stop(_ identifier: Int) {
        let task = self.state.withLock { state in
            let task = state.tasks.removeValue(forKey: identifier)
            if let task { state.running[task.taskIdentifier] = nil }
            return task
        }
        task?.cancel()
    }

    private func running(_ task: URLSessionTask) -> Running? {
        self.state.withLock { $0.running[task.taskIdentifier] }
    }

    // MARK: On the delegate queue

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let running = self.running(dataTask) else { return completionHandler(.cancel) }
        switch running.attempt.responseReceived(response, { completionHandler($0 ? .allow : .cancel) }) {
        case .receive: break
        case .stop: completionHandler(.cancel)
        case .requestWhole:
            self.state.withLock { $0.running[dataTask.taskIdentifier] = nil }
            completionHandler(.cancel)
            self.begin(running.attempt, running.transfer, in: session)
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard let running = self.running(dataTask) else { return }
        if !running.attempt.received(data, wireBytes: Int64(data.count)) { dataTask.cancel() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.running(task)?.attempt.sent(totalBytesSent, of: totalBytesExpectedToSend)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        let asks = [
            NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodNTLM,
        ]
        guard let running = self.running(task), asks.contains(space.authenticationMethod) else {
            return completionHandler(.performDefaultHandling, nil)
        }
        switch running.transfer.answer {
        case .credential(let user, let password) where challenge.previousFailureCount == 0:
            completionHandler(.useCredential, URLCredential(user: user, password: password, persistence: .forSession))
        case .withoutCredential: completionHandler(.performDefaultHandling, nil)
        case .credential, .cancel, nil:
            let failures = challenge.previousFailureCount
            running.attempt.challenged(
                TransferChallenge(
                    host: space.host, port: space.port, scheme: space.protocol, realm: space.realm,
                    method: space.authenticationMethod, isProxy: space.isProxy(), failures: failures))
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let running = self.state.withLock { state in
            let running = state.running.removeValue(forKey: task.taskIdentifier)
            if let running, state.tasks[running.transfer.identifier] === task {
                state.tasks[running.transfer.identifier] = nil
            }
            return running
        }
        running?.attempt.ended(error)
    }
}
