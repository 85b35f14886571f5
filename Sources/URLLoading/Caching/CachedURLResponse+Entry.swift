import Foundation
import HTTPSemantics
import HTTPTypes

extension CachedURLResponse {
    /// A response that came over HTTP, with what the rules of caches ask about it.
    package convenience init(
        response: HTTPURLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil,
        storagePolicy: URLCache.StoragePolicy, entry: CacheEntry
    ) {
        let exchange = CachedExchange(
            requestTime: entry.requestTime.seconds, responseTime: entry.responseTime.seconds,
            selection: entry.selection.values)
        self.init(
            response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, exchange: exchange)
    }

    /// The same response, as one that came by `exchange`.
    func with(_ exchange: CachedExchange) -> CachedURLResponse {
        CachedURLResponse(
            response: self.response, data: self.data, userInfo: self.userInfo, storagePolicy: self.storagePolicy,
            exchange: exchange)
    }

    /// What the rules of caches ask about the response; `nil` where nothing is known of its age, or where it did not
    /// come over HTTP.
    package var entry: CacheEntry? {
        guard let exchange, let response = self.response as? HTTPURLResponse else { return nil }
        return CacheEntry(
            status: response.statusCode, fields: response.httpFields,
            selection: VarySelection(values: exchange.selection),
            requestTime: HTTPDate(seconds: exchange.requestTime),
            responseTime: HTTPDate(seconds: exchange.responseTime))
    }
}

extension NSURLRequest.CachePolicy {
    /// The policy by its meaning.
    package var meaning: HTTPSemantics.CachePolicy {
        switch self {
        case .useProtocolCachePolicy: .protocolDecides
        case .reloadIgnoringLocalCacheData: .reload
        case .reloadIgnoringLocalAndRemoteCacheData: .reloadEverywhere
        case .returnCacheDataElseLoad: .storedElseLoad
        case .returnCacheDataDontLoad: .storedOnly
        case .reloadRevalidatingCacheData: .revalidate
        }
    }
}
