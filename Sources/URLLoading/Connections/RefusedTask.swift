import Foundation
import Synchronization

/// Drives a task that cannot run at all: it ends as soon as it is resumed or cancelled. The task is not held: one that
/// nobody else holds any more leaves nothing behind.
final class RefusedTask: TaskDriving {
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
            session.core.tellEnd(of: task, error, TaskMetricsRecord(), session: session)
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
