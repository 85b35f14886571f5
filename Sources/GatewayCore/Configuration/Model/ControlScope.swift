/// What a caller of the control plane may do. None holds another.
package enum ControlScope: String, Sendable, Hashable, CaseIterable {
    /// Sees connections and what happens to them.
    case read
    /// Opens, sends, closes: everything that touches connections.
    case operate
    /// Changes listeners, routes and upstreams.
    case configure
    /// Reads `/metrics`.
    case metrics
}
