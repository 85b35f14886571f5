/// On whose behalf a request is carried out; stands in the audit log.
struct Caller: Sendable, Hashable {
    let name: String
    let scopes: Set<Scope>

    /// Whoever can reach a listener on loopback.
    static let local = Caller(name: "local", scopes: Set(Scope.allCases))
}
