/// What a Digest answer says about the request that it goes with.
package struct DigestRequest: Equatable, Sendable {
    package let method: String
    /// The request's target as it stands in the request line: path and query, or an authority for CONNECT.
    package let target: String
    /// Of the content, by the challenge's algorithm, from `DigestHasher`; `nil` for a request without content, and
    /// wherever only `auth` is wanted.
    package let contentHash: String?

    package init(method: String, target: String, contentHash: String? = nil) {
        self.method = method
        self.target = target
        self.contentHash = contentHash
    }
}
