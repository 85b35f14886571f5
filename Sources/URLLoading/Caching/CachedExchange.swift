import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes

/// What a cache must know of the exchange that brought a response, beyond the response itself (RFC 9111 §4.1, §4.2.3).
package struct CachedExchange: Codable, Hashable, Sendable {
    /// Seconds since 1970, by the clock of this machine.
    package var requestTime: Int64
    package var responseTime: Int64
    /// What the request said in the fields that `Vary` names; `nil` for a response that is an answer to no other request.
    package var selection: [String: String?]?

    package init(requestTime: Int64, responseTime: Int64, selection: [String: String?]?) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.selection = selection
    }
}

extension CachedExchange {
    /// Of a response that the program stores itself: as if it came at that time. Of the fields that it varies by only
    /// those count that `request` itself says: what a session adds is not known here, and the program means it for the URL.
    init(storing response: URLResponse, for request: URLRequest, at time: Date) {
        let seconds = HTTPDate(time).seconds
        let fields = (response as? HTTPURLResponse)?.httpFields ?? [:]
        let selection = VarySelection(response: fields, request: HTTPFields(request.allHTTPHeaderFields)).values ?? [:]
        self.init(
            requestTime: seconds, responseTime: seconds, selection: selection.filter { $0.value != nil })
    }
}
