import Foundation
import Observation
import Synchronization

/// One load, or one connection, of a session. Methods of the session create tasks suspended.
///
/// Thread-safe. There is no key-value observation on Linux: observe properties with `withObservationTracking` and
/// `Observations`.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {  // Not final; thread-safe.
    public typealias State = URLSessionTaskState

    public class var defaultPriority: Float { NSURLSessionTaskPriorityDefault }
    public class var lowPriority: Float { NSURLSessionTaskPriorityLow }
    public class var highPriority: Float { NSURLSessionTaskPriorityHigh }

    let metadata: Mutex<TaskMetadata>
    /// `nil` for a task that no session created.
    let session: URLSession?
    /// Set before the program gets the task. The driver holds the task in turn, so it is dropped at the end.
    private let currentDriver = Mutex<(any TaskDriver)?>(nil)

    init(_ metadata: TaskMetadata, of session: URLSession) {
        self.metadata = Mutex(metadata)
        self.session = session
        super.init()
    }

    /// A completed task that does nothing.
    @available(*, deprecated, message: "Tasks are made by sessions.")
    public override init() {
        var metadata = TaskMetadata(identifier: 0, request: nil)
        metadata.state = .completed
        self.metadata = Mutex(metadata)
        self.session = nil
        super.init()
    }

    var driver: (any TaskDriver)? { self.currentDriver.withLock { $0 } }

    func setDriver(_ driver: (any TaskDriver)?) { self.currentDriver.withLock { $0 = driver } }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The task itself.
    open func copy(with zone: NSZone?) -> Any { self }

    /// Runs `work` on the session's delegate queue, after the task's earlier messages; immediately if no session created
    /// the task.
    func onDelegateQueue(_ work: @escaping @Sendable () -> Void) {
        if let queue = self.session?.core.delegateQueue { queue.add(of: self, work) } else { work() }
    }

    // MARK: Observable properties

    /// Reads a property and registers the read with the observation in progress, if there is one.
    private func observe<Value>(
        _ keyPath: KeyPath<URLSessionTask, Value>, _ body: (borrowing TaskMetadata) -> Value
    ) -> Value {
        let observers = self.metadata.withLock { metadata in
            if let observers = metadata.observers { return observers }
            let observers = PropertyObservers()
            metadata.observers = observers
            return observers
        }
        observers.registrar.access(self, keyPath: keyPath)
        return self.metadata.withLock { body($0) }
    }

    /// Changes the value behind `keyPath` and notifies its observers.
    @discardableResult
    func mutate<Value, Result>(
        _ keyPath: @autoclosure () -> KeyPath<URLSessionTask, Value>, _ body: (inout TaskMetadata) -> Result
    ) -> Result {
        let (observers, result) = self.metadata.withLock { metadata in
            let result = body(&metadata)
            return (metadata.observers, result)
        }
        // After the change: an observer notified before it could read the old value on another thread, and would not be
        // notified again.
        observers?.registrar.withMutation(of: self, keyPath: keyPath()) {}
        return result
    }

    /// Changes several values at once if the program observes neither properties nor the progress.
    /// - Returns: whether `body` ran.
    func mutateIfUnobserved(_ body: (inout TaskMetadata) -> Void) -> Bool {
        self.metadata.withLock { metadata in
            guard metadata.observers == nil, metadata.progress == nil else { return false }
            body(&metadata)
            return true
        }
    }

    /// Records the end of the task.
    func complete(_ error: (any Error)?) {
        let isUnobserved = self.mutateIfUnobserved {
            $0.error = error
            $0.state = .completed
        }
        guard !isUnobserved else { return }
        self.mutate(\.error) { $0.error = error }
        self.mutate(\.state) { $0.state = .completed }
        if error == nil { self.metadata.withLock { $0.progress }?.finish() }
    }

    /// Records that `new` has taken the place of the task, and passes on what the program did to this one meanwhile. On
    /// the delegate queue, before `new` is given to the delegate.
    func becomes(_ new: URLSessionTask) {
        let progress = self.metadata.withLock { metadata in
            metadata.successor = new
            if let own = metadata.progress { new.metadata.withLock { if $0.progress == nil { $0.progress = own } } }
            return metadata.progress
        }
        progress?.control(new)
        let (last, suspensions) = self.mutate(\.state) { metadata in
            defer { metadata.state = .completed }
            return (metadata.state, metadata.suspensions)
        }
        switch last {
        case .canceling: new.cancel()
        case .running, .suspended: new.takeSuspensions(suspensions)
        case .completed: break
        }
        self.metadata.withLock { $0.delegate = nil }
        // It retains the task.
        self.setDriver(nil)
    }

    private func takeSuspensions(_ count: Int) {
        self.mutate(\.state) { metadata in
            guard metadata.state == .running || metadata.state == .suspended else { return }
            metadata.suspensions = count
            metadata.state = count == 0 ? .running : .suspended
            if count == 0 { metadata.hasBegun = true }
        }
        if count == 0 { self.driver?.resumed() } else { self.driver?.suspended() }
    }

    /// Of a task that was cancelled before its success was reported; `error` for all others.
    func finalError(_ error: URLError?) -> URLError? {
        guard error == nil, self.metadata.withLock({ $0.discardsResult }) else { return error }
        return LoadFailure.error(.cancelled, url: self.latestRequest?.url)
    }

    /// Unique among the tasks of the session, starting at 1.
    open var taskIdentifier: Int { self.metadata.withLock { $0.identifier } }

    /// The request that the task was created with; `nil` for stream tasks.
    open var originalRequest: URLRequest? { self.metadata.withLock { $0.originalRequest } }

    /// The request as changed by redirects and credentials.
    open var currentRequest: URLRequest? { self.observe(\.currentRequest) { $0.currentRequest } }

    /// `currentRequest` for the library's own use: reading that property registers an observation.
    var latestRequest: URLRequest? { self.metadata.withLock { $0.currentRequest } }

    /// `nil` until the response head has arrived.
    open var response: URLResponse? { self.observe(\.response) { $0.response } }

    /// `nil` until the task has failed.
    open var error: (any Error)? { self.observe(\.error) { $0.error } }

    open var state: State { self.observe(\.state) { $0.state } }

    /// Bytes of the body sent and received, without heads and framing, and before the content coding is removed. A body that
    /// is sent again, as after a redirect or a challenge, is counted from 0.
    open var countOfBytesSent: Int64 { self.observe(\.countOfBytesSent) { $0.bytesSent } }
    open var countOfBytesReceived: Int64 { self.observe(\.countOfBytesReceived) { $0.bytesReceived } }

    /// `NSURLSessionTransferSizeUnknown` if unknown; 0 without a body.
    open var countOfBytesExpectedToSend: Int64 { self.observe(\.countOfBytesExpectedToSend) { $0.expectedToSend } }
    open var countOfBytesExpectedToReceive: Int64 {
        self.observe(\.countOfBytesExpectedToReceive) { $0.expectedToReceive }
    }

    // MARK: Settings

    /// Takes precedence over the session's delegate, method by method. Setting it after the task was first resumed has
    /// no effect. `nil` once the task has completed.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { self.metadata.withLock { $0.delegate?.task } }
        set {
            let proxy = newValue.map { DelegateProxy($0) }
            self.metadata.withLock { if !$0.hasBegun, $0.state != .completed { $0.delegate = proxy } }
        }
    }

    /// A label for the program's use.
    open var taskDescription: String? {
        get { self.observe(\.taskDescription) { $0.description } }
        set {
            self.mutate(\.taskDescription) { $0.description = newValue }
            self.driver?.attributesChanged()
        }
    }

    /// 0 to 1, by default 0.5; other values are clamped. Requests that wait for a connection are served in this order; an
    /// HTTP/2 server receives it as the urgency of RFC 9218.
    open var priority: Float {
        get { self.observe(\.priority) { $0.priority } }
        set {
            let priority = newValue.isNaN ? NSURLSessionTaskPriorityDefault : min(1, max(0, newValue))
            self.mutate(\.priority) { $0.priority = priority }
            self.driver?.priorityChanged(priority)
        }
    }

    /// For tasks of background sessions: the task does not begin before, and then calls `willBeginDelayedRequest`. Others
    /// store it without effect.
    open var earliestBeginDate: Date? {
        get { self.observe(\.earliestBeginDate) { $0.earliestBeginDate } }
        set {
            self.mutate(\.earliestBeginDate) { $0.earliestBeginDate = newValue }
            self.driver?.attributesChanged()
        }
    }

    /// Hints in bytes, heads included; -1 by default. `progress` uses them while the real sizes are unknown. A background
    /// session begins smaller transfers first.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { self.observe(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend } }
        set {
            self.mutate(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend = newValue }
            self.driver?.attributesChanged()
        }
    }
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { self.observe(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive } }
        set {
            self.mutate(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive = newValue }
            self.driver?.attributesChanged()
        }
    }

    /// Without effect: content is always delivered as it arrives, which `false` allows too.
    open var prefersIncrementalDelivery: Bool {
        get { self.observe(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery } }
        set { self.mutate(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery = newValue } }
    }

    /// Progress of the bytes sent and received. Cancelling, pausing or resuming it does the same to the task.
    open var progress: Progress {
        let (own, successor) = self.metadata.withLock { metadata -> (Progress?, URLSessionTask?) in
            if let successor = metadata.successor { return (nil, successor) }
            if let progress = metadata.progress { return (progress.root, nil) }
            let progress = TaskProgress(metadata, of: self)
            if metadata.state == .completed, metadata.error == nil { progress.finish() }
            metadata.progress = progress
            return (progress.root, nil)
        }
        return own ?? successor?.progress ?? Progress(totalUnitCount: 0)
    }

    // MARK: Resuming, suspending, cancelling

    /// Starts the task, or undoes one `suspend`. Excess calls have no effect.
    open func resume() {
        let resumes = self.metadata.withLock { metadata in
            guard metadata.suspensions > 0, metadata.state == .suspended else { return false }
            metadata.suspensions -= 1
            return metadata.suspensions == 0
        }
        guard resumes else { return }
        self.mutate(\.state) { metadata in
            guard metadata.state == .suspended, metadata.suspensions == 0 else { return }
            metadata.state = .running
            metadata.hasBegun = true
        }
        self.driver?.resumed()
    }

    /// Pauses the task and its timeouts until `resume` was called as often. Data received before may still be
    /// delivered.
    open func suspend() {
        let stops = self.metadata.withLock { metadata in
            guard metadata.state == .running || metadata.state == .suspended else { return false }
            metadata.suspensions += 1
            return metadata.suspensions == 1
        }
        guard stops else { return }
        self.mutate(\.state) { if $0.state == .running, $0.suspensions > 0 { $0.state = .suspended } }
        self.driver?.suspended()
    }

    /// Ends the task with `URLError.cancelled`, unless its completion was delivered before. Returns immediately: calls
    /// already queued may still reach the delegate.
    open func cancel() {
        guard self.beginCancelling(discardingResult: true) else { return }
        self.driver?.cancelled()
    }

    /// - Parameter discardsResult: whether a success that is not delivered yet counts no more.
    /// - Returns: `false` if the task was cancelled or completed before.
    func beginCancelling(discardingResult discardsResult: Bool = false) -> Bool {
        let cancels = self.metadata.withLock { metadata in
            guard metadata.state == .running || metadata.state == .suspended else { return false }
            metadata.discardsResult = discardsResult
            return true
        }
        guard cancels else { return false }
        self.mutate(\.state) { if $0.state != .completed { $0.state = .canceling } }
        return true
    }

    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self))>{ taskIdentifier: \(self.taskIdentifier) }"
    }
}

extension URLSessionTask: Observable {}

/// Carries out one kind of task. Called from any thread.
protocol TaskDriver: AnyObject, Sendable {
    func resumed()
    func suspended()
    /// The task must end with `URLError.cancelled`.
    func cancelled()
    func priorityChanged(_ priority: Float)
    /// A property changed that a background session passes on: description, earliest date or expected sizes.
    func attributesChanged()
}

extension TaskDriver {
    func attributesChanged() {}
}

/// The mutable state of a task, guarded by the task's lock.
struct TaskMetadata {
    let identifier: Int
    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var state = URLSessionTaskState.suspended
    /// Whether the task was cancelled, and not for its resume data or by a closing handshake.
    var discardsResult = false
    /// Calls of `suspend` not yet undone by `resume`; a new task has one.
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
    /// Whether the task was ever resumed.
    var hasBegun = false
    var delegate: DelegateProxy?
    var progress: TaskProgress?
    /// The task that took the place of this one.
    var successor: URLSessionTask?
    /// Created when an observable property is first read.
    var observers: PropertyObservers?

    /// That of a task which takes the place of this one: it gets a cancellation by `becomes`.
    var ofSuccessor: TaskMetadata {
        var metadata = self
        if metadata.state == .canceling { metadata.state = .running }
        metadata.discardsResult = false
        return metadata
    }

    init(identifier: Int, request: URLRequest?) {
        self.identifier = identifier
        self.originalRequest = request
        self.currentRequest = request
    }
}

/// The observers of a task's properties. A class, because the layout of `ObservationRegistrar` is known at run time only,
/// and with it that of all types that contain one.
final class PropertyObservers: Sendable {
    let registrar = ObservationRegistrar()
}

/// A task's progress as a tree: a root of 100 units, with children for sending and receiving.
final class TaskProgress: Sendable {
    let root: Progress
    private let sending: Progress?
    private let receiving: Progress
    /// On which the methods of the progress act. Setting its handlers again would call them where it is paused.
    private let target: Mutex<WeakTask>

    private struct WeakTask {
        weak var task: URLSessionTask?
    }

    init(_ metadata: borrowing TaskMetadata, of task: URLSessionTask) {
        self.root = Progress(totalUnitCount: 100)
        self.root.kind = .file
        let sends = metadata.expectedToSend != 0
        self.sending = sends ? Progress(totalUnitCount: -1, parent: self.root, pendingUnitCount: 50) : nil
        self.receiving = Progress(totalUnitCount: -1, parent: self.root, pendingUnitCount: sends ? 50 : 100)
        self.root.isCancellable = true
        self.root.isPausable = true
        self.target = Mutex(WeakTask(task: task))
        self.root.cancellationHandler = { [weak self] in self?.task?.cancel() }
        self.root.pausingHandler = { [weak self] in self?.task?.suspend() }
        self.root.resumingHandler = { [weak self] in self?.task?.resume() }
        self.update(metadata)
    }

    private var task: URLSessionTask? { self.target.withLock { $0.task } }

    /// Makes the methods of the progress those of `task`.
    func control(_ task: URLSessionTask) {
        self.target.withLock { $0.task = task }
    }

    /// Must not be called with the task's lock held: handlers of the program may run.
    func update(_ metadata: borrowing TaskMetadata) {
        if let sending {
            Self.update(
                sending, done: metadata.bytesSent,
                of: metadata.expectedToSend >= 0 ? metadata.expectedToSend : metadata.clientExpectsToSend)
        }
        Self.update(
            self.receiving, done: metadata.bytesReceived,
            of: metadata.expectedToReceive >= 0 ? metadata.expectedToReceive : metadata.clientExpectsToReceive)
    }

    func finish() {
        for part in [self.sending, self.receiving].compactMap(\.self) {
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
