import Foundation

/// Cancelling the Swift task that waits cancels the session's task: what is thrown is `URLError.cancelled` then.
///
/// A delegate that is given here is asked before the session's. It alone hears of the response, which it may refuse, of
/// the data as they come, and of the growth of a file; as in FoundationNetworking, and unlike other platforms.
extension URLSession {
    /// Loads the request into memory.
    public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult { self.dataTask(request, result: .awaitedData($0), delegate: delegate) }
    }

    /// Loads the URL into memory.
    public func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends the file, and loads the answer into memory.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .file(fileURL), result: .awaitedData($0), delegate: delegate)
        }
    }

    /// Sends the data, and loads the answer into memory.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult {
            self.uploadTask(request, body: .data(bodyData), result: .awaitedData($0), delegate: delegate)
        }
    }

    /// Uploads that can be resumed are still to come: this throws `URLError.unsupportedURL`.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaitResult { self.unsupportedUpload(.awaitedData($0), delegate: delegate) }
    }

    /// Loads the request into a file, which stays: it is the caller's.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult { self.downloadTask(request, result: .lastingFile($0), delegate: delegate) }
    }

    /// Loads the URL into a file, which stays: it is the caller's.
    public func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Goes on with a download.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaitResult {
            self.downloadTask(resuming: resumeData, result: .lastingFile($0), delegate: delegate)
        }
    }

    private func awaitResult<Value: Sendable>(
        _ make: (@escaping @Sendable (Value?, URLResponse?, (any Error)?) -> Void) -> URLSessionTask
    ) async throws -> (Value, URLResponse) {
        let waiting = AwaitedTask()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let task = make { value, response, error in
                    if let value, let response, error == nil {
                        continuation.resume(returning: (value, response))
                    } else {
                        continuation.resume(throwing: error ?? URLError(.badServerResponse))
                    }
                }
                waiting.start(task)
            }
        } onCancel: {
            waiting.cancel()
        }
    }
}
