import Foundation
import Testing
import URLLoading

/// A request with a response to it.
struct CacheSample {
    let request: URLRequest
    let cached: CachedURLResponse

    init(
        _ url: String, size: Int = 2048, first: UInt8 = 0, policy: URLCache.StoragePolicy = .allowed,
        userInfo: [AnyHashable: Any]? = nil, exchange: CachedExchange? = nil
    ) throws {
        let url = try #require(URL(string: url))
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["ETag": "\"1\""]))
        var data = Data(count: size)
        if size > 0 { data[0] = first }
        self.request = URLRequest(url: url)
        self.cached = CachedURLResponse(
            response: response, data: data, userInfo: userInfo, storagePolicy: policy, exchange: exchange)
    }
}
