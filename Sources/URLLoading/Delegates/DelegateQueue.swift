import DequeModule
import Foundation
import Synchronization

/// Runs the delegate calls and completion handlers of one session on its `OperationQueue`.
///
/// On a serial queue one operation runs the messages of one turn of the loop in order, so that messages and the program's own
/// operations run in the order in which they were added. On a concurrent queue each message is an operation of its own, and
/// those of one task run one after the other. The program cannot cancel these operations.
final class DelegateQueue: Sendable {
    typealias Message = @Sendable () -> Void

    let queue: OperationQueue
    private let executor: SessionExecutor
    private struct State {
        var messages = Deque<Message>()
        /// The last of them that no operation is there for yet.
        var unscheduledCount = 0
        /// For a concurrent queue: the waiting messages of the tasks that have a message running or scheduled, by the
        /// task's identifier.
        var lanes: [Int: Deque<Message>] = [:]
    }
    private let state = Mutex(State())

    /// - Parameters:
    ///   - queue: `nil` makes a serial one.
    ///   - executor: most messages are added on it.
    init(_ queue: OperationQueue?, _ executor: SessionExecutor) {
        self.executor = executor
        if let queue {
            self.queue = queue
        } else {
            self.queue = OperationQueue()
            self.queue.name = "URLSession delegate queue"
            self.queue.maxConcurrentOperationCount = 1
        }
    }

    /// - Parameter task: its messages run in order; on a concurrent queue others run in any order.
    func add(of task: URLSessionTask? = nil, _ message: @escaping Message) {
        self.add(ofTask: task?.taskIdentifier, message)
    }

    /// - Parameter identifier: that of the task, which may have ended.
    func add(ofTask identifier: @autoclosure () -> Int?, _ message: @escaping Message) {
        guard self.queue.maxConcurrentOperationCount == 1 else {
            guard let identifier = identifier() else { return self.queue.addOperation(MessageOperation(message)) }
            return self.add(message, toLane: identifier)
        }
        let isFirst = self.state.withLock { state in
            state.messages.append(message)
            state.unscheduledCount += 1
            return state.unscheduledCount == 1
        }
        guard isFirst else { return }
        // All messages of one loop turn share an operation: waking the queue costs more than most messages.
        if self.executor.isCurrent { self.executor.executeLater { self.schedule() } } else { self.schedule() }
    }

    private func schedule() {
        let count = self.state.withLock { state in
            defer { state.unscheduledCount = 0 }
            return state.unscheduledCount
        }
        self.queue.addOperation(MessageOperation { self.run(count) })
    }

    private func run(_ count: Int) {
        for left in (0..<count).reversed() {
            self.state.withLock { $0.messages.popFirst() }?()
            // A program that suspends the queue expects not even one more message.
            guard left > 0, self.queue.isSuspended else { continue }
            let rest = MessageOperation { self.run(left) }
            // Before operations that were added after these messages.
            rest.queuePriority = .veryHigh
            return self.queue.addOperation(rest)
        }
    }

    // MARK: Concurrent queues

    private func add(_ message: @escaping Message, toLane lane: Int) {
        let isNew = self.state.withLock { state in
            let isNew = state.lanes[lane] == nil
            state.lanes[lane, default: []].append(message)
            return isNew
        }
        if isNew { self.schedule(lane: lane) }
    }

    private func schedule(lane: Int) {
        self.queue.addOperation(MessageOperation { self.runNext(ofLane: lane) })
    }

    private func runNext(ofLane lane: Int) {
        let next = self.state.withLock { $0.lanes[lane]?.popFirst() }
        next?()
        let isEmpty = self.state.withLock { state in
            let isEmpty = state.lanes[lane]?.isEmpty ?? true
            if isEmpty { state.lanes[lane] = nil }
            return isEmpty
        }
        if !isEmpty { self.schedule(lane: lane) }
    }

    // MARK: Delegate calls

    /// Calls `method` on the first delegate that implements it.
    /// - Returns: `false` if none can; nothing is scheduled then.
    @discardableResult
    func notify(
        _ delegates: [DelegateProxy], of task: URLSessionTask? = nil, _ method: DelegateMethod,
        _ call: @escaping @Sendable (DelegateProxy) -> Void
    ) -> Bool {
        let delegates = delegates.filter { $0.mayImplement(method) }
        guard !delegates.isEmpty else { return false }
        self.add(of: task) { delegates.notifyFirst(method, call) }
        return true
    }

    /// Asks the first delegate that implements the method of a request: tries each request on all delegates before the
    /// next request.
    /// - Parameters:
    ///   - task: if it has ended, no delegate is asked.
    ///   - late: the answer for a task that has ended; `nil` for none, `completion` is not called then.
    ///   - completion: called once, on any thread; with `nil` if no delegate implements any method, and then
    ///     synchronously if that is known already.
    func ask<Answer: Sendable>(
        _ delegates: [DelegateProxy], about task: URLSessionTask, _ requests: DelegateRequest<Answer>...,
        late: Answer? = nil, completion: @escaping @Sendable (Answer?) -> Void
    ) {
        let calls = requests.flatMap { request in
            delegates.filter { $0.mayImplement(request.method) || $0.mayImplement(request.asyncMethod) }
                .map { (request, $0) }
        }
        guard !calls.isEmpty else { return completion(nil) }
        self.add(of: task) {
            // The question may come from a step that outlived the task, and the delegate has had its last call.
            let hasEnded = task.metadata.withLock { $0.state } == .completed
            guard hasEnded else { return self.ask(calls[...], about: task, completion) }
            if let late { completion(late) }
        }
    }

    private func ask<Answer: Sendable>(
        _ calls: ArraySlice<(DelegateRequest<Answer>, DelegateProxy)>, about task: URLSessionTask,
        _ completion: @escaping @Sendable (Answer?) -> Void
    ) {
        guard let (request, delegate) = calls.first else { return completion(nil) }
        let handler = OneShotHandler<Answer> { completion($0) }
        if delegate.notify(request.method, { request.call(delegate, handler) }) { return }
        guard delegate.mayImplement(request.asyncMethod) else {
            return self.ask(calls.dropFirst(), about: task, completion)
        }
        Task {
            if let answer = await delegate.ask(request.asyncMethod, { await request.callAsync(delegate) }) {
                completion(answer)
            } else {
                self.add(of: task) { self.ask(calls.dropFirst(), about: task, completion) }
            }
        }
    }
}

/// Runs messages even after `cancelAllOperations` of the program's queue: without them its tasks would never end.
private final class MessageOperation: Operation, @unchecked Sendable {  // Its only property is constant.
    private let work: DelegateQueue.Message

    init(_ work: @escaping DelegateQueue.Message) {
        self.work = work
        super.init()
    }

    override func main() { self.work() }
    override func cancel() {}
}

/// A delegate method that returns an answer, in its form with a completion handler and in its asynchronous form.
struct DelegateRequest<Answer: Sendable>: Sendable {
    let method: DelegateMethod
    let asyncMethod: DelegateMethod
    let call: @Sendable (DelegateProxy, OneShotHandler<Answer>) -> Void
    let callAsync: @Sendable (DelegateProxy) async -> Answer
}

/// A completion handler that takes the first answer, from any thread, and ignores later ones.
final class OneShotHandler<Answer: Sendable>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    func callAsFunction(_ answer: Answer) {
        let completion = self.completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}
