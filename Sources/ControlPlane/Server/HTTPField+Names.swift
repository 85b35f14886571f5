import HTTPTypes

extension HTTPTypes.HTTPField.Name {
    /// RFC 8288. The alternatives are never taken: these are tokens.
    static let link = Self("Link") ?? .location
    /// RFC 7240.
    static let lastEventID = Self("Last-Event-ID") ?? .accept
    static let idempotencyKey = Self("Idempotency-Key") ?? .accept
    static let prefer = Self("Prefer") ?? .accept
    /// W3C Fetch Metadata §2.4.
    static let secFetchSite = Self("Sec-Fetch-Site") ?? .accept
    /// RFC 9110 §7.2; the first one of a request is its authority.
    static let host = Self("Host") ?? .accept
}
