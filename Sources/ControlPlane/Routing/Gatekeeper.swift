import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Who may do what: asked before every operation.
protocol Gatekeeper: Sendable {
    /// - Throws: `ControlProblem`: 401 without a caller, 403 for one who lacks the scope, 421 or 403 for a request that a
    ///   web page made.
    func admit(_ request: Request, to operation: Operation, context: ControlRequestContext) async throws(ControlProblem)
        -> Caller
}
