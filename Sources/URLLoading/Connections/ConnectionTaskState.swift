import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// The state shared by the drivers of stream and WebSocket tasks. Confined to the loop unless stated otherwise.
final class ConnectionTaskState: @unchecked Sendable {  // Its vars are used on `loop` only.
    enum Stage {
        case waiting
        case running
        case suspended
        /// The delegate was notified of the end, or will be.
        case ended
    }

    let core: SessionCore
    let session: URLSession
    let loop: Loop
    /// `nil` after the end.
    private(set) var task: URLSessionTask?
    private let taskIdentifier: Int
    var stage = Stage.waiting
    var record = TaskMetricsRecord()
    /// Counts the bytes of the task.
    var taskRecord: TaskRecord?
    /// Why the task ends, if it is known more precisely than the failure of its connection.
    var finalError: URLError?
    private var hasWaited = false

    private let resourceTimer = LoopTimer()
    private var resourceTimeLeft: Duration
    private var resourceTimerStart = ContinuousInstant.now
    private var expired: (() -> Void)?
    private var lastURL: URL?

    init(_ task: URLSessionTask, of session: URLSession, on loop: Loop) {
        self.core = session.core
        self.session = session
        self.loop = loop
        self.task = task
        self.taskIdentifier = task.taskIdentifier
        self.resourceTimeLeft = Duration(timeout: session.core.configuration.timeoutIntervalForResource)
    }

    /// The URL for errors.
    var url: URL? { self.task?.currentRequest?.url ?? self.lastURL }

    /// Runs a handler of the program on the delegate queue, after the task's earlier messages. From any thread, also after
    /// the end.
    func onDelegateQueue(_ handler: @escaping @Sendable () -> Void) {
        self.core.delegateQueue.add(ofTask: self.taskIdentifier, handler)
    }

    /// Calls the delegate on its queue, in order.
    /// - Returns: `false` if no delegate implements the method.
    @discardableResult
    func notifyDelegate(_ method: DelegateMethod, _ call: @escaping @Sendable (DelegateProxy) -> Void) -> Bool {
        guard let task = self.task else { return false }
        return self.core.delegateQueue.notify(self.core.delegates(for: task), of: task, method, call)
    }

    /// This machine has no way to the server. The delegate is notified once.
    func waitingForConnectivity() {
        guard !self.hasWaited, let task = self.task else { return }
        self.hasWaited = true
        let session = self.session
        self.notifyDelegate(.waiting) { $0.task?.urlSession(session, taskIsWaitingForConnectivity: task) }
    }

    // MARK: Resource timeout

    /// - Parameter expired: called after `timeoutIntervalForResource`.
    fileprivate func startResourceTimer(_ expired: @escaping () -> Void) {
        self.expired = expired
        self.resourceTimerStart = .now
        self.loop.arm(self.resourceTimer, after: self.resourceTimeLeft, target: self)
    }

    fileprivate func pauseResourceTimer() {
        self.loop.disarm(self.resourceTimer)
        self.resourceTimeLeft -= self.resourceTimerStart.duration(to: .now)
    }

    fileprivate func resumeResourceTimer() {
        self.resourceTimerStart = .now
        self.loop.arm(self.resourceTimer, after: max(.zero, self.resourceTimeLeft), target: self)
    }

    // MARK: Failures

    /// The error for a failed operation of the task.
    func error(_ failure: TaskFailure) -> URLError {
        self.finalError ?? LoadFailure.error(of: failure, url: self.url)
    }

    /// The error of an operation; `nil` if it succeeded.
    func error<Value>(_ result: Result<Value, TaskFailure>) -> URLError? {
        if case .failure(let failure) = result { self.error(failure) } else { nil }
    }

    // MARK: The end

    /// Releases the task without notifying its delegate of the end.
    func detachTask() -> URLSessionTask? {
        self.stage = .ended
        self.loop.disarm(self.resourceTimer)
        self.expired = nil
        self.lastURL = self.url
        defer { self.task = nil }
        return self.task
    }

    /// Notifies the delegate of the end, once.
    func end(_ error: URLError?) {
        guard self.stage != .ended, let task = self.detachTask() else { return }
        // Later operations fail with the same error.
        self.finalError = error
        if let taskRecord {
            task.mutate(\.countOfBytesReceived) { $0.bytesReceived = Int64(clamping: taskRecord.bytesReceived) }
            task.mutate(\.countOfBytesSent) { $0.bytesSent = Int64(clamping: taskRecord.bytesSent) }
        }
        self.core.notifyEnd(of: task, error, self.record, session: self.session)
    }
}

extension ConnectionTaskState: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.expired?()
    }
}

/// Drives a task with a connection of its own, on one of `SharedLoops`.
protocol ConnectionTaskDriver: TaskDriver {
    var taskState: ConnectionTaskState { get }
    /// Called when the task is resumed for the first time.
    func begin()
    func suspend()
    func resume()
    /// Ends the connection because of `taskState.finalError`, then calls `taskState.end`.
    func cancelConnection()
}

extension ConnectionTaskDriver {
    // MARK: From any thread

    func resumed() { self.taskState.loop.execute { self.reconcile() } }
    func suspended() { self.taskState.loop.execute { self.reconcile() } }
    func cancelled() {
        self.taskState.loop.execute { self.fail(LoadFailure.error(.cancelled, url: self.taskState.url)) }
    }
    /// Without effect: the task does not wait for a connection.
    func priorityChanged(_ priority: Float) {}

    // MARK: On the loop

    /// Applies the task's current state, which may have changed several times since the last call.
    private func reconcile() {
        guard let state = self.taskState.task?.metadata.withLock({ $0.state }) else { return }
        switch (state, self.taskState.stage) {
        case (.running, .waiting):
            self.taskState.stage = .running
            self.taskState.startResourceTimer { self.timeOut() }
            self.begin()
        case (.running, .suspended):
            self.taskState.stage = .running
            self.taskState.resumeResourceTimer()
            self.resume()
        case (.suspended, .running):
            self.taskState.stage = .suspended
            self.taskState.pauseResourceTimer()
            self.suspend()
        default: break
        }
    }

    private func timeOut() {
        self.fail(
            LoadFailure.error(
                .timedOut, url: self.taskState.url, text: "The task exceeded timeoutIntervalForResource."))
    }

    /// Ends the task.
    func fail(_ error: URLError) {
        guard self.taskState.stage != .ended else { return }
        self.taskState.finalError = self.taskState.finalError ?? error
        self.cancelConnection()
    }

    // MARK: TLS

    /// TLS settings that ask the delegate about the server and for a client certificate. From any thread.
    /// - Parameters:
    ///   - url: identifies the server in challenges.
    ///   - timeout: for the handshake, not counting the time that the delegate takes.
    func secureSettings(
        _ context: TLSContext, at url: URL, for task: URLSessionTask, timeout: Duration
    ) -> SecureSettings {
        var settings = SecureSettings(context: context, serverName: url.serverName)
        settings.timeout = timeout
        settings.resumptionKey = "\(url.serverName ?? ""):\(url.port ?? 443)"
        let taskState = self.taskState
        settings.decide = { request, answer in
            taskState.core.askTrust(request, at: url, for: task, of: taskState.session) { decision, refusal in
                // Recorded before the handshake fails because of it.
                taskState.loop.execute { taskState.finalError = taskState.finalError ?? refusal }
                answer(decision)
            }
        }
        settings.chooseIdentity = { issuers, answer in
            taskState.core.askIdentity(issuers, at: url, for: task, of: taskState.session) { identity, refusal in
                guard let refusal else { return answer(identity) }
                taskState.loop.execute { self.fail(refusal) }
            }
        }
        return settings
    }
}

/// Drives a task that cannot run: it fails as soon as it is resumed or cancelled. References the task weakly, so that a task
/// that is never resumed is released.
final class RefusedTask: TaskDriver {
    typealias End = @Sendable (URLSessionTask, URLError) -> Void

    private struct State {
        weak var task: URLSessionTask?
        var end: End?
    }

    let error: URLError
    private let state: Mutex<State>

    /// - Parameter end: notifies the delegate of the end; called once.
    init(_ task: URLSessionTask, _ error: URLError, _ end: @escaping End) {
        self.error = error
        self.state = Mutex(State(task: task, end: end))
    }

    /// For a stream or WebSocket task.
    convenience init(_ task: URLSessionTask, of session: URLSession, _ error: URLError) {
        self.init(task, error) { task, error in
            session.core.notifyEnd(of: task, error, TaskMetricsRecord(), session: session)
        }
    }

    func resumed() { self.end(self.error) }
    func suspended() {}
    func cancelled() { self.end(LoadFailure.error(.cancelled, url: self.error.failingURL)) }
    func priorityChanged(_ priority: Float) {}

    private func end(_ error: URLError) {
        let state = self.state.withLock { state in
            defer { state = State() }
            return state
        }
        if let task = state.task { state.end?(task, error) }
    }
}
