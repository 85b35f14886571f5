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
    /// Of a response that the program stores itself: as if it came at that time, in answer to `request` as sessions send
    /// it.
    init(storing response: URLResponse, for request: URLRequest, at time: Date) {
        let seconds = HTTPDate(time).seconds
        let fields = (response as? HTTPURLResponse)?.httpFields ?? [:]
        var sent = HTTPFields()
        if fields.contains(.vary) {
            var request = request
            // No storage of cookies is known here.
            request.httpShouldHandleCookies = false
            let lines = RequestDressing(.ephemeral).fields(of: request)
            sent = HTTPFields(lines: lines.lazy.map { (name: $0.name, value: $0.value) })
        }
        self.init(
            requestTime: seconds, responseTime: seconds,
            selection: VarySelection(response: fields, request: sent).values)
    }
}
