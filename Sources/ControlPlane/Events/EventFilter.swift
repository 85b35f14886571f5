import GatewayCore

/// Which events somebody wants. Gaps are always told.
package struct EventFilter: Sendable, Equatable {
    package static let parameters: Set<String> = ["type", "connection", "listener", "route", "upstream", "transfer"]

    private let kinds: Set<GatewayEvent.Kind>
    private let connections: Set<ConnectionKey>
    private let listeners: Set<String>
    private let routes: Set<String>
    private let upstreams: Set<String>
    private let transfers: Set<String>

    /// - Throws: `ControlProblem` for a type or an id that is none.
    package init(_ query: Query) throws(ControlProblem) {
        var kinds: Set<GatewayEvent.Kind> = []
        for name in query.list("type") {
            guard let kind = GatewayEvent.Kind(rawValue: name) else {
                let known = GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw ControlProblem(400, "invalid-parameter", "type is to be of \(known).").at(parameter: "type")
            }
            kinds.insert(kind)
        }
        var connections: Set<ConnectionKey> = []
        for name in query.list("connection") {
            guard let key = ConnectionKey(name) else {
                throw ControlProblem(400, "invalid-parameter", "connection is to be the id of a connection.")
                    .at(parameter: "connection")
            }
            connections.insert(key)
        }
        self.kinds = kinds
        self.connections = connections
        self.listeners = Set(query.list("listener"))
        self.routes = Set(query.list("route"))
        self.upstreams = Set(query.list("upstream"))
        self.transfers = Set(query.list("transfer"))
    }

    package func matches(_ event: GatewayEvent) -> Bool {
        (self.kinds.isEmpty || self.kinds.contains(event.kind))
            && Self.holds(self.connections, event.connection) && Self.holds(self.listeners, event.listener)
            && Self.holds(self.routes, event.route)
            && (Self.holds(self.upstreams, event.upstream) || Self.holds(self.upstreams, event.endpoint))
            && Self.holds(self.transfers, event.transfer)
    }

    private static func holds<Value>(_ wanted: Set<Value>, _ value: Value?) -> Bool {
        wanted.isEmpty || value.map { wanted.contains($0) } == true
    }
}
