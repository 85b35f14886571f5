import Foundation
import HTTPTransport
import Observation
import Synchronization

/// One load, or one connection, of a session: made suspended by a method of the session, alive until its end.
///
/// For any number of threads. Key-value observation does not exist on Linux: what is told here can be observed with
/// `withObservationTracking` and `Observations`.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    public typealias State = URLSessionTaskState

    public class var defaultPriority: Float { NSURLSessionTaskPriorityDefault }
    public class var lowPriority: Float { NSURLSessionTaskPriorityLow }
    public class var highPriority: Float { NSURLSessionTaskPriorityHigh }

    let metadata: Mutex<TaskMetadata>
    /// `nil` for a task that no session made.
    let session: URLSession?
    /// Set before anybody else has the task; dropped when that has nothing more to do, since it holds the task in turn.
    private let currentDriver = Mutex<(any TaskDriver)?>(nil)

    init(_ facts: TaskMetadata, of session: URLSession) {
        self.metadata = Mutex(facts)
        self.session = session
        super.init()
    }

    /// A task that no session made: it is over, and does nothing.
    @available(*, deprecated, message: "Tasks are made by sessions.")
    public override init() {
        var facts = TaskMetadata(identifier: 0, request: nil)
        facts.state = .completed
        self.metadata = Mutex(facts)
        self.session = nil
        super.init()
    }

    var driver: (any TaskDriver)? { self.currentDriver.withLock { $0 } }

    /// - Parameter driver: `nil` lets go of the one there is.
    func setDriver(_ driver: (any TaskDriver)?) { self.currentDriver.withLock { $0 = driver } }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The task itself.
    open func copy(with zone: NSZone?) -> Any { self }

    // MARK: What it tells

    func observe<Value>(_ keyPath: KeyPath<URLSessionTask, Value>, _ body: (borrowing TaskMetadata) -> Value) -> Value {
        let registrar = self.metadata.withLock { facts in
            if let registrar = facts.registrar { return registrar }
            let registrar = ObservationRegistrar()
            facts.registrar = registrar
            return registrar
        }
        registrar.access(self, keyPath: keyPath)
        return self.metadata.withLock { body($0) }
    }

    func mutate<Value>(
        _ keyPath: @autoclosure () -> KeyPath<URLSessionTask, Value>, _ body: (inout TaskMetadata) -> Void
    ) {
        // `nil` where nobody has looked at anything that changes: there is nobody to tell.
        let registrar = self.metadata.withLock { facts in
            body(&facts)
            return facts.registrar
        }
        // Told when it has changed: who looks again on another thread, between the telling and the change, would find the
        // old value and never hear of the new one.
        registrar?.withMutation(of: self, keyPath: keyPath()) {}
    }

    /// Changes what it likes where nobody looks: no property is observed, nor the progress.
    /// - Returns: whether it did.
    func mutateIfUnobserved(_ body: (inout TaskMetadata) -> Void) -> Bool {
        self.metadata.withLock { facts in
            guard facts.registrar == nil, facts.progress == nil else { return false }
            body(&facts)
            return true
        }
    }

    /// Unique among the tasks of the session, from 1 up.
    open var taskIdentifier: Int { self.metadata.withLock { $0.identifier } }

    /// As it was given; `nil` for stream tasks.
    open var originalRequest: URLRequest? { self.metadata.withLock { $0.originalRequest } }

    /// As it is now: redirects and credentials change it.
    open var currentRequest: URLRequest? { self.observe(\.currentRequest) { $0.currentRequest } }

    /// `nil` until the server has answered.
    open var response: URLResponse? { self.observe(\.response) { $0.response } }

    /// `nil` while the task lives, and where all went well.
    open var error: (any Error)? { self.observe(\.error) { $0.error } }

    open var state: State { self.observe(\.state) { $0.state } }

    /// Bytes of the body that have left, and that have come; without heads and framing, and as they were on the wire.
    open var countOfBytesSent: Int64 { self.observe(\.countOfBytesSent) { $0.bytesSent } }
    open var countOfBytesReceived: Int64 { self.observe(\.countOfBytesReceived) { $0.bytesReceived } }

    /// `NSURLSessionTransferSizeUnknown` where it is not known; 0 for no body.
    open var countOfBytesExpectedToSend: Int64 { self.observe(\.countOfBytesExpectedToSend) { $0.expectedToSend } }
    open var countOfBytesExpectedToReceive: Int64 {
        self.observe(\.countOfBytesExpectedToReceive) { $0.expectedToReceive }
    }

    // MARK: What may be set

    /// Asked before the session's delegate, method by method. Can be set until the task is first resumed; later it
    /// changes nothing. `nil` once the task is over.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { self.metadata.withLock { $0.delegate?.task } }
        set {
            let face = newValue.map { DelegateProxy($0) }
            self.metadata.withLock { if !$0.hasBegun, $0.state != .completed { $0.delegate = face } }
        }
    }

    /// A label of the program's own.
    open var taskDescription: String? {
        get { self.observe(\.taskDescription) { $0.description } }
        set { self.mutate(\.taskDescription) { $0.description = newValue } }
    }

    /// 0 to 1, 0.5 by default: who waits for a connection is served in this order. A value outside is cut to it.
    open var priority: Float {
        get { self.observe(\.priority) { $0.priority } }
        set {
            let priority = newValue.isNaN ? NSURLSessionTaskPriorityDefault : min(1, max(0, newValue))
            self.mutate(\.priority) { $0.priority = priority }
            self.driver?.priorityChanged(priority)
        }
    }

    /// Kept, and without effect: it is for background sessions.
    open var earliestBeginDate: Date? {
        get { self.observe(\.earliestBeginDate) { $0.earliestBeginDate } }
        set { self.mutate(\.earliestBeginDate) { $0.earliestBeginDate = newValue } }
    }

    /// Hints in bytes, heads included; -1 by default. `progress` uses them where nothing better is known.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { self.observe(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend } }
        set { self.mutate(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend = newValue } }
    }
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { self.observe(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive } }
        set { self.mutate(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive = newValue } }
    }

    /// Whether content is given as it comes; `false` lets it be given in one piece at the end.
    open var prefersIncrementalDelivery: Bool {
        get { self.observe(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery } }
        set { self.mutate(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery = newValue } }
    }

    /// Of the bytes sent and received; cancelling, pausing or resuming it does the same to the task.
    open var progress: Progress {
        self.metadata.withLock { facts in
            if let progress = facts.progress { return progress.root }
            let progress = TaskProgress(facts, of: self)
            if facts.state == .completed, facts.error == nil { progress.finish() }
            facts.progress = progress
            return progress.root
        }
    }

    // MARK: Verbs

    /// Begins, or undoes one `suspend`. More of these than of those do no harm.
    open func resume() {
        let goesOn = self.metadata.withLock { facts in
            guard facts.suspensions > 0, facts.state == .suspended else { return false }
            facts.suspensions -= 1
            return facts.suspensions == 0
        }
        guard goesOn else { return }
        self.mutate(\.state) { facts in
            guard facts.state == .suspended, facts.suspensions == 0 else { return }
            facts.state = .running
            facts.hasBegun = true
        }
        self.driver?.resumed()
    }

    /// Lets nothing happen, timeouts included, until as many `resume` follow. What has been received already may still
    /// be told.
    open func suspend() {
        let stops = self.metadata.withLock { facts in
            guard facts.state == .running || facts.state == .suspended else { return false }
            facts.suspensions += 1
            return facts.suspensions == 1
        }
        guard stops else { return }
        self.mutate(\.state) { if $0.state == .running, $0.suspensions > 0 { $0.state = .suspended } }
        self.driver?.suspended()
    }

    /// Ends the task with `URLError.cancelled`. Returns at once: what was on its way may still be told before.
    open func cancel() {
        guard self.beginCancelling() else { return }
        self.driver?.cancelled()
    }

    /// - Returns: whether there is anything to cancel.
    func beginCancelling() -> Bool {
        let cancels = self.metadata.withLock { $0.state == .running || $0.state == .suspended }
        guard cancels else { return false }
        self.mutate(\.state) { if $0.state != .completed { $0.state = .canceling } }
        return true
    }

    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self))>{ taskIdentifier: \(self.taskIdentifier) }"
    }
}

extension URLSessionTask: Observable {}

/// Does what a task is told, by the kind of task. Called from any thread.
protocol TaskDriver: AnyObject, Sendable {
    /// The task may go on, or begin.
    func resumed()
    /// Nothing more is to happen until `resumed`.
    func suspended()
    /// The task is to end with `URLError.cancelled`.
    func cancelled()
    /// 0 to 1.
    func priorityChanged(_ priority: Float)
}

/// What a task tells of itself; read and written under the task's lock.
struct TaskMetadata {
    let identifier: Int
    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var state = URLSessionTaskState.suspended
    /// Calls of `suspend` that no `resume` has undone; a new task has one.
    var suspensions = 1
    var bytesSent: Int64 = 0
    var bytesReceived: Int64 = 0
    var expectedToSend: Int64 = 0
    var expectedToReceive: Int64 = NSURLSessionTransferSizeUnknown
    var clientExpectsToSend: Int64 = NSURLSessionTransferSizeUnknown
    var clientExpectsToReceive: Int64 = NSURLSessionTransferSizeUnknown
    var description: String?
    var priority = NSURLSessionTaskPriorityDefault
    var earliestBeginDate: Date?
    var prefersIncrementalDelivery = true
    /// Whether it was resumed at some time.
    var hasBegun = false
    var delegate: DelegateProxy?
    var progress: TaskProgress?
    /// Made for who first looks at a property that can be observed.
    var registrar: ObservationRegistrar?

    init(identifier: Int, request: URLRequest?) {
        self.identifier = identifier
        self.originalRequest = request
        self.currentRequest = request
    }
}

/// A task's progress as a tree: a whole of 100 parts, of which sending and receiving have theirs.
final class TaskProgress: @unchecked Sendable {
    let root: Progress
    private let sending: Progress?
    private let receiving: Progress

    init(_ facts: borrowing TaskMetadata, of task: URLSessionTask) {
        self.root = Progress(totalUnitCount: 100)
        self.root.kind = .file
        let sends = facts.expectedToSend != 0
        self.sending = sends ? Progress(totalUnitCount: -1, parent: self.root, pendingUnitCount: 50) : nil
        self.receiving = Progress(totalUnitCount: -1, parent: self.root, pendingUnitCount: sends ? 50 : 100)
        self.root.isCancellable = true
        self.root.isPausable = true
        self.root.cancellationHandler = { [weak task] in task?.cancel() }
        self.root.pausingHandler = { [weak task] in task?.suspend() }
        self.root.resumingHandler = { [weak task] in task?.resume() }
        self.update(facts)
    }

    /// Not under the lock of the task: handlers of the program may run.
    func update(_ facts: borrowing TaskMetadata) {
        if let sending {
            Self.update(
                sending, done: facts.bytesSent,
                of: facts.expectedToSend >= 0 ? facts.expectedToSend : facts.clientExpectsToSend)
        }
        Self.update(
            self.receiving, done: facts.bytesReceived,
            of: facts.expectedToReceive >= 0 ? facts.expectedToReceive : facts.clientExpectsToReceive)
    }

    /// Everything that was to come has come.
    func finish() {
        for part in [self.sending, self.receiving] {
            guard let part else { continue }
            let done = max(1, part.completedUnitCount)
            part.totalUnitCount = done
            part.completedUnitCount = done
        }
    }

    private static func update(_ part: Progress, done: Int64, of total: Int64) {
        if part.totalUnitCount != total { part.totalUnitCount = total >= 0 ? max(total, done) : -1 }
        part.completedUnitCount = done
    }
}

/// Ends the transfers of one session that take longer than they may. One timer serves them all, since nearly every one
/// ends long before: it rings for the first, and looks then who else there is.
///
/// On the session's event loop.
final class ResourceTimer: @unchecked Sendable {
    private var timer: (rings: ContinuousClock.Instant, timer: PoolTimer)?

    deinit { self.timer?.timer.cancel() }

    /// Rings at `deadline`, if not before.
    func arm(until deadline: ContinuousClock.Instant, for core: SessionCore) {
        if let timer = self.timer, timer.rings <= deadline { return }
        self.timer?.timer.cancel()
        let delay = max(.zero, ContinuousClock.now.duration(to: deadline))
        self.timer = (
            deadline,
            core.pool.schedule(after: delay) { [weak self, weak core] in
                if let self, let core { self.fire(core) }
            }
        )
    }

    private func fire(_ core: SessionCore) {
        self.timer = nil
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for task in core.state.withLock({ Array($0.tasks.values) }) {
            guard let transfer = task.driver as? TaskLoader, let deadline = transfer.resourceDeadline else { continue }
            if deadline <= now {
                transfer.resourceTimeoutExpired()
            } else {
                next = min(next ?? deadline, deadline)
            }
        }
        if let next { self.arm(until: next, for: core) }
    }
}

/// Who gets what a transfer brings.
enum LoadConsumer: Sendable {
    /// The delegate, message by message.
    case delegate
    /// A completion handler of a data or upload task.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// A completion handler of a download task.
    case file(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// Who awaits a download: the file stays.
    case lastingFile(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// Who awaits the data: told on the loop, without the delegate queue between, unless a delegate is told the content.
    case awaitedData(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// Who reads byte by byte: the response when it is there, then the content.
    case bytes(ByteChannel, @Sendable (Result<URLResponse, any Error>) -> Void)

    var isDelegate: Bool {
        if case .delegate = self { true } else { false }
    }
}
