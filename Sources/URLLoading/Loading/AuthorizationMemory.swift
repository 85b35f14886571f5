import HTTPSemantics

/// The credentials that servers accepted in this session, to be sent before they are asked for: the last `limit`.
struct AuthorizationMemory {
    private static let limit = 64

    private var kept: [Authorization] = []

    var isEmpty: Bool { self.kept.isEmpty }

    /// What is known to be wanted for `path` at `origin`.
    func find(_ origin: Origin, path: String) -> Authorization? {
        self.kept.last { $0.origin == origin && $0.scope.covers(path) }
    }

    mutating func keep(_ authorization: Authorization) {
        self.kept.removeAll {
            $0 === authorization || $0.origin == authorization.origin && $0.scope == authorization.scope
        }
        self.kept.append(authorization)
        if self.kept.count > Self.limit { self.kept.removeFirst() }
    }

    mutating func forget(_ authorization: Authorization) {
        self.kept.removeAll { $0 === authorization }
    }
}
