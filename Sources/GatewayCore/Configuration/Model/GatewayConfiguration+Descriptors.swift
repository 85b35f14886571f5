import StreamTransport

extension GatewayConfiguration {
    /// Connections at once: as written, and by default no more than the process has descriptors for.
    package func connectionLimit(_ budget: DescriptorBudget) -> Int {
        guard self.maximumConnections == Self.standardConnections else { return self.maximumConnections }
        return min(self.maximumConnections, budget.connections(each: self.descriptorsPerConnection))
    }

    /// What a written limit would need and the process does not have, in words for the log.
    package func descriptorShortage(_ budget: DescriptorBudget) -> String? {
        let wanted = self.connectionLimit(budget)
        let possible = budget.connections(each: self.descriptorsPerConnection)
        guard wanted > possible else { return nil }
        return
            "max-connections is \(wanted), but \(budget.limit) descriptors are enough for \(possible): raise LimitNOFILE"
    }

    /// A tunnel has a socket on each side.
    private var descriptorsPerConnection: Int {
        let leadsOn = self.routes.contains { route in
            switch route.target {
            case .upstream, .url: true
            case .echo, .chat: false
            }
        }
        return leadsOn ? 2 : 1
    }
}

extension ControlSettings {
    /// Connections at once: as written, and by default no more than the process has descriptors for.
    package func connectionLimit(_ budget: DescriptorBudget) -> Int {
        guard self.maximumConnections == Self.standardConnections else { return self.maximumConnections }
        return budget.controlConnections
    }
}
