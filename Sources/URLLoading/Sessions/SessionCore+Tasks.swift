import Foundation
import HTTPTransport
import Synchronization

extension SessionCore {
    /// - Returns: whether the task may load; it is kept until `ended`.
    func register(_ task: URLSessionTask) -> Bool {
        self.state.withLock { state in
            guard case .open = state.phase else { return false }
            state.tasks[task.taskIdentifier] = task
            return true
        }
    }

    func nextIdentifier() -> Int {
        self.state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    /// Puts another task in the place of one that it goes on with.
    func replace(with task: URLSessionTask) {
        self.state.withLock { $0.tasks[task.taskIdentifier] = task }
    }

    /// The last message of the task is behind us.
    func ended(_ task: URLSessionTask, of session: URLSession) {
        let isLast = self.state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            return state.phase == .finishing && state.tasks.isEmpty
        }
        if isLast { self.becomeInvalid(session) }
    }

    var liveTasks: [URLSessionTask] {
        let tasks = self.state.withLock { $0.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier } }
        return tasks.filter { $0.facts.withLock { $0.state == .running || $0.state == .suspended } }
    }

    /// - Parameter cancels: whether tasks that live are cancelled.
    func invalidate(_ session: URLSession, cancels: Bool) {
        guard !self.isShared else { return }
        let (tasks, isLast) = self.state.withLock { state in
            guard state.phase != .invalid else { return ([URLSessionTask](), false) }
            let isFirst = state.phase == .open
            state.phase = .finishing
            return (Array(state.tasks.values), isFirst && state.tasks.isEmpty)
        }
        if isLast { return self.becomeInvalid(session) }
        if cancels { for task in tasks { task.cancel() } }
    }

    private func becomeInvalid(_ session: URLSession) {
        let isFirst = self.state.withLock { state in
            defer { state.phase = .invalid }
            return state.phase != .invalid
        }
        guard isFirst else { return }
        self.pool.close()
        self.line.add {
            if let face = self.delegate {
                _ = face.tell(.becameInvalid) { face.delegate.urlSession(session, didBecomeInvalidWithError: nil) }
            }
            self.state.withLock { $0.delegate = nil }
        }
    }
}
