/// What a request's path holds in the place of `{name}` or `{name...}`.
package struct RouteParameter: Hashable, Sendable {
    package let name: String
    /// As the client sent it, percent-encoding and all.
    package let encoded: String
    /// Decoded; in `{name...}` the slashes between segments stand among decoded segments, so an encoded slash cannot be
    /// told from one.
    package let value: String

    package init(name: String, encoded: String, value: String) {
        self.name = name
        self.encoded = encoded
        self.value = value
    }
}
