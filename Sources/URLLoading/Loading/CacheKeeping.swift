import Foundation
import HTTPSemantics
import HTTPTypes

/// A response on its way into the cache: its content is gathered as it comes, up to a limit.
struct CacheKeeping {
    let cache: URLCache
    let request: URLRequest
    let response: HTTPURLResponse
    let entry: CacheEntry
    /// Fields of the request as they were sent.
    private let sent: HTTPFields
    private let limit: Int
    private(set) var content: Data? = Data()

    /// - Returns: `nil` where the rules forbid to keep it, where it is no success (200 to 299), as on other platforms, or
    ///   where it is too large: a twentieth of the cache.
    init?(
        _ response: HTTPURLResponse, to request: URLRequest, sent: HTTPFields, requestTime: Date, cache: URLCache
    ) {
        let fields = response.httpFields
        guard (200...299).contains(response.statusCode),
            let method = HTTPRequest.Method(request.httpMethod ?? "GET"),
            Storability.judge(
                method: method, requestFields: sent, status: response.statusCode, fields: fields) == .storable
        else { return nil }
        self.limit = max(cache.memoryCapacity, cache.diskCapacity) / 20
        guard self.limit > 0, response.expectedContentLength <= Int64(self.limit) else { return nil }
        self.cache = cache
        self.request = request
        self.response = response
        self.sent = sent
        self.entry = CacheEntry(
            status: response.statusCode, fields: fields, requestFields: sent, requestTime: HTTPDate(requestTime),
            responseTime: HTTPDate(Date()))
    }

    mutating func append(_ data: Data) {
        guard let count = self.content?.count, count + data.count <= self.limit else {
            self.content = nil
            return
        }
        self.content?.append(data)
    }

    /// What would be kept; `nil` where it became too large.
    var proposal: CachedURLResponse? {
        self.content.map {
            CachedURLResponse(
                response: self.response, data: $0, storagePolicy: Self.policy(self.request), entry: self.entry)
        }
    }

    /// What is to be kept in the place of the proposal. One that the delegate made came when that did.
    func completed(_ chosen: CachedURLResponse) -> CachedURLResponse {
        guard chosen.exchange == nil, type(of: chosen) == CachedURLResponse.self else { return chosen }
        let fields = (chosen.response as? HTTPURLResponse)?.httpFields ?? [:]
        return chosen.with(
            CachedExchange(
                requestTime: self.entry.requestTime.seconds, responseTime: self.entry.responseTime.seconds,
                selection: VarySelection(response: fields, request: self.sent).values))
    }

    /// What came over TLS stays out of files.
    private static func policy(_ request: URLRequest) -> URLCache.StoragePolicy {
        request.url?.scheme?.withLoweredLetters == "https" ? .allowedInMemoryOnly : .allowed
    }
}
