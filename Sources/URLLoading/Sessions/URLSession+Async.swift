import Foundation
import Synchronization

/// Cancelling the waiting Swift task cancels the session's task; the method then throws `URLError.cancelled`.
///
/// The delegate parameter takes precedence over the session's delegate. Only it gets the response, which it may refuse,
/// the data and the progress of a file; as in FoundationNetworking, and unlike other platforms.
extension URLSession {
    /// Loads the request into memory.
    public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult { self.dataTask(request, consumer: .awaitedData($0), delegate: delegate) }
    }

    /// Loads the URL into memory.
    public func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        try await self.data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends the file and loads the response into memory.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .file(fileURL), consumer: .awaitedData($0), delegate: delegate)
        }
    }

    /// Sends the data and loads the response into memory.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .data(bodyData), consumer: .awaitedData($0), delegate: delegate)
        }
    }

    /// Continues an upload and loads the response into memory.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(resuming: resumeData, consumer: .awaitedData($0), delegate: delegate)
        }
    }

    /// Loads the request into a file, which the caller owns.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult { self.downloadTask(request, consumer: .lastingFile($0), delegate: delegate) }
    }

    /// Loads the URL into a file, which the caller owns.
    public func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        try await self.download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Resumes a download.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult {
            self.downloadTask(resuming: resumeData, consumer: .lastingFile($0), delegate: delegate)
        }
    }

    private func awaitResult<Value: Sendable>(
        _ make: (@escaping @Sendable (Value?, URLResponse?, (any Error)?) -> Void) -> URLSessionTask
    ) async throws -> (Value, URLResponse) {
        let awaited = AwaitedTask()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let task = make { value, response, error in
                    if let value, let response, error == nil {
                        continuation.resume(returning: (value, response))
                    } else {
                        let url = awaited.task?.latestRequest?.url
                        continuation.resume(throwing: error ?? LoadFailure.error(.badServerResponse, url: url))
                    }
                }
                awaited.start(task)
            }
        } onCancel: {
            awaited.cancel()
        }
    }

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

/// The same without a delegate. They are methods of their own, so that they satisfy the requirements of a program's
/// protocol.
extension URLSession {
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await self.data(for: request, delegate: nil)
    }

    public func data(from url: URL) async throws -> (Data, URLResponse) {
        try await self.data(from: url, delegate: nil)
    }

    public func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse) {
        try await self.upload(for: request, fromFile: fileURL, delegate: nil)
    }

    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await self.upload(for: request, from: bodyData, delegate: nil)
    }

    public func upload(resumeFrom resumeData: Data) async throws -> (Data, URLResponse) {
        try await self.upload(resumeFrom: resumeData, delegate: nil)
    }

    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await self.download(for: request, delegate: nil)
    }

    public func download(from url: URL) async throws -> (URL, URLResponse) {
        try await self.download(from: url, delegate: nil)
    }

    public func download(resumeFrom resumeData: Data) async throws -> (URL, URLResponse) {
        try await self.download(resumeFrom: resumeData, delegate: nil)
    }

    public func bytes(for request: URLRequest) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(for: request, delegate: nil)
    }

    public func bytes(from url: URL) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(from: url, delegate: nil)
    }
}

/// The session task that a Swift task waits for. The Swift task may be cancelled before the session task exists.
final class AwaitedTask: Sendable {
    private struct State {
        var task: URLSessionTask?
        var isCancelled = false
    }
    private let state = Mutex(State())

    /// Resumes the task, or cancels it if `cancel()` was called before.
    func start(_ task: URLSessionTask) {
        let isCancelled = self.state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        isCancelled ? task.cancel() : task.resume()
    }

    var task: URLSessionTask? { self.state.withLock { $0.task } }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
