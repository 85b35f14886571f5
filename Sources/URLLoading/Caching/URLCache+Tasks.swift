import Foundation

/// What is kept for a task is kept for its current request; for a task without one nothing is.
extension URLCache {
    public func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.storeCachedResponse(cachedResponse, for: request)
    }

    /// - Parameter completionHandler: takes what is kept, or `nil`; at once.
    public func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completionHandler(dataTask.currentRequest.flatMap { self.cachedResponse(for: $0) })
    }

    /// As `getCachedResponse(for:completionHandler:)`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        dataTask.currentRequest.flatMap { self.cachedResponse(for: $0) }
    }

    public func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.removeCachedResponse(for: request)
    }
}
