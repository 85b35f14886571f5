import DequeModule
import Foundation
import HTTPTransport
import Synchronization

/// The messages of one session on their way to its delegate queue.
///
/// On a serial queue they share operations: one takes everything that waits, in order, and lets others of the queue in
/// between after `batch` of them. On a queue that runs several at a time each is an operation of its own.
final class DelegateQueue: Sendable {
    typealias Message = @Sendable () -> Void

    private static let batchLimit = 64

    let queue: OperationQueue
    private let pool: ConnectionPool
    private struct State {
        var messages = Deque<Message>()
        var isScheduled = false
    }
    private let state = Mutex(State())

    /// - Parameters:
    ///   - queue: `nil` makes a serial one.
    ///   - pool: on whose event loop most messages begin.
    init(_ queue: OperationQueue?, _ pool: ConnectionPool) {
        self.pool = pool
        if let queue {
            self.queue = queue
        } else {
            let own = OperationQueue()
            own.name = "URLSession delegate queue"
            own.maxConcurrentOperationCount = 1
            self.queue = own
        }
    }

    func add(_ message: @escaping Message) {
        guard self.queue.maxConcurrentOperationCount == 1 else { return self.queue.addOperation(message) }
        let begins = self.state.withLock { state in
            state.messages.append(message)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        guard begins else { return }
        // What one turn of the loop brings is one operation: waking the queue costs more than most messages.
        if self.pool.isCurrent { self.pool.executeLater { self.schedule() } } else { self.schedule() }
    }

    private func schedule() {
        self.queue.addOperation { self.deliver() }
    }

    private func deliver() {
        for _ in 0..<Self.batchLimit {
            let next = self.state.withLock { state -> Message? in
                let next = state.messages.popFirst()
                if next == nil { state.isScheduled = false }
                return next
            }
            guard let next else { return }
            next()
            // Who suspends the queue means the very next message.
            if self.queue.isSuspended { break }
        }
        self.schedule()
    }
}

extension DelegateQueue {
    /// Tells the first of `faces` that has the method. Nothing is scheduled where none can have it.
    func notify(
        _ faces: [DelegateProxy], _ method: DelegateMethod, _ call: @escaping @Sendable (DelegateProxy) -> Void
    ) {
        let faces = faces.filter { $0.mayImplement(method) }
        guard !faces.isEmpty else { return }
        self.add {
            for face in faces where face.notify(method, { call(face) }) { return }
        }
    }

    /// Asks the first that answers.
    /// - Parameter completion: called once, on any thread; with `nil` where nobody has the method, and then at once if
    ///   that is known already.
    func ask<Answer: Sendable>(
        _ questions: [DelegateRequest<Answer>], _ completion: @escaping @Sendable (Answer?) -> Void
    ) {
        let questions = questions.filter(\.mayBeImplemented)
        guard !questions.isEmpty else { return completion(nil) }
        self.add { self.ask(questions[...], completion) }
    }

    private func ask<Answer: Sendable>(
        _ questions: ArraySlice<DelegateRequest<Answer>>, _ completion: @escaping @Sendable (Answer?) -> Void
    ) {
        guard let question = questions.first else { return completion(nil) }
        let face = question.delegate
        let answer = OneShotHandler<Answer> { completion($0) }
        if face.mayImplement(question.method), face.notify(question.method, { question.call(face, answer) }) { return }
        guard face.mayImplement(question.asyncMethod) else { return self.ask(questions.dropFirst(), completion) }
        Task {
            if let answer = await face.ask(question.asyncMethod, { await question.callAsync(face) }) {
                completion(answer)
            } else {
                self.add { self.ask(questions.dropFirst(), completion) }
            }
        }
    }
}

/// Takes something from one thread to another that is not used on both at a time.
struct Carried<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
