import GatewayCore

/// What a caller must be allowed to do for an operation.
package enum Scope: String, CaseIterable, Sendable {
    /// For what says no more than that the process is there.
    case none
    case read
    case operate
    case configure
    case metrics

    /// `nil`: everybody may.
    package var needed: ControlScope? { ControlScope(rawValue: self.rawValue) }
}
