import HTTPTypes

/// What a cache forgets after a request that may have changed things (RFC 9111 §4.4).
package enum CacheInvalidation {
    /// Whether the stored answer for the request's target is to be forgotten.
    package static func forgetsTarget(method: HTTPRequest.Method, status: Int) -> Bool {
        !MethodTraits.isSafe(method) && (200...399).contains(status)
    }

    /// References in `Location` and `Content-Location` whose stored answers are to be forgotten too, once they are
    /// resolved, and only where they are of the target's own origin: else one site could empty another's cache.
    package static func references(method: HTTPRequest.Method, status: Int, fields: HTTPFields) -> [String] {
        guard self.forgetsTarget(method: method, status: status) else { return [] }
        return [.location, .contentLocation].compactMap { fields[values: $0].first }
    }
}
