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
