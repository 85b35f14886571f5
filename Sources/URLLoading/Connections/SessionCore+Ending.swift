import Foundation
import Synchronization

extension SessionCore {
    /// The last messages of a task with a connection of its own: metrics, then the end.
    func tellEnd(
        of task: URLSessionTask, _ error: URLError?, _ record: TaskMetricsRecord, session: URLSession
    ) {
        let endedAt = ContinuousClock.now
        self.line.add {
            task.change(\.error) { $0.error = error }
            task.change(\.state) { $0.state = .completed }
            if error == nil { task.facts.withLock { $0.progress }?.finish() }
            let faces = self.faces(for: task)
            for face in faces where face.mayAnswer(.metrics) {
                let metrics = record.metrics(completedAt: endedAt)
                if face.tell(.metrics, { face.task?.urlSession(session, task: task, didFinishCollecting: metrics) }) {
                    break
                }
            }
            for face in faces where face.mayAnswer(.completion) {
                if face.tell(.completion, { face.task?.urlSession(session, task: task, didCompleteWithError: error) }) {
                    break
                }
            }
            task.facts.withLock { $0.delegate = nil }
            self.ended(task, of: session)
        }
    }

    /// The end of a task that goes without a last message.
    func endSilently(_ task: URLSessionTask, session: URLSession) {
        self.line.add {
            task.change(\.state) { $0.state = .completed }
            task.facts.withLock { $0.delegate = nil }
            self.ended(task, of: session)
        }
    }
}
