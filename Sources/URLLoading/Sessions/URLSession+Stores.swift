import Foundation

extension URLSession {
    /// As `reset(completionHandler:)`.
    public func reset() async {
        await withCheckedContinuation { continuation in self.reset { continuation.resume() } }
    }

    /// As `flush(completionHandler:)`.
    public func flush() async {
        await withCheckedContinuation { continuation in self.flush { continuation.resume() } }
    }

    /// As `getTasksWithCompletionHandler`.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await withCheckedContinuation { continuation in
                self.getTasksWithCompletionHandler { continuation.resume(returning: ($0, $1, $2)) }
            }
        }
    }

    /// As `getAllTasks(completionHandler:)`.
    public var allTasks: [URLSessionTask] {
        get async { self.core.liveTasks }
    }
}
