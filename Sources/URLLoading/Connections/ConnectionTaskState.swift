import Foundation
import SessionTasks
import StreamTransport
import Synchronization

/// What the drivers of tasks with a connection of their own share: whom they drive, and how far that has come. On the
/// loop, where not said otherwise.
final class ConnectionTaskState: @unchecked Sendable {
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
    func tell(_ method: DelegateMethod, _ call: @escaping @Sendable (DelegateProxy) -> Void) {
        guard let task = self.task else { return }
        self.core.delegateQueue.notify(self.core.delegates(for: task), method, call)
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
            task.mutate(\.countOfBytesReceived) { $0.bytesReceived = Int64(clamping: counter.bytesReceived) }
            task.mutate(\.countOfBytesSent) { $0.bytesSent = Int64(clamping: counter.bytesSent) }
        }
        self.core.notifyEnd(of: task, error, self.record, session: self.session)
    }
}

extension ConnectionTaskState: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.expired?()
    }
}

/// Drives a task that has a connection of its own, on one of `SharedLoops`.
protocol ConnectionTaskDriver: TaskDriver {
    var life: ConnectionTaskState { get }
    /// The task is resumed for the first time.
    func begin()
    func hold()
    func goOn()
    /// Ends what runs the task; `life.verdict` says why. Ends in `life.end`.
    func breakOff()
}

extension ConnectionTaskDriver {
    // MARK: From any thread

    func resumed() { self.life.loop.execute { self.reconcile() } }
    func suspended() { self.life.loop.execute { self.reconcile() } }
    func cancelled() { self.life.loop.execute { self.fail(LoadFailure.error(.cancelled, url: self.life.url)) } }
    /// A connection of its own waits for nobody.
    func priorityChanged(_ priority: Float) {}

    // MARK: On the loop

    /// Does what the task's state asks for now, however often that changed meanwhile.
    private func reconcile() {
        guard let state = self.life.task?.metadata.withLock({ $0.state }) else { return }
        switch (state, self.life.stage) {
        case (.running, .waiting):
            self.life.stage = .running
            self.life.startResourceTimer { self.timeOut() }
            self.begin()
        case (.running, .held):
            self.life.stage = .running
            self.life.goOnWithResourceTimer()
            self.goOn()
        case (.suspended, .running):
            self.life.stage = .held
            self.life.holdResourceTimer()
            self.hold()
        default: break
        }
    }

    private func timeOut() {
        self.fail(
            LoadFailure.error(.timedOut, url: self.life.url, text: "The task lasted longer than its session allows."))
    }

    /// Ends the task.
    func fail(_ error: URLError) {
        guard self.life.stage != .over else { return }
        self.life.verdict = self.life.verdict ?? error
        self.breakOff()
    }
}

/// The event loops of all stream and WebSocket tasks of the process. Their threads start when the first is asked for,
/// and stay.
enum SharedLoops {
    /// More would only move packets between caches.
    private static let limit = 4

    private struct State {
        var loops: [Loop] = []
        var last = 0
    }
    private static let state = Mutex(State())

    /// Each in turn.
    /// - Returns: `nil` where the system has no descriptors or threads left; asked again, it tries again.
    static func next() -> Loop? {
        self.state.withLock { state in
            if state.loops.isEmpty {
                let count = min(ProcessInfo.processInfo.activeProcessorCount, Self.limit)
                state.loops = (try? LoopGroup(count: count))?.loops ?? []
            }
            guard !state.loops.isEmpty else { return nil }
            state.last = (state.last + 1) % state.loops.count
            return state.loops[state.last]
        }
    }
}

/// Drives a task that cannot run at all: it ends as soon as it is resumed or cancelled. The task is not held: one that
/// nobody else holds any more leaves nothing behind.
final class RefusedTask: TaskDriver {
    typealias End = @Sendable (URLSessionTask, URLError) -> Void

    private struct State {
        weak var task: URLSessionTask?
        var end: End?
    }

    let error: URLError
    private let state: Mutex<State>

    /// - Parameter end: tells the end of the task; called once.
    init(_ task: URLSessionTask, _ error: URLError, _ end: @escaping End) {
        self.error = error
        self.state = Mutex(State(task: task, end: end))
    }

    /// A stream or WebSocket task.
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

extension AwaitedOperation {
    /// Begins an operation on the loop, and waits for its answer.
    /// - Parameters:
    ///   - begin: gives the operation's number; `nil` if there is nothing to withdraw.
    ///   - withdraw: lets the operation answer at once, if it can still be taken back; called when the Swift task is
    ///     cancelled.
    static func perform<Answer: Sendable>(
        on loop: Loop, _ begin: @escaping @Sendable (@escaping @Sendable (Answer) -> Void) -> UInt64?,
        withdraw: @escaping @Sendable (UInt64) -> Void
    ) async -> Answer {
        let operation = AwaitedOperation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.execute {
                    let number = begin { continuation.resume(returning: $0) }
                    guard let number else { return }
                    // Cancelled before it began: it is taken back as if just after.
                    if operation.mayBegin() { operation.began(number) } else { withdraw(number) }
                }
            }
        } onCancel: {
            loop.execute {
                guard let number = operation.cancel() else { return }
                withdraw(number)
            }
        }
    }
}
