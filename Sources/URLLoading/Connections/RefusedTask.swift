import Foundation
import Synchronization

/// Drives a task that cannot run at all: it ends as soon as it is resumed or cancelled.
final class RefusedTask: TaskDriving {
    let error: URLError
    private let session: URLSession
    private let task: Mutex<URLSessionTask?>

    init(_ task: URLSessionTask, of session: URLSession, _ error: URLError) {
        self.task = Mutex(task)
        self.session = session
        self.error = error
    }

    func resumed() { self.end(self.error) }
    func suspended() {}
    func cancelled() { self.end(LoadFailure.error(.cancelled, url: self.error.failingURL)) }
    func priorityChanged(_ priority: Float) {}

    private func end(_ error: URLError) {
        let task = self.task.withLock { task in
            defer { task = nil }
            return task
        }
        guard let task else { return }
        self.session.core.tellEnd(of: task, error, TaskMetricsRecord(), session: self.session)
    }
}
