import BackgroundTransfers
import Foundation
import Synchronization
import URLLoading

/// Which addresses a session's connections may be made to.
package final class AddressPermission: Sendable {
    /// Makes a rule of `SessionSettings.permittedTargets`.
    package typealias Maker =
        @Sendable ([String]) -> @Sendable (URLSessionConfiguration.ServerAddress, _ host: String) -> Bool

    private struct State {
        var targets: [String]?
        var permits: (@Sendable (URLSessionConfiguration.ServerAddress, String) -> Bool)?
    }

    private let make: Maker
    private let state: Mutex<State>

    init(_ targets: [String]?, _ make: @escaping Maker) {
        self.make = make
        self.state = Mutex(State(targets: targets, permits: targets.map(make)))
    }

    /// - Returns: whether that is a change.
    func replace(_ targets: [String]?) -> Bool {
        guard self.state.withLock({ $0.targets }) != targets else { return false }
        let permits = targets.map(self.make)
        self.state.withLock { $0 = State(targets: targets, permits: permits) }
        return true
    }

    func permits(_ address: URLSessionConfiguration.ServerAddress, _ host: String) -> Bool {
        self.state.withLock { $0.permits }?(address, host) ?? true
    }
}

/// Carries out the attempts of one background session's transfers, on a session of its own. Thread-safe.
final class SessionLoads: Sendable {
    private let session: URLSession
    private let delegate: LoadDelegate
    private let folder: String
    private let settings: SessionSettings
    private let permission: AddressPermission

    /// - Parameters:
    ///   - configuration: made of the settings.
    ///   - folder: of the session's files.
    ///   - former: whose settings were others. Its attempts are stopped on the same queue, before others begin with their
    ///     files.
    init(
        _ settings: SessionSettings, _ configuration: URLSessionConfiguration, folder: String,
        permission: @escaping AddressPermission.Maker, following former: SessionLoads?
    ) {
        self.folder = folder
        self.settings = settings.withoutTargets
        self.delegate = LoadDelegate()
        let permission = AddressPermission(settings.permittedTargets, permission)
        self.permission = permission
        configuration.permitsAddress = { permission.permits($0, $1) }
        self.session = URLSession(
            configuration: configuration, delegate: self.delegate, delegateQueue: former?.session.delegateQueue)
    }

    /// Whether attempts with these settings may begin here.
    func carriesOut(_ settings: SessionSettings) -> Bool {
        self.permit(settings.permittedTargets)
        return self.settings == settings.withoutTargets
    }

    /// Permits other addresses from now on. Open connections are used for no further request.
    func permit(_ targets: [String]?) {
        if self.permission.replace(targets) { self.session.flush {} }
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

    /// Lets the attempts continue, and begins no further one.
    func finish() { self.session.finishTasksAndInvalidate() }

    func close() { self.session.invalidateAndCancel() }
}

extension SessionSettings {
    /// Settings whose change requires another session.
    fileprivate var withoutTargets: SessionSettings {
        var settings = self
        settings.permittedTargets = nil
        return settings
    }
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
        let task: URLSessionTask =
            if let data = attempt.uploadResumption {
                session.uploadTask(withResumeData: data)
            } else if let body = attempt.body {
                session.uploadTask(with: request, fromFile: body)
            } else {
                session.dataTask(with: request)
            }
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

    /// The server may have named the resource where the upload is continued.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        guard response.statusCode == 104, let upload = task as? URLSessionUploadTask, self.running(task) != nil else {
            return
        }
        upload.getResumeData { data in
            session.delegateQueue.addOperation { self.running(task)?.attempt.uploadNamed(data) }
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // A redirected upload is created again.
        if request.httpMethod != "HEAD", request.httpMethod != "PATCH" { self.running(task)?.attempt.uploadNamed(nil) }
        completionHandler(request)
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
        running.attempt.challenged(by: space)
        let asked = TransferChallenge(challenge)
        switch running.transfer.answer(to: asked)?.answer {
        case .credential(let user, let password) where challenge.previousFailureCount == 0:
            // Other transfers do not get it: the program has answered for this one.
            completionHandler(.useCredential, URLCredential(user: user, password: password, persistence: .none))
        case .defaultHandling: completionHandler(.performDefaultHandling, nil)
        case .withoutCredential: completionHandler(.useCredential, nil)
        case .rejectProtectionSpace: completionHandler(.rejectProtectionSpace, nil)
        case .credential, .cancel, nil:
            running.attempt.failed(challenge: running.transfer.question(asked))
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
