import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Who may do what: asked before every operation.
protocol Gatekeeper: Sendable {
    /// Asked of every request, whatever it is for.
    /// - Throws: `ControlProblem`: 421 or 403 for a request that a web page of somebody else made.
    func inspect(_ request: Request) throws(ControlProblem)
    /// - Returns: who asks, with whatever scopes they have.
    /// - Throws: `ControlProblem` 401 where it must be said who asks, and is not, or wrongly.
    func caller(of request: Request, for operation: Operation) throws(ControlProblem) -> Caller
}

extension Gatekeeper {
    /// - Throws: `ControlProblem` 403 with the scope that the caller lacks.
    func authorize(_ caller: Caller, for operation: Operation) throws(ControlProblem) {
        guard let scope = operation.scope.needed, !caller.scopes.contains(scope) else { return }
        let has = caller.scopes.map(\.rawValue).sorted().joined(separator: ", ")
        var problem = ControlProblem(
            403, "insufficient-scope",
            "This needs the scope \(scope.rawValue); \(caller.name) has \(has.isEmpty ? "none" : has).")
        // RFC 6750 §3.1.
        problem.challenge = "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""
        throw problem
    }
}
