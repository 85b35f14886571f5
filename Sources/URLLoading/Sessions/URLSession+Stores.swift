import Foundation

extension URLSession {
    /// Empties cookies, cache and credentials, with their files, and forgets all connections.
    /// - Parameter completionHandler: on the delegate queue.
    public func reset(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.urlCache?.removeAllCachedResponses()
        self.core.configuration.httpCookieStorage?.removeCookies(since: .distantPast)
        self.core.configuration.urlCredentialStorage?.removeAll()
        self.flush(completionHandler: completionHandler)
    }

    /// As `reset(completionHandler:)`.
    public func reset() async {
        await withCheckedContinuation { continuation in self.reset { continuation.resume() } }
    }

    /// Writes cookies to their file, forgets credentials that were in use and TLS sessions; the next request uses a new
    /// connection.
    /// - Parameter completionHandler: on the delegate queue.
    public func flush(completionHandler: @escaping @Sendable () -> Void) {
        self.core.configuration.httpCookieStorage?.flush()
        self.core.forgetConnections()
        self.core.line.add(completionHandler)
    }

    /// As `flush(completionHandler:)`.
    public func flush() async {
        await withCheckedContinuation { continuation in self.flush { continuation.resume() } }
    }

    /// The tasks that have not ended, those too that were never resumed, in the order in which they were made.
    /// - Parameter completionHandler: on the delegate queue; upload tasks are in the second list alone.
    public func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = self.core.liveTasks
        self.core.line.add {
            completionHandler(
                tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask },
                tasks.compactMap { $0 as? URLSessionUploadTask }, tasks.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// As `getTasksWithCompletionHandler`.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await withCheckedContinuation { continuation in
                self.getTasksWithCompletionHandler { continuation.resume(returning: ($0, $1, $2)) }
            }
        }
    }

    /// All tasks that have not ended, of every kind.
    /// - Parameter completionHandler: on the delegate queue.
    public func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = self.core.liveTasks
        self.core.line.add { completionHandler(tasks) }
    }

    /// As `getAllTasks(completionHandler:)`.
    public var allTasks: [URLSessionTask] {
        get async { self.core.liveTasks }
    }
}
