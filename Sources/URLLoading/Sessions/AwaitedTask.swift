import Synchronization

/// The session's task of a Swift task that waits for it, which may be cancelled before it is there.
final class AwaitedTask: Sendable {
    private struct State {
        var task: URLSessionTask?
        var isCancelled = false
    }
    private let state = Mutex(State())

    /// Resumes the task; cancelled ones end without having begun.
    func start(_ task: URLSessionTask) {
        let isCancelled = self.state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        isCancelled ? task.cancel() : task.resume()
    }

    /// Once it is there.
    var task: URLSessionTask? { self.state.withLock { $0.task } }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
