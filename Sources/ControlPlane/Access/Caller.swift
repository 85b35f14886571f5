import GatewayCore

/// On whose behalf a request is carried out; stands in the audit log.
package struct Caller: Sendable, Hashable {
    /// `token:NAME`, `client:NAME`, `uid:NUMBER`, or `local`.
    package let name: String
    package let scopes: Set<ControlScope>

    package init(name: String, scopes: Set<ControlScope>) {
        self.name = name
        self.scopes = scopes
    }

    /// Whoever can reach a listener that asks nobody who they are.
    package static let local = Caller(name: "local", scopes: Set(ControlScope.allCases))
    /// Somebody who did not say.
    package static let nobody = Caller(name: "nobody", scopes: [])
}
