import Foundation

extension URLCache {
    /// Keeps the response under the task's current request.
    public func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.storeCachedResponse(cachedResponse, for: request)
    }

    /// - Parameter completionHandler: on a queue of the cache's; gets `nil` where nothing is kept.
    public func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let request = dataTask.currentRequest
        DiskQueue.shared.async { completionHandler(request.flatMap { self.cachedResponse(for: $0) }) }
    }

    /// As `getCachedResponse(for:completionHandler:)`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { continuation in
            self.getCachedResponse(for: dataTask) { continuation.resume(returning: $0) }
        }
    }

    /// Forgets what is kept under the task's current request.
    public func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.removeCachedResponse(for: request)
    }
}
