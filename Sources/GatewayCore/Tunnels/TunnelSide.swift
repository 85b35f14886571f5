/// One of the two connections that a tunnel joins.
package enum TunnelSide: String, CaseIterable, Sendable {
    /// The client's.
    case downstream
    /// The target's.
    case upstream

    package var other: TunnelSide {
        switch self {
        case .downstream: .upstream
        case .upstream: .downstream
        }
    }
}
