import BackgroundTransfers
import Foundation
import HTTPSemantics
import Synchronization

/// Drives one task of a background session: passes what the program does to the daemon, and what the daemon reports to the
/// delegate. Thread-safe.
final class BackgroundTask: TaskDriver {
    private struct State {
        /// The last that the delegate was notified of.
        var notified: TransferCounts
        var current: TransferCounts
        var isScheduled = false
        var hasEnded = false
        var isAsking = false
        var resumeDataHandler: (@Sendable (Data?) -> Void)?
    }

    let task: URLSessionTask
    let session: URLSession
    let background: BackgroundSession
    let kind: TransferRecord.Kind
    private let state: Mutex<State>

    init(
        _ task: URLSessionTask, of session: URLSession, in background: BackgroundSession, kind: TransferRecord.Kind,
        counts: TransferCounts
    ) {
        self.task = task
        self.session = session
        self.background = background
        self.kind = kind
        self.state = Mutex(State(notified: counts, current: counts))
    }

    private var core: SessionCore { self.session.core }
    private var identifier: Int { self.task.taskIdentifier }
    private var url: URL? { self.task.metadata.withLock { $0.originalRequest?.url } }
    private var delegates: [DelegateProxy] { self.core.delegates(for: self.task) }

    // MARK: Verbs of the program

    func resumed() {
        if self.task.delegate != nil {
            return self.fail(
                LoadFailure.error(
                    .unsupportedURL, url: self.url,
                    text: "A task of a background session has no delegate of its own: use the session's."))
        }
        self.perform(.resume(task: self.identifier))
    }

    func suspended() { self.perform(.suspend(task: self.identifier)) }

    func cancelled() { self.perform(.cancel(task: self.identifier, reason: nil)) }

    func cancelled(producingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        let replaced = self.state.withLock { state in
            defer { state.resumeDataHandler = handler }
            return state.hasEnded ? handler : state.resumeDataHandler
        }
        if let replaced { self.core.delegateQueue.add(of: self.task) { replaced(nil) } }
        self.cancelled()
    }

    func priorityChanged(_ priority: Float) { self.attributesChanged() }

    func attributesChanged() {
        let attributes = self.task.metadata.withLock { TransferAttributes($0) }
        self.perform(.change(task: self.identifier, attributes))
    }

    private func perform(_ request: SessionRequest) {
        if let error = self.background.perform(request, url: self.url) { self.fail(error) }
    }

    // MARK: Messages of the daemon

    /// The transfer as the daemon has it: its state may have been changed from a shell, and it may have a question.
    func received(_ transfer: TransferRecord) {
        self.task.mutate(\.state) { metadata in
            guard metadata.state == .running || metadata.state == .suspended else { return }
            metadata.suspensions = transfer.isSuspended ? max(1, metadata.suspensions) : 0
            metadata.state = transfer.isSuspended ? .suspended : .running
        }
        switch transfer.phase {
        case .asksForCredential(let challenge): self.ask(challenge)
        case .asksForRequest: self.askForRequest(transfer.currentRequest)
        case .waiting, .running: break
        }
    }

    /// - Returns: `false` if a delegate is being asked already.
    private func beginAsking() -> Bool {
        self.state.withLock { state in
            defer { state.isAsking = true }
            return !state.isAsking
        }
    }

    private func answer(_ request: SessionRequest) {
        self.state.withLock { $0.isAsking = false }
        self.perform(request)
    }

    private func ask(_ challenge: TransferChallenge) {
        guard self.beginAsking() else { return }
        let question = challenge.challenge { challenge.failures == 0 ? self.proposed(for: $0) : nil }
        let (identifier, asked) = (self.identifier, challenge.withoutResponse)
        self.core.ask(question, about: self.task, of: self.session) { answer in
            self.answer(.answerChallenge(task: identifier, asked, TransferChallengeAnswer(answer, to: question)))
        }
    }

    /// The account that the URL names; without one, a stored credential.
    private func proposed(for space: URLProtectionSpace) -> URLCredential? {
        let asking = HTTPSemantics.Origin(scheme: space.protocol ?? "", host: space.host, port: space.port)
        // After a redirect another server may ask.
        let own = self.task.currentRequest?.url.flatMap { Origin($0) == asking ? $0 : nil }
        if let account = own.flatMap({ ConfiguredAccount($0) }) {
            return URLCredential(user: account.user, password: account.password, persistence: .none)
        }
        let user = own?.namedUser
        return self.core.configuration.urlCredentialStorage?.credential(for: space, user: user)
            ?? user.map { URLCredential(user: $0) }
    }

    private func askForRequest(_ stored: TransferRequest) {
        guard self.beginAsking() else { return }
        let (task, session, identifier) = (self.task, self.session, self.identifier)
        guard let request = stored.urlRequest else { return self.answer(.answerRequest(task: identifier, .proceed)) }
        let question = DelegateRequest<DelayedAnswer>(
            method: .delayedRequest, asyncMethod: .delayedRequestAsync,
            call: { delegate, handler in
                delegate.task?.urlSession(session, task: task, willBeginDelayedRequest: request) {
                    handler(DelayedAnswer(disposition: $0, request: $1))
                }
            },
            callAsync: { delegate in
                guard let delegate = delegate.task else { return DelayedAnswer(disposition: .continueLoading) }
                let (disposition, request) = await delegate.urlSession(
                    session, task: task, willBeginDelayedRequest: request)
                return DelayedAnswer(disposition: disposition, request: request)
            })
        self.core.delegateQueue.ask(self.delegates, about: task, question) { answer in
            self.answer(.answerRequest(task: identifier, self.transferAnswer(answer)))
        }
    }

    private func transferAnswer(_ answer: DelayedAnswer?) -> DelayedRequestAnswer {
        switch answer?.disposition {
        case .continueLoading, nil: return .proceed
        case .cancel: return .cancel
        case .useNewRequest:
            guard let request = answer?.request else { return .proceed }
            self.task.mutate(\.currentRequest) { $0.currentRequest = request }
            var transfer = TransferRequest(request)
            if self.kind == .upload { transfer.body = nil }
            return .replace(transfer)
        }
    }

    func restarted(at offset: Int64, expected: Int64) {
        self.state.withLock { state in
            state.notified.received = offset
            state.current.received = offset
        }
        let (session, task) = (self.session, self.task as? URLSessionDownloadTask)
        guard let task else { return }
        self.core.delegateQueue.notify(self.delegates, of: task, .resumedAtOffset) { delegate in
            delegate.download?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    /// Counts are joined while the delegate queue is busy.
    func progressed(_ counts: TransferCounts) {
        let schedules = self.state.withLock { state in
            state.current = counts
            defer { state.isScheduled = true }
            return !state.isScheduled && !state.hasEnded
        }
        guard schedules else { return }
        self.core.delegateQueue.add(of: self.task) { self.notifyProgress() }
    }

    /// On the delegate queue.
    private func notifyProgress() {
        let (last, now) = self.state.withLock { state in
            defer {
                state.notified = state.current
                state.isScheduled = false
            }
            return (state.notified, state.current)
        }
        self.setCounts(now)
        let (session, task) = (self.session, self.task)
        if now.sent > last.sent {
            self.delegates.notifyFirst(.sentBody) { delegate in
                delegate.task?.urlSession(
                    session, task: task, didSendBodyData: now.sent - last.sent, totalBytesSent: now.sent,
                    totalBytesExpectedToSend: now.totalToSend)
            }
        }
        if now.received > last.received, let task = task as? URLSessionDownloadTask {
            self.delegates.notifyFirst(.wroteData) { delegate in
                delegate.download?.urlSession(
                    session, downloadTask: task, didWriteData: now.received - last.received,
                    totalBytesWritten: now.received, totalBytesExpectedToWrite: now.totalToReceive)
            }
        }
    }

    private func setCounts(_ counts: TransferCounts) {
        self.task.mutate(\.countOfBytesSent) { $0.apply(counts) }
        self.task.mutate(\.countOfBytesReceived) { _ in }
        let metadata = self.task.metadata.withLock { $0.progress == nil ? nil : $0 }
        if let metadata { metadata.progress?.update(metadata) }
    }

    // MARK: The end

    /// The task cannot be carried out.
    func fail(_ error: URLError) {
        guard let handler = self.beginEnding() else { return }
        self.background.discard(self.identifier)
        handler.map { handler in self.core.delegateQueue.add(of: self.task) { handler(nil) } }
        self.core.notifyEnd(of: self.task, error, TaskMetricsRecord(), session: self.session)
        self.core.delegateQueue.add(of: self.task) { self.task.setDriver(nil) }
    }

    /// - Returns: `nil` if the task has ended before; otherwise the handler that waits for resume data.
    private func beginEnding() -> (@Sendable (Data?) -> Void)?? {
        self.state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            defer { state.resumeDataHandler = nil }
            return .some(state.resumeDataHandler)
        }
    }

    /// - Parameter sequence: acknowledged once the delegate has got all messages.
    func ended(_ end: TransferEnd, _ sequence: Int) {
        guard let handler = self.beginEnding() else { return self.background.acknowledge(sequence) }
        self.core.delegateQueue.add(of: self.task) {
            self.storeCookies(of: end)
            if let response = end.transfer.response?.urlResponse {
                self.task.mutate(\.response) { $0.response = response }
            }
            self.setCounts(end.transfer.counts)
            if end.error == nil { self.deliverContent(of: end) }
            let resumeData = end.error == nil ? nil : self.resumeData(from: end.transfer)
            handler?(resumeData)
            self.notifyEnd(end, resumeData)
            // Before the session can become invalid: a program may end then.
            self.background.acknowledge(sequence)
            self.task.metadata.withLock { $0.delegate = nil }
            self.core.taskEnded(self.task, of: self.session)
            self.task.setDriver(nil)
        }
    }

    private func storeCookies(of end: TransferEnd) {
        let configuration = self.core.configuration
        guard let response = end.transfer.response, let url = URL(string: response.url),
            self.task.metadata.withLock({ $0.originalRequest?.httpShouldHandleCookies ?? true })
        else { return }
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: response.fields, for: url)
        guard !cookies.isEmpty else { return }
        configuration.httpCookieStorage?.setCookies(
            cookies, for: url, mainDocumentURL: nil, policy: configuration.httpCookieAcceptPolicy)
    }

    /// The file of a download, or the response to an upload in pieces.
    private func deliverContent(of end: TransferEnd) {
        guard let name = end.file, TransferFolders.isFileName(name) else { return }
        let file = URL(fileURLWithPath: "\(self.background.folder)/\(name)")
        // It is gone if an earlier program got it, and was killed before it had got the rest.
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        let session = self.session
        switch self.task {
        case let task as URLSessionDownloadTask:
            self.delegates.notifyFirst(.finishedDownload) { delegate in
                delegate.download?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file)
            }
        case let task as URLSessionUploadTask:
            guard let handle = try? FileHandle(forReadingFrom: file) else { return }
            while let piece = try? handle.read(upToCount: DeliveryWindow.limit), !piece.isEmpty {
                self.delegates.notifyFirst(.data) { delegate in
                    delegate.data?.urlSession(session, dataTask: task, didReceive: piece)
                }
            }
        default: break
        }
    }

    /// Moves the content of a failed download to where another task resumes it.
    private func resumeData(from transfer: TransferRecord) -> Data? {
        guard transfer.kind == .download, let validator = transfer.partial?.validator,
            let original = self.task.originalRequest, let current = self.task.currentRequest
        else { return nil }
        let source = "\(self.background.folder)/\(transfer.contentName)"
        var status = stat()
        guard stat(source, &status) == 0, status.st_size > 0 else { return nil }
        let name = DownloadFileName.random()
        let data = ResumeData(
            originalRequest: original, currentRequest: current, validator: validator,
            bytesReceived: Int64(status.st_size), total: transfer.partial?.total, file: name)
        guard let encoded = data.encoded(),
            (try? FileManager.default.moveItem(atPath: source, toPath: name.url.path)) != nil
        else { return nil }
        return encoded
    }

    private func notifyEnd(_ end: TransferEnd, _ resumeData: Data?) {
        let (task, session, delegates) = (self.task, self.session, self.delegates)
        let error = end.error?.urlError(resumeData: resumeData)
        task.complete(error)
        delegates.notifyFirst(.metrics) { delegate in
            let begun = end.transfer.begun ?? end.ended
            let interval = DateInterval(start: begun, duration: max(0, end.ended.timeIntervalSince(begun)))
            delegate.task?.urlSession(
                session, task: task,
                didFinishCollecting: URLSessionTaskMetrics(transactions: [], interval: interval, redirectCount: 0))
        }
        delegates.notifyFirst(.completion) { delegate in
            delegate.task?.urlSession(session, task: task, didCompleteWithError: error)
        }
    }
}

/// The answer to `willBeginDelayedRequest`.
private struct DelayedAnswer: Sendable {
    var disposition: URLSession.DelayedRequestDisposition
    var request: URLRequest?
}
