import Foundation
import HTTPTransport
import WireText

/// One exchange of a load, with what was sent; redirects, challenges and continued uploads take several.
struct HTTPAttempt {
    /// `nil` once it has ended.
    var exchange: Exchange?
    /// For metrics; `nil` if they are not collected.
    let request: URLRequest?
    /// The head that was sent.
    let head: RequestHead
    let body: HTTPTransport.RequestBody
    /// For the cache; `nil` without a cache.
    let startedAt: Date?
}

extension URLRequest {
    /// The request with the header fields that were sent.
    func withSentFields(_ head: RequestHead) -> URLRequest {
        var request = self
        for field in head.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}
