/// What a caller must be allowed to do for an operation.
enum Scope: String, CaseIterable, Sendable {
    /// For what says no more than that the process is there.
    case none
    case read
    /// Opens, sends, closes: everything that touches connections.
    case operate
    /// Changes listeners, routes and upstreams.
    case configure
    case metrics
}
