import HTTPTypes

extension HTTPTypes.HTTPField.Name {
    /// RFC 8288. The alternatives are never taken: these are tokens.
    static let link = Self("Link") ?? .location
    /// RFC 7240.
    static let lastEventID = Self("Last-Event-ID") ?? .accept
    static let idempotencyKey = Self("Idempotency-Key") ?? .accept
    static let prefer = Self("Prefer") ?? .accept
}
