/// A bearer token that the control plane takes, known by its hash alone.
package struct ControlToken: Sendable, Equatable {
    /// Stands in the audit log.
    package var name: String
    package var hash: TokenHash
    package var scopes: Set<ControlScope>
    /// Milliseconds since 1970-01-01T00:00:00Z; `nil` is never.
    package var expires: Int64?

    package init(name: String, hash: TokenHash, scopes: Set<ControlScope>, expires: Int64? = nil) {
        self.name = name
        self.hash = hash
        self.scopes = scopes
        self.expires = expires
    }
}
