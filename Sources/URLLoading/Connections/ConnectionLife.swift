import Foundation
import SessionTasks
import StreamTransport

/// What the drivers of tasks with a connection of their own share: whom they drive, and how far that has come. On the
/// loop, where not said otherwise.
final class ConnectionLife: @unchecked Sendable {
    enum Stage {
        case waiting
        case running
        case held
        /// The end is told, or on its way to the delegate queue.
        case over
    }

    let core: SessionCore
    let session: URLSession
    let loop: Loop
    /// `nil` once it is over.
    private(set) var task: URLSessionTask?
    var stage = Stage.waiting
    var record = TaskMetricsRecord()
    /// What counts the bytes of the task.
    var counter: TaskRecord?
    /// Why the task ends, where more is known than the failure of what runs it says.
    var verdict: URLError?

    private let resourceTimer = LoopTimer()
    private var resourceTimeLeft: Duration
    private var resourceTimerStart = ContinuousClock.now
    private var expired: (() -> Void)?
    private var lastURL: URL?

    init(_ task: URLSessionTask, of session: URLSession, on loop: Loop) {
        self.core = session.core
        self.session = session
        self.loop = loop
        self.task = task
        self.resourceTimeLeft = Duration(timeout: session.core.configuration.timeoutIntervalForResource)
    }

    /// Of the task's request; for failures.
    var url: URL? { self.task?.currentRequest?.url ?? self.lastURL }

    /// Tells the delegate something of the task, in the order of the calls.
    func tell(_ method: DelegateMethod, _ call: @escaping @Sendable (DelegateFace) -> Void) {
        guard let task = self.task else { return }
        self.core.line.tell(self.core.faces(for: task), method, call)
    }

    // MARK: Time

    /// - Parameter expired: called when the time for the whole task has passed.
    func startResourceTimer(_ expired: @escaping () -> Void) {
        self.expired = expired
        self.resourceTimerStart = .now
        self.loop.arm(self.resourceTimer, after: self.resourceTimeLeft, target: self)
    }

    func holdResourceTimer() {
        self.loop.disarm(self.resourceTimer)
        self.resourceTimeLeft -= self.resourceTimerStart.duration(to: .now)
    }

    func goOnWithResourceTimer() {
        self.resourceTimerStart = .now
        self.loop.arm(self.resourceTimer, after: max(.zero, self.resourceTimeLeft), target: self)
    }

    // MARK: Failures

    /// What an operation of the task is answered that failed.
    func error(_ failure: TaskFailure) -> URLError {
        self.verdict ?? LoadFailure.error(of: failure, url: self.url)
    }

    /// Of one operation; `nil` for one that went well.
    func error<Value>(_ result: Result<Value, TaskFailure>) -> URLError? {
        if case .failure(let failure) = result { self.error(failure) } else { nil }
    }

    // MARK: The end

    /// The task becomes another one with the same connection, or goes without further messages.
    func leave() -> URLSessionTask? {
        self.stage = .over
        self.loop.disarm(self.resourceTimer)
        self.expired = nil
        self.lastURL = self.url
        defer { self.task = nil }
        return self.task
    }

    /// Tells the end, once.
    func end(_ error: URLError?) {
        guard self.stage != .over, let task = self.leave() else { return }
        // Operations that are asked for from now on fail alike.
        self.verdict = error
        if let counter {
            task.change(\.countOfBytesReceived) { $0.received = Int64(clamping: counter.bytesReceived) }
            task.change(\.countOfBytesSent) { $0.sent = Int64(clamping: counter.bytesSent) }
        }
        self.core.tellEnd(of: task, error, self.record, session: self.session)
    }
}

extension ConnectionLife: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.expired?()
    }
}
