/// What a reload has to touch: everything that is not named here stays as it is, with its connections.
package struct ConfigurationDifference: Sendable, Equatable {
    /// By name. A changed listener needs its socket opened anew only if it is among `rebound` too.
    package let listeners: ListDifference
    /// Changed listeners with another address (or permission bits, or backlog).
    package let rebound: [String]
    package let upstreams: ListDifference
    /// By name. A route counts as changed when its own settings changed, or the upstream that it leads to.
    package let routes: ListDifference
    /// Whether the total limit, the drain settings or the log settings changed: they take effect at once.
    package let gatewayChanged: Bool
    /// Whether the number of loops changed, which takes a restart.
    package let loopsChanged: Bool

    package init(from old: GatewayConfiguration, to new: GatewayConfiguration) {
        self.listeners = ListDifference(from: old.listeners, to: new.listeners, named: \.name)
        self.rebound = self.listeners.changed.filter { name in
            guard let before = old.listener(named: name), let after = new.listener(named: name) else { return false }
            return before.address != after.address || before.backlog != after.backlog
        }
        self.upstreams = ListDifference(from: old.upstreams, to: new.upstreams, named: \.name)
        let touched = Set(self.upstreams.changed)
        var routes = ListDifference(from: old.routes, to: new.routes, named: \.name)
        let affected = Set(
            routes.unchanged.filter { name in
                guard case .upstream(let upstream) = new.route(named: name)?.target else { return false }
                return touched.contains(upstream)
            })
        let changed = affected.union(routes.changed)
        routes.unchanged.removeAll(where: affected.contains)
        routes.changed = new.routes.map(\.name).filter(changed.contains)
        self.routes = routes
        self.gatewayChanged =
            old.maximumConnections != new.maximumConnections || old.drain != new.drain || old.log != new.log
        self.loopsChanged = old.loops != new.loops
    }

    /// Whether nothing but the content of certificate files can differ; those are always read again.
    package var isEmpty: Bool {
        self.listeners.isEmpty && self.upstreams.isEmpty && self.routes.isEmpty && !self.gatewayChanged
            && !self.loopsChanged
    }
}
