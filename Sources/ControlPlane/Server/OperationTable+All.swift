import GatewayCore

extension OperationTable {
    /// The whole interface. Each resource lists its own.
    static func make(_ context: ControlContext) -> OperationTable {
        let connections = ConnectionsResource(context: context)
        let resources =
            HealthResource(context: context).operations + MetricsResource(context: context).operations
            + connections.operations + EventsResource(context: context).operations
            + DrainsResource(context: context, connections: connections).operations
            + OperationsResource(context: context).operations
            + TransfersResource(context: context).operations + ConfigurationResource(context: context).operations
            + ConfigurationSection.allCases.flatMap { EntriesResource(section: $0, context: context).operations }
        return OperationTable(resources + DocumentResource(context: context, others: resources).operations)
    }
}
