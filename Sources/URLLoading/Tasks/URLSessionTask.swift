import Foundation
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

    let facts: Mutex<TaskFacts>
    /// `nil` for a task that no session made.
    let session: URLSession?
    /// Set before anybody else has the task; dropped when that has nothing more to do, since it holds the task in turn.
    private let driving = Mutex<(any TaskDriving)?>(nil)

    init(_ facts: TaskFacts, of session: URLSession) {
        self.facts = Mutex(facts)
        self.session = session
        super.init()
    }

    /// A task that no session made: it is over, and does nothing.
    @available(*, deprecated, message: "Tasks are made by sessions.")
    public override init() {
        var facts = TaskFacts(identifier: 0, request: nil)
        facts.state = .completed
        self.facts = Mutex(facts)
        self.session = nil
        super.init()
    }

    var driver: (any TaskDriving)? { self.driving.withLock { $0 } }

    /// - Parameter driver: `nil` lets go of the one there is.
    func use(_ driver: (any TaskDriving)?) { self.driving.withLock { $0 = driver } }

    open override func copy() -> Any { self.copy(with: nil) }
    /// The task itself.
    open func copy(with zone: NSZone?) -> Any { self }

    // MARK: What it tells

    func tell<Value>(_ keyPath: KeyPath<URLSessionTask, Value>, _ body: (borrowing TaskFacts) -> Value) -> Value {
        let registrar = self.facts.withLock { facts in
            if let registrar = facts.registrar { return registrar }
            let registrar = ObservationRegistrar()
            facts.registrar = registrar
            return registrar
        }
        registrar.access(self, keyPath: keyPath)
        return self.facts.withLock { body($0) }
    }

    func change<Value>(
        _ keyPath: @autoclosure () -> KeyPath<URLSessionTask, Value>, _ body: (inout TaskFacts) -> Void
    ) {
        // `nil` where nobody has looked at anything that changes: there is nobody to tell.
        let registrar = self.facts.withLock { facts in
            body(&facts)
            return facts.registrar
        }
        // Told when it has changed: who looks again on another thread, between the telling and the change, would find the
        // old value and never hear of the new one.
        registrar?.withMutation(of: self, keyPath: keyPath()) {}
    }

    /// Changes what it likes where nobody looks: no property is observed, nor the progress.
    /// - Returns: whether it did.
    func changeUnseen(_ body: (inout TaskFacts) -> Void) -> Bool {
        self.facts.withLock { facts in
            guard facts.registrar == nil, facts.progress == nil else { return false }
            body(&facts)
            return true
        }
    }

    /// Unique among the tasks of the session, from 1 up.
    open var taskIdentifier: Int { self.facts.withLock { $0.identifier } }

    /// As it was given; `nil` for stream tasks.
    open var originalRequest: URLRequest? { self.facts.withLock { $0.originalRequest } }

    /// As it is now: redirects and credentials change it.
    open var currentRequest: URLRequest? { self.tell(\.currentRequest) { $0.currentRequest } }

    /// `nil` until the server has answered.
    open var response: URLResponse? { self.tell(\.response) { $0.response } }

    /// `nil` while the task lives, and where all went well.
    open var error: (any Error)? { self.tell(\.error) { $0.error } }

    open var state: State { self.tell(\.state) { $0.state } }

    /// Bytes of the body that have left, and that have come; without heads and framing, and as they were on the wire.
    open var countOfBytesSent: Int64 { self.tell(\.countOfBytesSent) { $0.sent } }
    open var countOfBytesReceived: Int64 { self.tell(\.countOfBytesReceived) { $0.received } }

    /// `NSURLSessionTransferSizeUnknown` where it is not known; 0 for no body.
    open var countOfBytesExpectedToSend: Int64 { self.tell(\.countOfBytesExpectedToSend) { $0.expectedToSend } }
    open var countOfBytesExpectedToReceive: Int64 {
        self.tell(\.countOfBytesExpectedToReceive) { $0.expectedToReceive }
    }

    // MARK: What may be set

    /// Asked before the session's delegate, method by method. Can be set until the task is first resumed; later it
    /// changes nothing. `nil` once the task is over.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { self.facts.withLock { $0.delegate?.task } }
        set {
            let face = newValue.map { DelegateFace($0) }
            self.facts.withLock { if !$0.hasBegun, $0.state != .completed { $0.delegate = face } }
        }
    }

    /// A label of the program's own.
    open var taskDescription: String? {
        get { self.tell(\.taskDescription) { $0.description } }
        set { self.change(\.taskDescription) { $0.description = newValue } }
    }

    /// 0 to 1, 0.5 by default: who waits for a connection is served in this order. A value outside is cut to it.
    open var priority: Float {
        get { self.tell(\.priority) { $0.priority } }
        set {
            let priority = newValue.isNaN ? NSURLSessionTaskPriorityDefault : min(1, max(0, newValue))
            self.change(\.priority) { $0.priority = priority }
            self.driver?.priorityChanged(priority)
        }
    }

    /// Kept, and without effect: it is for background sessions.
    open var earliestBeginDate: Date? {
        get { self.tell(\.earliestBeginDate) { $0.earliestBeginDate } }
        set { self.change(\.earliestBeginDate) { $0.earliestBeginDate = newValue } }
    }

    /// Hints in bytes, heads included; -1 by default. `progress` uses them where nothing better is known.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { self.tell(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend } }
        set { self.change(\.countOfBytesClientExpectsToSend) { $0.clientExpectsToSend = newValue } }
    }
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { self.tell(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive } }
        set { self.change(\.countOfBytesClientExpectsToReceive) { $0.clientExpectsToReceive = newValue } }
    }

    /// Whether content is given as it comes; `false` lets it be given in one piece at the end.
    open var prefersIncrementalDelivery: Bool {
        get { self.tell(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery } }
        set { self.change(\.prefersIncrementalDelivery) { $0.prefersIncrementalDelivery = newValue } }
    }

    /// Of the bytes sent and received; cancelling, pausing or resuming it does the same to the task.
    open var progress: Progress {
        self.facts.withLock { facts in
            if let progress = facts.progress { return progress.whole }
            let progress = TaskProgress(facts, of: self)
            if facts.state == .completed, facts.error == nil { progress.finish() }
            facts.progress = progress
            return progress.whole
        }
    }

    // MARK: Verbs

    /// Begins, or undoes one `suspend`. More of these than of those do no harm.
    open func resume() {
        let goesOn = self.facts.withLock { facts in
            guard facts.suspensions > 0, facts.state == .suspended else { return false }
            facts.suspensions -= 1
            return facts.suspensions == 0
        }
        guard goesOn else { return }
        self.change(\.state) { facts in
            guard facts.state == .suspended, facts.suspensions == 0 else { return }
            facts.state = .running
            facts.hasBegun = true
        }
        self.driver?.resumed()
    }

    /// Lets nothing happen, timeouts included, until as many `resume` follow. What has been received already may still
    /// be told.
    open func suspend() {
        let stops = self.facts.withLock { facts in
            guard facts.state == .running || facts.state == .suspended else { return false }
            facts.suspensions += 1
            return facts.suspensions == 1
        }
        guard stops else { return }
        self.change(\.state) { if $0.state == .running, $0.suspensions > 0 { $0.state = .suspended } }
        self.driver?.suspended()
    }

    /// Ends the task with `URLError.cancelled`. Returns at once: what was on its way may still be told before.
    open func cancel() {
        guard self.beginCancelling() else { return }
        self.driver?.cancelled()
    }

    /// - Returns: whether there is anything to cancel.
    func beginCancelling() -> Bool {
        let cancels = self.facts.withLock { $0.state == .running || $0.state == .suspended }
        guard cancels else { return false }
        self.change(\.state) { if $0.state != .completed { $0.state = .canceling } }
        return true
    }

    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self))>{ taskIdentifier: \(self.taskIdentifier) }"
    }
}

extension URLSessionTask: Observable {}
