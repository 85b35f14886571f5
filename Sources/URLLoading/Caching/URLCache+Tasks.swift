import Foundation

extension URLCache {
    /// As `getCachedResponse(for:completionHandler:)`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { continuation in
            self.getCachedResponse(for: dataTask) { continuation.resume(returning: $0) }
        }
    }
}
